// SPDX-License-Identifier: Apache-2.0

package zones_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func backend(addr, node string) plan.Backend {
	return plan.Backend{Addr: netip.MustParseAddrPort(addr), Node: node}
}

// web returns a plan with one listener per family and the given backends of the IPv4 listener.
func web(backends ...plan.Backend) *plan.Service {
	v4, v6 := netip.MustParseAddr("10.50.0.100"), netip.MustParseAddr("fd00:50::100")
	host := backend("172.18.0.11:8080", "n1")
	host.HostNetwork = true
	return &plan.Service{
		Key: world.Key{Namespace: "shop", Name: "web"}, SessionAffinity: true, ConnectionsMayEnd: true,
		VIPs: []plan.VIP{{Addr: v4, Shard: world.ShardID{Domain: "lan", Index: 3}, EgressMAC: "02:42:0a:32:00:0c"},
			{Addr: v6, Shard: world.ShardID{Domain: "lan", Index: 0}}},
		Listeners: []plan.Listener{
			{VIP: v4, Protocol: world.TCP, Port: 80, Backends: backends, Draining: []plan.Backend{host}},
			{VIP: v6, Protocol: world.UDP, Port: 53},
		},
		SourceRanges: map[world.Family][]netip.Prefix{world.IPv4: {netip.MustParsePrefix("10.0.0.0/8")}, world.IPv6: nil},
	}
}

func TestDecodeIsTheInverseOfEncode(t *testing.T) {
	p := web(backend("10.244.0.3:8080", "n1"), backend("10.244.1.3:8080", "n2"))
	spec := zones.Encode(p, nil)
	got, err := zones.Decode(&spec)
	if diff := cmp.Diff(p, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}),
		cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// All zones have the same slots, so that a connection has the same backend after a failover.
func TestBackendsKeepTheirSlots(t *testing.T) {
	a, b, c := backend("10.244.0.3:8080", "n1"), backend("10.244.1.3:8080", "n2"), backend("10.244.2.3:8080", "n3")
	first := zones.Encode(web(a, b, c), nil)
	for _, step := range []struct {
		backends []plan.Backend
		want     []string
	}{
		{[]plan.Backend{a, c}, []string{"10.244.0.3:8080", "10.244.0.3:8080", "10.244.2.3:8080"}},
		{[]plan.Backend{a, backend("10.244.0.9:8080", "n1"), c}, []string{"10.244.0.3:8080", "10.244.0.9:8080",
			"10.244.2.3:8080"}},
	} {
		spec := zones.Encode(web(step.backends...), &first)
		var got []string
		for _, b := range spec.Listeners[0].Backends {
			got = append(got, b.Address)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		first = spec
	}
}

func TestInvalidValuesAreNamed(t *testing.T) {
	for want, spec := range map[string]v1alpha1.ServicePlanSpec{
		`spec.vips: address "x": ParseAddr("x"): unable to parse IP`: {VIPs: []v1alpha1.PlannedVIP{{Address: "x"}}},
		`spec.listeners: backend "x": not an ip:port`: {Listeners: []v1alpha1.PlannedListener{{Address: "192.0.2.1",
			Backends: []v1alpha1.PlannedBackend{{Address: "x"}}}}},
		`spec.sourceRanges: cidr "x": netip.ParsePrefix("x"): no '/'`: {
			SourceRanges: []v1alpha1.PlannedSourceRanges{{IPFamily: "IPv4",
				CIDRs: []string{"x"}}}},
	} {
		if _, err := zones.Decode(&spec); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
