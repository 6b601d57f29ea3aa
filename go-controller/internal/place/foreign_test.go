// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestForeignSubnets(t *testing.T) {
	const want = "no IPv4 address of a node is in 10.50.0.0/24, although "
	for name, c := range map[string]struct {
		change func(*world.Domain, *world.Snapshot)
		want   string
	}{
		"another subnet": {func(*world.Domain, *world.Snapshot) {},
			want + "physnet is the nodes' own network (172.18.0.0/24)"},
		"another name of the bridge": {func(d *world.Domain, w *world.Snapshot) {
			d.PhysicalNetwork, w.Nodes[0].GatewayBridge = "lan", "br-ex"
			w.Bridges = map[string]world.Bridges{"c1": {"lan": "br-ex"}}
		}, want + "lan is the nodes' own network"},
		"no length of a prefix": {func(_ *world.Domain, w *world.Snapshot) { w.Nodes[0].Links = nil },
			want + "physnet is the nodes' own network (172.18.0.11)"},
		"the subnet of the nodes": {change: func(d *world.Domain, _ *world.Snapshot) {
			d.Subnets = append(d.Subnets, world.Subnet{Prefix: netip.MustParsePrefix("172.18.0.0/16")})
		}},
		"a network of its own": {change: func(d *world.Domain, _ *world.Snapshot) { d.PhysicalNetwork = "lan" }},
		"a VLAN":               {change: func(d *world.Domain, _ *world.Snapshot) { d.VLAN = 7 }},
		"nodes that are not selected": {change: func(d *world.Domain, _ *world.Snapshot) {
			d.Nodes = []string{"n2"}
		}},
		"nodes without an address of the family": {func(d *world.Domain, _ *world.Snapshot) {
			d.Subnets = []world.Subnet{{Prefix: netip.MustParsePrefix("fd00:50::/64")}}
		}, "fd00:50::/64, although no node has an IPv6 address on its own network, which is physnet"},
		"nodes whose own network is not known": {change: func(_ *world.Domain, w *world.Snapshot) {
			w.Nodes[0].External = nil
		}},
	} {
		d := &world.Domain{Name: "lan", Nodes: []string{"n1"}, PhysicalNetwork: world.GatewayNetwork,
			Subnets: []world.Subnet{{Prefix: netip.MustParsePrefix("10.50.0.0/24")}}}
		own := netip.MustParseAddr("172.18.0.11")
		w := &world.Snapshot{Nodes: []*world.Node{{Name: "n1", Chassis: "c1", Addrs: []netip.Addr{own},
			External: []netip.Addr{own}, Links: []netip.Prefix{netip.PrefixFrom(own, 24)}}}}
		c.change(d, w)
		got := strings.Join(place.ForeignSubnets(d, w), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
