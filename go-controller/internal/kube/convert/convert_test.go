// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// objects are the manifests of one golden file.
type objects struct {
	services   []*corev1.Service
	slices     []*discoveryv1.EndpointSlice
	nodes      []*corev1.Node
	pools      []*v1alpha1.IPAddressPool
	domains    []*v1alpha1.L2Domain
	namespaces convert.Namespaces
}

func TestNextHops(t *testing.T) {
	n := &corev1.Node{}
	for text, want := range map[string]string{
		`{"default":{"mode":"shared","next-hops":["192.0.2.1","fd00::1"],"next-hop":"192.0.2.1"},"other":{"next-hops":["192.0.2.1"]}}`: "[192.0.2.1 fd00::1]",
		`{"default":{"mode":"shared","next-hops":["nowhere","192.0.2.1"]}}`:                                                            "[192.0.2.1]",
		`{"default":{"mode":""}}`: "[]",
		`spoilt`:                  "[]",
		``:                        "[]",
	} {
		n.Annotations = map[string]string{"k8s.ovn.org/l3-gateway-config": text}
		if got := fmt.Sprint(convert.Node(n, convert.Options{}).NextHops); got != want {
			t.Errorf("%s: next hops %s, want %s", text, got, want)
		}
	}
}

func TestHostBackends(t *testing.T) {
	internal := func(a string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a}
	}
	external := corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "2001:db8::11"}
	both := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "192.0.2.99"}, external, internal("192.0.2.11"),
		internal("192.0.2.12"), internal("fd00::11")}
	for _, test := range []struct {
		masquerade string
		addresses  []corev1.NodeAddress
		want       string
	}{
		{`{"ipv4":"169.254.169.0/29","ipv6":"fd69::/125"}`, both, "[{192.0.2.11 169.254.169.3} {fd00::11 fd69::3}]"},
		{`{"ipv4":"169.254.0.0/17","ipv6":"fd69::/112"}`, both, "[{192.0.2.11 169.254.0.3} {fd00::11 fd69::3}]"},
		{`{"ipv4":"169.254.169.0/29"}`, both, "[{192.0.2.11 169.254.169.3}]"},
		{`{"ipv6":"fd69::/125"}`, both[:2], "[{2001:db8::11 fd69::3}]"},
		{`{"ipv4":"169.254.169.0/31","ipv6":"nothing"}`, both, "[]"},
		{`{}`, both, "[]"},
		{`spoilt`, both, "[]"},
		{``, both, "[]"},
	} {
		n := &corev1.Node{}
		n.Annotations = map[string]string{"k8s.ovn.org/node-masquerade-subnet": test.masquerade}
		n.Status.Addresses = test.addresses
		if got := fmt.Sprint(convert.Node(n, convert.Options{}).Hosts); got != test.want {
			t.Errorf("%s: hosts %s, want %s", test.masquerade, got, test.want)
		}
	}
}

// OVN-Kubernetes writes a single subnet as a string and several as a list.
func TestPodSubnets(t *testing.T) {
	for text, want := range map[string]string{
		`{"default":["fd00:10:244:1::/64","10.244.1.0/24"]}`:                                  "[10.244.1.0/24 fd00:10:244:1::/64]",
		`{"default":"10.244.1.0/24"}`:                                                         "[10.244.1.0/24]",
		`{"default":["10.244.1.0/24","10.244.9.0/24"],"example.org/other":["10.100.0.0/24"]}`: "[10.244.1.0/24 10.244.9.0/24]",
		`{"default":["10.1.0.0/24","10.2.0.0/24","10.3.0.0/24","10.4.0.0/24","10.5.0.0/24","10.6.0.0/24","10.7.0.0/24",` +
			`"10.8.0.0/24","10.9.0.0/24"]}`: "[10.1.0.0/24 10.2.0.0/24 10.3.0.0/24 10.4.0.0/24 10.5.0.0/24 10.6.0.0/24 " +
			"10.7.0.0/24 10.8.0.0/24]", // at most eight
		`{"default":["nothing",""]}`: "[]",
		`{"default":7}`:              "[]",
		`{}`:                         "[]",
		`spoilt`:                     "[]",
		``:                           "[]",
	} {
		n := &corev1.Node{}
		n.Annotations = map[string]string{"k8s.ovn.org/node-subnets": text}
		if got := fmt.Sprint(convert.Node(n, convert.Options{}).PodSubnets); got != want {
			t.Errorf("%s: subnets %s, want %s", text, got, want)
		}
	}
}

// TestGolden converts the manifests of each file in testdata and compares the results. A file named options in the
// archive contains the options that differ from the defaults.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("goldens: %v %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			options := convert.Options{DefaultClass: true, MetalLBAnnotations: true, DrainTaints: convert.DefaultDrainTaints()}
			in := objects{namespaces: convert.Namespaces{}}
			var want *txtar.File
			for i, f := range archive.Files {
				switch f.Name {
				case "want":
					want = &archive.Files[i]
				case "options":
					unmarshal(t, f.Data, &options)
				default:
					in.read(t, f.Data)
				}
			}
			got := in.converted(t, options)
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func (o *objects) read(t *testing.T, manifests []byte) {
	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		var kind metav1.TypeMeta
		data := []byte(document)
		unmarshal(t, data, &kind)
		switch kind.Kind {
		case "Service":
			o.services = append(o.services, parsed[corev1.Service](t, data))
		case "EndpointSlice":
			o.slices = append(o.slices, parsed[discoveryv1.EndpointSlice](t, data))
		case "Namespace":
			n := parsed[corev1.Namespace](t, data)
			o.namespaces[n.Name] = n.Labels
		case "Node":
			o.nodes = append(o.nodes, parsed[corev1.Node](t, data))
		case "IPAddressPool":
			o.pools = append(o.pools, parsed[v1alpha1.IPAddressPool](t, data))
		case "L2Domain":
			o.domains = append(o.domains, parsed[v1alpha1.L2Domain](t, data))
		default:
			t.Fatalf("kind %q is none of ours", kind.Kind)
		}
	}
}

func parsed[T any](t *testing.T, data []byte) *T {
	out := new(T)
	unmarshal(t, data, out)
	return out
}

func unmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func (o *objects) converted(t *testing.T, options convert.Options) string {
	var out strings.Builder
	for _, s := range o.services {
		w, ours := convert.Service(s, convert.Slices(o.slices), options)
		if !ours {
			fmt.Fprintf(&out, "%s: not ours\n", s.Name)
			continue
		}
		dump(t, &out, s.Name, w)
	}
	for _, n := range o.nodes {
		dump(t, &out, n.Name, convert.Node(n, options))
	}
	for _, p := range o.pools {
		dump(t, &out, p.Name, convert.Pool(p, o.namespaces))
	}
	for _, d := range o.domains {
		dump(t, &out, d.Name, convert.Domain(d, o.pools, o.nodes))
	}
	return out.String()
}

// dump writes the fields that are not zero, except for those that all objects have in common.
func dump(t *testing.T, out *strings.Builder, name string, value any) {
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	unmarshal(t, data, &fields)
	for _, usual := range []string{"Key", "Name", "UID", "Created"} {
		delete(fields, usual)
	}
	for field, v := range fields {
		if slices.Contains([]string{"", "0", "false", "<nil>", "[]"}, fmt.Sprint(v)) {
			delete(fields, field)
		}
	}
	if s, ok := value.(*world.Service); ok {
		fields["Families"] = fmt.Sprintf("%v", s.Families) // YAML would encode the bytes as binary
	}
	if data, err = yaml.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "%s:\n  %s\n", name, strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n  "))
}
