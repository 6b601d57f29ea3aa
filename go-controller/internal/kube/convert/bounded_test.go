// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// long is a text as long as all annotations of an object can be, and most is what may be left of several such texts.
var long = strings.Repeat("x", 250<<10)

const most = 20 << 10

// bounded fails the test if a converted object contains long texts.
func bounded(t *testing.T, of string, object any) {
	t.Helper()
	if n := len(fmt.Sprintf("%+v", object)); n > most {
		t.Errorf("%s: %d bytes are left of a long text", of, n)
	}
}

func TestTextsOfNodesAreBounded(t *testing.T) {
	for name, value := range map[string]string{
		"k8s.ovn.org/node-chassis-id":                    long,
		"k8s.ovn.org/zone-name":                          long,
		"k8s.ovn.org/l3-gateway-config":                  `{"default":{"mode":"shared","bridge-id":"` + long + `"}}`,
		v1alpha1.AnnotationDrain:                         long,
		"machineconfiguration.openshift.io/desiredDrain": "drain-" + long,
		v1alpha1.AnnotationVIPs:                          "[" + long,
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{name: value}}}
		bounded(t, name, *convert.Node(n, convert.Options{}))
		bounded(t, name, *convert.Node(n, convert.Options{OpenShiftSDN: true}).Kernel)
	}
}

// Decisions read the networks and probe requests of a node for each L2Domain, and for Services. Those that a node which
// is taken over reports are few, however many fit into its Lease.
func TestNumbersOfReportsAreBounded(t *testing.T) {
	many := func(open, entry, end string) string {
		var b strings.Builder
		b.WriteString(open)
		for i := 0; b.Len() < len(long); i++ {
			fmt.Fprintf(&b, entry+",", fmt.Sprintf("%05x", i))
		}
		return strings.TrimSuffix(b.String(), ",") + end
	}
	r := convert.ReadReport(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.AnnotationFaults: many(`{"*":{"message":"m"},`, `%q:{"message":"m"}`, "}"),
		v1alpha1.AnnotationZone:   many(`{"bridges":{`, `%q:"br"`, "}}"),
		v1alpha1.AnnotationProbed: many("[", "%q", "]"),
	}}})
	if r.Faults[world.EveryNetwork].Message == "" {
		t.Error("the fault of all networks is lost")
	}
	const few = 1000
	for what, n := range map[string]int{"faults": len(r.Faults), "bridges": len(r.Zone.Bridges), "probes": len(r.Probed)} {
		if n == 0 || n > few {
			t.Errorf("%d %s of one node count", n, what)
		}
	}
}

func TestTextsOfReportsAreBounded(t *testing.T) {
	report := func(annotation, value string) convert.Report {
		return convert.ReadReport(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{annotation: value}}})
	}
	for _, name := range []string{long, "too-long-for-an-interface", "a b", "a/b", ""} {
		agent := report(v1alpha1.AnnotationAgent, fmt.Sprintf(`{"health":"192.0.2.1:9484","interfaces":{%q:[],"eth0":[]}}`,
			name)).Agent
		if agent == nil || len(agent.Interfaces) != 1 {
			t.Errorf("an interface %.30q: got %+v", name, agent)
		}
	}
	if r := report(v1alpha1.AnnotationAgent, `{"health":"[fe80::1%`+long+`]:9484"}`); r.Agent != nil {
		t.Error("a health check at an address with a zone is accepted")
	}
	bounded(t, "conflicts",
		report(v1alpha1.AnnotationConflicts, `{"fe80::1%`+long+`":{"mac":"02:00:00:00:00:01"}}`).Conflicts)
	var many []string
	for a := netip.MustParseAddr("10.50.0.0"); len(many) < 10*convert.MaxAnnouncedConflicts; a = a.Next() {
		many = append(many, fmt.Sprintf(`%q:{"mac":"02:00:00:00:00:01"}`, a))
	}
	announced := report(v1alpha1.AnnotationAnnouncedConflicts, "{"+strings.Join(many, ",")+"}").AnnouncedConflicts
	if len(announced) != convert.MaxAnnouncedConflicts {
		t.Errorf("%d conflicts on announced addresses", len(announced))
	}
	for _, annotation := range []string{v1alpha1.AnnotationConflicts, v1alpha1.AnnotationAnnouncedConflicts} {
		r := report(annotation, `{"10.50.0.1":{"mac":"02:00:00:00:00:AB"},"10.50.0.2":{"mac":"\u001b[31mx\r\nALERT"},
			"10.50.0.3":{"mac":"02:00:00:00:00:00:00:01"},"10.50.0.4":{}}`)
		for _, found := range []map[netip.Addr]convert.ConflictReport{r.Conflicts, r.AnnouncedConflicts} {
			is := found[netip.MustParseAddr("10.50.0.1")]
			if len(found) > 1 || len(found) == 1 && is.MAC != "02:00:00:00:00:ab" {
				t.Errorf("%s: what is no MAC address is one: %q", annotation, found)
			}
		}
	}
	bounded(t, "bridges", report(v1alpha1.AnnotationZone, `{"bridges":{"`+long+`":"br-ex"}}`).Zone.Bridges)
	status := &v1alpha1.BGPNodeStatus{}
	status.Status.Sessions = []v1alpha1.BGPSession{{Peer: "router", LastError: long}}
	bounded(t, "lastError", convert.Sessions(status, time.Now()))
}

// What a node, a provider of addresses or another project writes becomes part of messages: it is short, and one line.
func TestTextsForMessagesArePrintable(t *testing.T) {
	evil := "\x1b[31m\u202e\r\n" + long
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	report := func(annotation, format string) convert.Report {
		return convert.ReadReport(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{annotation: strings.ReplaceAll(format, "%", string(quoted))}}})
	}
	object := func(spec, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": status}}
	}
	ref := map[string]any{"name": evil, "kind": evil, "apiGroup": evil}
	bgp := &v1alpha1.BGPNodeStatus{}
	bgp.Status.Sessions = []v1alpha1.BGPSession{{Peer: "router", LastError: evil, BFDError: evil}}
	host, _ := convert.EgressHost(object(map[string]any{"sourceIPBy": "LoadBalancerIP"}, map[string]any{"host": evil}))
	for name, got := range map[string]any{
		"faults":    report(v1alpha1.AnnotationFaults, `{"physnet":{"kind":%,"message":%,"links":%,"bridge":%}}`).Faults,
		"localnets": report(v1alpha1.AnnotationLocalnets, `{"slb-lan":{"bridge":%}}`).Localnets,
		"zone": *report(v1alpha1.AnnotationZone,
			`{"bridges":{"physnet":%},"failed":{"a/b":%},"problem":%,"unwritable":%}`).Zone,
		"poolRef":    *convert.Claim(object(map[string]any{"poolRef": ref}, nil), nil),
		"addressRef": *convert.Claim(object(nil, map[string]any{"addressRef": map[string]any{"name": evil}}), nil),
		"refusal": *convert.Claim(object(nil, map[string]any{"conditions": []any{map[string]any{"type": "Ready",
			"status": "False", "reason": evil, "message": evil}}}), nil),
		"host": host,
		"bgp":  convert.Sessions(bgp, time.Now()),
	} {
		bounded(t, name, got)
		text := fmt.Sprintf("%+v", got)
		if !strings.Contains(text, `\u001b[31m`) || printable.Line(text) != text {
			t.Errorf("%s: %.200q", name, text)
		}
	}
}

func TestTextsOfServicesAreBounded(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"a pool":    func(s *corev1.Service) { s.Annotations[v1alpha1.AnnotationAddressPool] = long },
		"a key":     func(s *corev1.Service) { s.Annotations[v1alpha1.AnnotationAllowSharedIP] = long },
		"addresses": func(s *corev1.Service) { s.Annotations[v1alpha1.AnnotationLoadBalancerIPs] = long },
		"two": func(s *corev1.Service) {
			s.Annotations[v1alpha1.AnnotationLoadBalancerIPs] = "192.0.2.1,192.0.2.2," + long
		},
		"an address": func(s *corev1.Service) { s.Spec.LoadBalancerIP = long },
		"bad ranges": func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{strings.Repeat("01.0.0.0/8,", 9000)}
		},
		"good ranges": func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{strings.Repeat("1.0.0.0/8,", 9000)}
		},
		"many ranges": func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{strings.Repeat("1.0.0.0/8,", 20000)}
		},
	} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		s.Spec.Type, s.Spec.IPFamilies = corev1.ServiceTypeLoadBalancer, []corev1.IPFamily{corev1.IPv4Protocol,
			corev1.IPv6Protocol}
		change(s)
		got, ok := convert.Service(s, nil, convert.Options{DefaultClass: true})
		if !ok {
			t.Fatal("the Service is not ours")
		}
		bounded(t, name, *got)
	}
}

func TestLongSharingKeysStayDistinct(t *testing.T) {
	key := func(text string) string {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			v1alpha1.AnnotationAllowSharedIP: text}}}
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		got, _ := convert.Service(s, nil, convert.Options{DefaultClass: true})
		return got.SharingKey
	}
	if key(long+"a") == key(long+"b") || key(long) != key(strings.Clone(long)) || key("a") != "a" {
		t.Error("keys that differ must stay different, and equal ones equal")
	}
}

// An IPv6 zone can contain anything, and addresses become part of the matches of OVN's rows.
func TestAddressesWithZonesAreIgnored(t *testing.T) {
	const address = "fe80::1%eth0"
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"k8s.ovn.org/node-masquerade-subnet": `{"ipv6":"fd69::/125"}`,
		"k8s.ovn.org/l3-gateway-config":      `{"default":{"mode":"shared","next-hops":["` + address + `"]}}`,
	}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	if got := convert.Node(n, convert.Options{}); len(got.Addrs)+len(got.Hosts)+len(got.External)+len(got.NextHops) > 0 {
		t.Errorf("a node has %v, %v, %v, %v", got.Addrs, got.Hosts, got.External, got.NextHops)
	}
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv6,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}}
	if got, _ := convert.Slice(slice); len(got.Endpoints) > 0 {
		t.Errorf("a slice has %v", got.Endpoints)
	}
}

// Each address of spec.externalIPs is examined in each pass. An address that the condition does not list would be lost
// to others after a restart of the controller.
func TestExternalIPsAreBounded(t *testing.T) {
	class := v1alpha1.LoadBalancerClass
	for _, c := range []struct {
		n    int
		addr func(i int) string
		why  string // in the only limit, or empty if the addresses are within the limits
	}{
		{2500, ipv4, ""},
		{2501, ipv4, "spec.externalIPs: 2501 addresses are more than the limit of 2500"},
		{799, longIPv6, ""},
		{800, longIPv6, "spec.externalIPs: 800 addresses take 32798 bytes in the condition ExternalIPs"},
	} {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class}}
		for i := range c.n {
			s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, c.addr(i))
		}
		want, limits := c.n, 0
		if c.why != "" {
			want, limits = 0, 1
		}
		got, _ := convert.Service(s, nil, convert.Options{})
		if len(got.ExternalIPs) != want || len(got.Limits) != limits ||
			limits > 0 && !strings.Contains(got.Limits[0], c.why) {
			t.Errorf("%d addresses: %d are left, limits %q", c.n, len(got.ExternalIPs), got.Limits)
		}
	}
}

func ipv4(i int) string { return fmt.Sprintf("10.60.%d.%d", i>>8, i&255) }

func longIPv6(i int) string { return fmt.Sprintf("2001:1db8:ffff:ffff:ffff:ffff:ffff:%x", 0xf000+i) }

// Reading ranges takes longer than all else, and a status write of ours is one more reading.
func TestListedSourceRangesAreLimited(t *testing.T) {
	for n, want := range map[int]int{world.MaxListedRanges: 1, world.MaxListedRanges + 1: 0} {
		s := &corev1.Service{}
		s.Spec.Type, s.Spec.IPFamilies = corev1.ServiceTypeLoadBalancer, []corev1.IPFamily{corev1.IPv4Protocol}
		s.Spec.LoadBalancerSourceRanges = slices.Repeat([]string{"192.0.2.0/24"}, n)
		got, _ := convert.Service(s, nil, convert.Options{DefaultClass: true})
		admitted, restricted := got.SourceRanges[world.IPv4]
		if !restricted || len(admitted) != want || got.ListedRanges != n {
			t.Errorf("%d equal ranges: %v are admitted", n, admitted)
		}
	}
}

// A guard ignores requests whose replies may not fit into its Lease.
func TestRequestsOfTooManyAddressesAreIgnored(t *testing.T) {
	const full = world.MaxProbesPerGuard
	var list []world.ProbeRequest
	a := netip.MustParseAddr("10.50.0.0")
	for _, n := range []int{full - 1, 2, 1} {
		q := world.ProbeRequest{ID: fmt.Sprint(n), Network: "provider"}
		for range n {
			q.Addresses = append(q.Addresses, a)
			a = a.Next()
		}
		list = append(list, q)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	l := &coordinationv1.Lease{}
	l.Annotations = map[string]string{v1alpha1.AnnotationAddressProbes: string(text)}
	got := convert.ProbeRequests(l)
	if len(got) != 2 || len(got[0].Addresses) != full-1 || len(got[1].Addresses) != 1 {
		t.Errorf("%d requests, want the first and the last one", len(got))
	}
}
