// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, first, last string }{
		{"10.0.0.0/30", "10.0.0.0", "10.0.0.3"},
		{"10.0.0.9-10.0.1.2", "10.0.0.9", "10.0.1.2"},
		{"10.0.0.9 - 10.0.0.9", "10.0.0.9", "10.0.0.9"},
		{"FD00:0::5", "fd00::5", "fd00::5"},
		{"fd00::/127", "fd00::", "fd00::1"},
		{"fd00::1-fd00::1:0", "fd00::1", "fd00::1:0"},
	} {
		got, err := AddressRange(c.text).Parse()
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.From().String() != c.first || got.To().String() != c.last {
			t.Errorf("%s is %s, want %s-%s", c.text, got, c.first, c.last)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/24", "10.0.0.1-10.0.0.9", "fd00::1", "fd00::/64", "fe80::1%eth0",
		"::ffff:1.2.3.4", "-", "1/2/3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := AddressRange(text).Parse()
		if err != nil {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("the error does not name the value %q: %v", text, err)
			}
			return
		}
		if !r.IsValid() || r.From().Zone() != "" || r.From().Is4() != r.To().Is4() || r.To().Less(r.From()) {
			t.Errorf("%q is %s", text, r)
		}
		again, err := AddressRange(r.String()).Parse()
		if err != nil || again != r {
			t.Errorf("%q is %s, which is %s: %v", text, r, again, err)
		}
	})
}

// These checks exist only in Go. All others are compared with the API server's rules in test/api.
func TestValidateBeyondTheSchema(t *testing.T) {
	odd := []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}
	pool := &IPAddressPool{Spec: IPAddressPoolSpec{
		Addresses:         []AddressRange{"10.0.0.0/24", "223.255.255.0-224.0.0.1"},
		ServiceAllocation: &ServiceAllocation{NamespaceSelectors: odd},
		ReuseDelay:        &metav1.Duration{Duration: -time.Second},
		Reservations: []Reservation{
			{Namespace: "a", Name: "b", Addresses: []IPAddress{"10.0.0.1"}},
			{Namespace: "a", Name: "c", Addresses: []IPAddress{"10.0.0.1"}},
		},
	}}
	domain := &L2Domain{Spec: L2DomainSpec{
		PhysicalNetwork: "provider", VLAN: 4095, NodeSelectors: odd, ServiceSelectors: odd,
		Subnets:  []Subnet{{CIDR: "10.50.0.0/24", Gateway: "10.50.0.255"}, {CIDR: "192.0.2.0/31", Gateway: "192.0.2.1"}},
		Gateways: GatewaySet{Preferred: []PreferredGateways{{Weight: 1}, {Weight: 1, Preference: odd[0]}}},
	}}
	for want, got := range map[string]string{
		`spec.addresses[1]: Invalid value: "223.255.255.0-224.0.0.1"`: pool.Validate().ToAggregate().
			Error(),
		`"Near" is not a valid label selector operator`: pool.Validate().ToAggregate().
			Error(),
		`spec.reuseDelay: Invalid value: "-1s"`: pool.Validate().ToAggregate().
			Error(),
		`spec.reservations[1].addresses[0]: Invalid value: "10.0.0.1": is reserved for a/b`: pool.Validate().ToAggregate().
			Error(),
		`spec.vlan: Invalid value: 4095`: domain.Validate().ToAggregate().
			Error(),
		`spec.subnets[0].gateway: Invalid value: "10.50.0.255": is the broadcast address of`: domain.Validate().ToAggregate().
			Error(),
		`spec.nodeSelectors[0]`: domain.Validate().ToAggregate().
			Error(),
		`spec.serviceSelectors[0]`: domain.Validate().ToAggregate().
			Error(),
		`spec.gateways.preferred[1].preference`: domain.Validate().ToAggregate().
			Error(),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if n := len(domain.Validate()); n != 5 {
		t.Errorf("%d errors of the domain, want 5: %v", n, domain.Validate())
	}
}

// A client that uses only AddToScheme can decode every kind.
func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	for _, kind := range []string{
		"IPAddressPool", "L2Domain", "BGPPeer", "BGPAdvertisement", "BFDProfile", "Community", "BGPNodeStatus",
		"IPAddressPoolList", "L2DomainList", "BGPPeerList", "BGPAdvertisementList", "BFDProfileList", "CommunityList",
		"BGPNodeStatusList",
	} {
		text, err := json.Marshal(metav1.TypeMeta{APIVersion: GroupVersion().String(), Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := object.GetObjectKind().GroupVersionKind(); got != GroupVersion().WithKind(kind) {
			t.Errorf("%s is decoded as %s", kind, got)
		}
	}
}

// A peer that was not validated by the API server.
func TestValidatePeer(t *testing.T) {
	second := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Second} }
	for name, c := range map[string]struct {
		spec BGPPeerSpec
		want string
	}{
		"good":            {BGPPeerSpec{PeerAddress: "10.0.0.1", HoldTime: second(9), KeepaliveTime: second(3)}, ""},
		"never":           {BGPPeerSpec{PeerAddress: "fd00::1", HoldTime: second(0), KeepaliveTime: second(3)}, ""},
		"unnumbered":      {BGPPeerSpec{Interface: "eth1"}, ""},
		"empty":           {BGPPeerSpec{}, "spec.peerAddress"},
		"both":            {BGPPeerSpec{PeerAddress: "10.0.0.1", Interface: "eth1"}, "spec.peerAddress"},
		"no address":      {BGPPeerSpec{PeerAddress: "tor"}, `spec.peerAddress: Invalid value: "tor"`},
		"link-local IPv4": {BGPPeerSpec{PeerAddress: "169.254.255.1"}, ""},
		"link-local IPv6": {BGPPeerSpec{PeerAddress: "fe80::1"}, "name the interface"},
		"loopback":        {BGPPeerSpec{PeerAddress: "127.0.0.1"}, ""},
		"multicast IPv4":  {BGPPeerSpec{PeerAddress: "239.1.1.1"}, "no unicast address"},
		"multicast IPv6":  {BGPPeerSpec{PeerAddress: "ff05::1"}, "no unicast address"},
		"broadcast":       {BGPPeerSpec{PeerAddress: "255.255.255.255"}, "no unicast address"},
		"unspecified":     {BGPPeerSpec{PeerAddress: "::"}, "no unicast address"},
		"router ID":       {BGPPeerSpec{PeerAddress: "10.0.0.1", RouterID: "fd00::1"}, "spec.routerID"},
		"source":          {BGPPeerSpec{PeerAddress: "10.0.0.1", SourceAddress: "here"}, "spec.sourceAddress"},
		"hold time too short": {BGPPeerSpec{PeerAddress: "10.0.0.1", HoldTime: second(8), KeepaliveTime: second(3)},
			`spec.holdTime: Invalid value: "8s"`},
		"keepalive by default": {BGPPeerSpec{PeerAddress: "10.0.0.1", KeepaliveTime: second(31)},
			`spec.holdTime: Invalid value: "1m30s"`},
		"selector of odd labels": {BGPPeerSpec{PeerAddress: "10.0.0.1",
			NodeSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"?": "a"}}}}, "spec.nodeSelectors[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := (&BGPPeer{Spec: c.spec}).Validate()
			if (len(errs) > 0) != (c.want != "") || c.want != "" && !strings.Contains(errs.ToAggregate().Error(), c.want) {
				t.Errorf("got %v, want %q", errs, c.want)
			}
		})
	}
}
