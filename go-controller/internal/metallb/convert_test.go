// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
)

// The archives contain MetalLB's manifests (metallb.yaml), the segments (segments, one per line), networks of the nodes
// (networks, one per line), nodes (nodes.yaml), the labels of nodes with sessions (peer-nodes), Services
// (services.yaml), objects of the cluster (existing.yaml), and the result (want).
func TestGolden(t *testing.T) {
	golden.RunArchives(t, "testdata/*.txtar", func(archive *txtar.Archive) (string, error) {
		in, err := readArchive(archive)
		if err != nil {
			return "", err
		}
		text, err := Convert(in).YAML()
		return string(text), err
	})
}

func readArchive(archive *txtar.Archive) (Input, error) {
	var in Input
	for _, f := range archive.Files {
		lines := strings.Fields(string(f.Data))
		var err error
		switch f.Name {
		case "metallb.yaml":
			in.Objects, err = Parse(f.Data)
		case "services.yaml":
			in.Services, err = parseServices(f.Data)
		case "nodes.yaml":
			in.Nodes, err = parseNodes(f.Data)
		case "segments":
			for _, line := range lines {
				var s Segment
				if s, err = ParseSegment(line); err != nil {
					return in, err
				}
				in.Segments = append(in.Segments, s)
			}
		case "existing.yaml":
			in.Existing, err = Parse(f.Data)
		case "peer-nodes":
			in.PeerNodes = map[string]string{}
			for _, line := range lines {
				key, value, _ := strings.Cut(line, "=")
				in.PeerNodes[key] = value
			}
		case "networks":
			for _, line := range lines {
				in.NodeNetworks = append(in.NodeNetworks, netip.MustParsePrefix(line))
			}
		case "want":
		default:
			err = fmt.Errorf("unknown file")
		}
		if err != nil {
			return in, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return in, nil
}

func parseServices(data []byte) ([]*corev1.Service, error) {
	objects, err := Parse(data)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Service
	for _, o := range objects {
		s := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, s, true); err != nil {
			return nil, err
		}
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		out = append(out, s)
	}
	return out, nil
}

func parseNodes(data []byte) ([]*corev1.Node, error) {
	objects, err := Parse(data)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Node
	for _, o := range objects {
		n := &corev1.Node{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, n, true); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// manifestWith returns an object of MetalLB with the fields base, the field name, and those that it needs besides.
func manifestWith(kind, base, name string, values map[string]string) string {
	version, lines := "v1beta1", base
	if !strings.HasPrefix(base, name+":") {
		lines += "\n  " + name + ": " + values[name]
	}
	if kind == kindPeer {
		version = "v1beta2"
		for _, required := range []string{"peerASN", "peerAddress"} {
			if name != required && (name != "dynamicASN" || required != "peerASN") &&
				(name != "interface" || required != "peerAddress") {
				lines += "\n  " + required + ": " + values[required]
			}
		}
	}
	return fmt.Sprintf("apiVersion: metallb.io/%s\nkind: %s\nmetadata: {name: x}\nspec:\n  %s\n", version, kind, lines)
}

// Every field that MetalLB's specs have is in the converted object, or a finding contains its name.
func TestEveryFieldIsConvertedOrNamed(t *testing.T) {
	values := map[string]string{
		"addresses": "[10.50.0.0/24]", "autoAssign": "false", "avoidBuggyIPs": "true",
		"serviceAllocation": "{priority: 7, namespaces: [a], namespaceSelectors: [{}], serviceSelectors: [{}]}",

		"ipAddressPools": "[lan]", "ipAddressPoolSelectors": "[{matchLabels: {a: b}}]",
		"nodeSelectors": "[{matchLabels: {c: d}}]",
		"interfaces":    "[eth1]", "serviceSelectors": "[{matchLabels: {e: f}}]",
		"preferredNodeSelectors": "[{weight: 1, preference: {}}]",

		"myASN": "64512", "peerASN": "64513", "localASN": "64514", "dynamicASN": "external", "peerAddress": "10.50.0.1",
		"interface": "eth1", "sourceAddress": "10.50.0.2", "peerPort": "1179", "holdTime": "9s", "keepaliveTime": "3s",
		"connectTime": "2s", "routerID": "1.2.3.4", "password": "secret", "passwordSecret": "{name: s, namespace: n}",
		"bfdProfile": "fast", "enableGracefulRestart": "true", "ebgpMultiHop": "true", "vrf": "red", "disableMP": "true",
		"dualStackAddressFamily": "true",

		"aggregationLength": "24", "aggregationLengthV6": "64", "localPref": "7", "communities": "[65000:1]",
		"peers": "[tor]",

		"receiveInterval": "11", "transmitInterval": "12", "detectMultiplier": "4", "echoInterval": "13", "echoMode": "true",
		"passiveMode": "true", "minimumTtl": "253",
	}
	for kind, spec := range map[string]any{kindPool: poolSpec{}, kindL2Advertisement: l2AdvertisementSpec{},
		kindPeer: peerSpec{}, kindBGPAdvertisement: bgpAdvertisementSpec{}, kindBFDProfile: bfdProfileSpec{}} {
		base := map[string]string{kindPool: "addresses: [10.50.0.0/24]", kindPeer: "myASN: 64512"}[kind]
		for _, f := range reflect.VisibleFields(reflect.TypeOf(spec)) {
			name := f.Tag.Get("json")
			value := values[name]
			if value == "" {
				t.Fatalf("%s.%s has no value in this test", kind, name)
			}
			manifest := manifestWith(kind, base, name, values)
			manifest += "---\napiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: lan, labels: {a: b}}\n" +
				"spec: {addresses: [10.60.0.0/24]}\n"
			objects, err := Parse([]byte(manifest))
			if err != nil {
				t.Fatal(err)
			}
			segment, err := ParseSegment("physnet=10.50.0.0/24,10.60.0.0/24")
			if err != nil {
				t.Fatal(err)
			}
			text, err := Convert(Input{Objects: objects, Segments: []Segment{segment}}).YAML()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), name) {
				t.Errorf("%s.%s: %s is neither converted nor named:\n%s%s", kind, name, value, manifest, text)
			}
		}
	}
}

// Any input gives valid objects or findings, the same each time, and text that kubectl can read.
func FuzzConvert(f *testing.F) {
	archives, err := goldens()
	if err != nil {
		f.Fatal(err)
	}
	for _, a := range archives {
		for _, file := range a.Files {
			if file.Name == "metallb.yaml" {
				f.Add(file.Data, "physnet=10.50.0.0/24@10.50.0.1,fd00:50::/64")
			}
		}
	}
	f.Fuzz(func(t *testing.T, manifests []byte, segment string) {
		objects, err := Parse(manifests)
		if err != nil {
			return
		}
		in := Input{Objects: objects}
		if s, err := ParseSegment(segment); err == nil {
			in.Segments = append(in.Segments, s)
		}
		result := Convert(in)
		for _, o := range result.Objects {
			u, err := Unstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, errs, err := crd.Check(u.GetKind(), nil, u.Object); err != nil || len(errs) > 0 {
				t.Errorf("%s: %v %v", o.GetName(), err, errs)
			}
		}
		text, err := result.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Convert(in).YAML()
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("%s\nand then (%v)\n%s", text, err, again)
		}
		written, err := Parse(text)
		if err != nil || len(written) != len(result.Objects) {
			t.Errorf("%d objects, %d in the text (%v):\n%s", len(result.Objects), len(written), err, text)
		}
	})
}

// Any name becomes one that the API server accepts, or none.
func FuzzObjectName(f *testing.F) {
	for _, name := range []string{"Prod_Pool", "a..b-.c_", "ns/service", "10.0.0.1 - 10.0.0.9", "-.-", "Süd",
		strings.Repeat("x", 300), strings.Repeat("x", 62) + "-y"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got := objectName(name); got != "" && (!isObjectName(got) || objectName(got) != got) {
			t.Errorf("%q becomes %q", name, got)
		}
	})
}

func TestParseSegmentNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"physnet":                       "is not of the form NETWORK[/VLAN]=CIDR[@GATEWAY]",
		"=10.50.0.0/24":                 "is not of the form NETWORK[/VLAN]=CIDR[@GATEWAY]",
		"phys net=10.50.0.0/24":         "is not of the form NETWORK[/VLAN]=CIDR[@GATEWAY]",
		"physnet/x=10.50.0.0/24":        `VLAN "x" is not between 1 and 4094`,
		"physnet/4095=10.50.0.0/24":     "spec.vlan",
		"physnet=10.50.0.1/24":          "has host bits set",
		"physnet=10.50.0.0/24@10.9.0.1": "is not in 10.50.0.0/24",
		"physnet=":                      "is no CIDR",
	} {
		if _, err := ParseSegment(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	s, err := ParseSegment("PhysNet_1/7=10.50.0.0/24@10.50.0.1,fd00:50::/64")
	if err != nil || s.Name() != "physnet-1-vlan7" || len(s.Subnets) != 2 || s.Subnets[0].Gateway != "10.50.0.1" {
		t.Errorf("%+v %s: %v", s, s.Name(), err)
	}
}

// The order of the input does not matter.
func TestConvertIsIndependentOfTheOrder(t *testing.T) {
	archives, err := goldens()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range archives {
		in, err := readArchive(a)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Convert(in).YAML()
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(in.Objects)
		slices.Reverse(in.Services)
		reversed, err := Convert(in).YAML()
		if err != nil {
			t.Fatal(err)
		}
		if sortedLines(text) != sortedLines(reversed) {
			t.Errorf("%s: in reverse order\n%s\nwant\n%s", a.Comment, reversed, text)
		}
	}
}

func sortedLines(text []byte) string {
	lines := strings.Split(string(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
