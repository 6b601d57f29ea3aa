// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"net/netip"
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
