// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A condition names the gateways that fail, not only the first of them, and bounds their number.
func TestConditionsNameSeveralGateways(t *testing.T) {
	service := func(n int) (*Builder, *plan.Service, []place.Placement) {
		v := &Builder{nodes: map[string]*world.Node{}, active: map[world.ShardID]string{}, Decision: &decide.Decision{
			World: &world.Snapshot{}, Layout: &place.Layout{TunnelsDown: map[string]world.TunnelFault{}}}}
		p := &plan.Service{}
		var placements []place.Placement
		for i := range n {
			name, shard := fmt.Sprintf("n%d", i), world.ShardID{Domain: "lan", Index: i}
			vip := plan.VIP{Addr: netip.AddrFrom4([4]byte{10, 50, 0, byte(i)}), Shard: shard}
			v.active[shard], v.nodes[name] = name, &world.Node{Name: name, Agent: &world.ZoneAgent{Silent: true}}
			v.Layout.TunnelsDown[name] = world.TunnelFault{Why: "tunnels of " + name}
			p.VIPs = append(p.VIPs, vip)
			p.Listeners = append(p.Listeners, plan.Listener{VIP: vip.Addr,
				Backends: []plan.Backend{{Addr: netip.AddrPortFrom(vip.Addr, 80), Node: fmt.Sprintf("n%d", (i+1)%n)}}})
			placements = append(placements, place.Placement{Addr: vip.Addr, Shard: shard})
		}
		return v, p, placements
	}
	check := func(message string, want ...string) {
		t.Helper()
		for _, part := range want {
			if !strings.Contains(message, part) {
				t.Errorf("no %q in %q", part, message)
			}
		}
	}
	v, p, placements := service(2)
	check(v.silentZone(p.VIPs).Message, "address 10.50.0.0: the agent of node n0, its active gateway",
		"; address 10.50.0.1: the agent of node n1, its active gateway")
	text, _ := v.beyondTunnels(p)
	check(text, "2 of 2 endpoints fail, because OVN does not reach nodes n0, n1: node n0: tunnels of n0")
	clear(v.active)
	check(v.announcedByOVN(world.Key{}, placements, nil, p).Message, "no gateway has claimed shard 0 of L2Domain lan",
		"; no gateway has claimed shard 1 of L2Domain lan, which has address 10.50.0.1")
	v, p, _ = service(6)
	check(v.silentZone(p.VIPs).Message, "the agent of node n2, its active gateway", "; and 3 other gateways")
	text, _ = v.beyondTunnels(p)
	check(text, "OVN does not reach more than 5 nodes: node n0")
}
