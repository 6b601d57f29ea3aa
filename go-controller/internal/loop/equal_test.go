// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Two topologies differ if a node has become reachable, or is reachable by another address.
func TestTopologysDifferByHosts(t *testing.T) {
	topology := func(hosts ...string) *plan.Topology {
		n := plan.Node{Name: "n1", Chassis: "c1"}
		for _, masquerade := range hosts {
			n.Hosts = append(n.Hosts, world.Host{Addr: netip.MustParseAddr("172.18.0.11"),
				Masquerade: netip.MustParseAddr(masquerade)})
		}
		return &plan.Topology{Nodes: []plan.Node{n}}
	}
	none, one, other := topology(), topology("169.254.169.3"), topology("169.254.0.3")
	if !equalTopologies(one, topology("169.254.169.3")) || !equalTopologies(none, topology()) {
		t.Error("equal topologies differ")
	}
	if equalTopologies(none, one) || equalTopologies(one, other) {
		t.Error("other hosts make no difference")
	}
}

// Every field of a domain or a shard counts.
func TestTopologysDifferByEachField(t *testing.T) {
	topology := func(change func(*plan.Domain)) *plan.Topology {
		d := plan.Domain{Name: "lan", Shards: []plan.Shard{{ID: world.ShardID{Domain: "lan"}}}}
		change(&d)
		return &plan.Topology{Domains: []plan.Domain{d}}
	}
	plain := func() *plan.Topology { return topology(func(*plan.Domain) {}) }
	if !equalTopologies(plain(), plain()) {
		t.Error("equal topologies differ")
	}
	for name, change := range map[string]func(*plan.Domain){
		"network":   func(d *plan.Domain) { d.PhysicalNetwork = "physnet" },
		"VLAN":      func(d *plan.Domain) { d.VLAN = 7 },
		"detect":    func(d *plan.Domain) { d.Detect = 1 },
		"residents": func(d *plan.Domain) { d.Residents = []string{"c1"} },
		"handover":  func(d *plan.Domain) { d.Shards[0].Handover = world.HandoverAwaited },
		"gateways":  func(d *plan.Domain) { d.Shards[0].Gateways = []plan.Gateway{{Node: "n1"}} },
		"anchors":   func(d *plan.Domain) { d.Shards[0].Anchors = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")} },
	} {
		if equalTopologies(plain(), topology(change)) {
			t.Errorf("%s makes no difference", name)
		}
	}
}
