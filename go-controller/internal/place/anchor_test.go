// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The router of a shard has the next hop of its anchor's subnet only (ovn/rows/router.go). A tenant with an old
// Service, of whatever type it was before, must not take it from all others by an address in another subnet.
func TestAnchorIsInASubnetWithANextHop(t *testing.T) {
	old := worldtest.Service(world.Key{Namespace: "tenant", Name: "old"}, 1)
	other := worldtest.Service(world.Key{Namespace: "victim", Name: "web"}, 2)
	w := worldtest.Small(10, old, other)
	d := w.Domains[0]
	d.Shards = 1
	onlink := netip.MustParsePrefix("198.51.100.0/24")
	d.Subnets[0].Gateway = d.Subnets[0].Prefix.Addr().Next()
	d.Subnets = append(d.Subnets, world.Subnet{Prefix: onlink}) // without a gateway: clients on the segment only
	w.Pools[0].Ranges = append(w.Pools[0].Ranges, netipx.RangeOfPrefix(onlink))
	old.Requested, old.RequestedBy = []netip.Addr{netip.MustParseAddr("198.51.100.9")}, "annotation"
	l := place.Compute(w)
	topology := l.Topology(w, l.Place(w, ipam.Allocate(w, l.ShardOf), nil))
	for _, anchor := range topology.Domains[0].Shards[0].Anchors {
		if anchor.Addr().Is4() && onlink.Contains(anchor.Addr()) {
			t.Errorf("the anchor of the shard is %s: its router has no default route, and %s is in %s, which has one",
				anchor, "victim/web", d.Subnets[0].Prefix)
		}
	}
}

// Another anchor is another address of the router's port, for which ovn-northd computes everything anew (ADR 23). So it
// stays as long as it is in the shard, also beside an older Service that has left and returned, and so does the subnet,
// with its next hop. One in a subnet without a next hop gives way to one with.
func TestAnchorStaysInItsShard(t *testing.T) {
	for name, test := range map[string]struct {
		last, requested []string // requested by Services, oldest first
		want            string
	}{
		"no last one":           {nil, []string{"10.50.0.100", "10.50.0.101"}, "10.50.0.100"},
		"older one returns":     {[]string{"10.50.0.101"}, []string{"10.50.0.100", "10.50.0.101"}, "10.50.0.101"},
		"last one leaves":       {[]string{"10.50.0.109"}, []string{"10.50.0.100", "10.50.0.101"}, "10.50.0.100"},
		"last of two families":  {[]string{"fd00::1", "10.50.0.101"}, []string{"10.50.0.100", "10.50.0.101"}, "10.50.0.101"},
		"subnet stays":          {[]string{"192.0.2.9"}, []string{"10.50.0.100", "192.0.2.4", "192.0.2.3"}, "192.0.2.4"},
		"subnet has no other":   {[]string{"192.0.2.9"}, []string{"10.50.0.101", "10.50.0.100"}, "10.50.0.101"},
		"last without next hop": {[]string{"198.51.100.9"}, []string{"198.51.100.9", "192.0.2.4"}, "192.0.2.4"},
		"none with a next hop":  {[]string{"198.51.100.9"}, []string{"198.51.100.8", "198.51.100.9"}, "198.51.100.9"},
		"last in no subnet":     {[]string{"203.0.113.9"}, []string{"192.0.2.4", "10.50.0.100"}, "192.0.2.4"},
	} {
		t.Run(name, func(t *testing.T) {
			var services []*world.Service
			for i, a := range test.requested {
				s := worldtest.Service(world.Key{Namespace: "shop", Name: string(rune('a' + i))}, i+1)
				s.Requested, s.RequestedBy = []netip.Addr{netip.MustParseAddr(a)}, "annotation"
				services = append(services, s)
			}
			w := worldtest.Small(10, services...)
			for _, text := range []string{"192.0.2.0/24", "198.51.100.0/24"} {
				prefix := netip.MustParsePrefix(text)
				w.Domains[0].Subnets = append(w.Domains[0].Subnets, world.Subnet{Prefix: prefix})
				w.Pools[0].Ranges = append(w.Pools[0].Ranges, netipx.RangeOfPrefix(prefix))
			}
			w.Domains[0].Subnets[1].Gateway = netip.MustParseAddr("192.0.2.1")
			for _, a := range test.last {
				id := world.ShardID{Domain: "lan"}
				w.Anchors = map[world.ShardID][]netip.Addr{id: append(w.Anchors[id], netip.MustParseAddr(a))}
			}
			slices.Reverse(w.Services) // Their order does not matter.
			l := place.Compute(w)
			topology := l.Topology(w, l.Place(w, ipam.Allocate(w, l.ShardOf), nil))
			if got := topology.Domains[0].Shards[0].Anchors; len(got) != 1 || got[0].Addr().String() != test.want {
				t.Errorf("anchors %v, want %s", got, test.want)
			}
		})
	}
}
