// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Two topologies differ if a node has become reachable, or is reachable by another address.
func TestTopologiesDifferByHosts(t *testing.T) {
	topology := func(hosts ...string) *Topology {
		n := Node{Name: "n1", Chassis: "c1"}
		for _, masquerade := range hosts {
			n.Hosts = append(n.Hosts, world.Host{Addr: netip.MustParseAddr("172.18.0.11"),
				Masquerade: netip.MustParseAddr(masquerade)})
		}
		return &Topology{Nodes: []Node{n}}
	}
	none, one, other := topology(), topology("169.254.169.3"), topology("169.254.0.3")
	if !EqualTopologies(one, topology("169.254.169.3")) || !EqualTopologies(none, topology()) {
		t.Error("equal topologies differ")
	}
	if EqualTopologies(none, one) || EqualTopologies(one, other) {
		t.Error("other hosts make no difference")
	}
}

// Every field of a domain or a shard counts.
func TestTopologiesDifferByEachField(t *testing.T) {
	topology := func(change func(*Domain)) *Topology {
		d := Domain{Name: "lan", Shards: []Shard{{ID: world.ShardID{Domain: "lan"}}}}
		change(&d)
		return &Topology{Domains: []Domain{d}}
	}
	plain := func() *Topology { return topology(func(*Domain) {}) }
	if !EqualTopologies(plain(), plain()) {
		t.Error("equal topologies differ")
	}
	for name, change := range map[string]func(*Domain){
		"network":   func(d *Domain) { d.PhysicalNetwork = "physnet" },
		"VLAN":      func(d *Domain) { d.VLAN = 7 },
		"detect":    func(d *Domain) { d.Detect = 1 },
		"residents": func(d *Domain) { d.Residents = []string{"c1"} },
		"handover":  func(d *Domain) { d.Shards[0].Handover = world.HandoverAwaited },
		"gateways":  func(d *Domain) { d.Shards[0].Gateways = []Gateway{{Node: "n1"}} },
		"anchors":   func(d *Domain) { d.Shards[0].Anchors = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")} },
	} {
		if EqualTopologies(plain(), topology(change)) {
			t.Errorf("%s makes no difference", name)
		}
	}
}
