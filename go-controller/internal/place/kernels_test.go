// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// kernels returns nodes of OpenShift SDN: four with an agent on the segment, one with an agent elsewhere, one
// without.
func kernels() *world.Snapshot {
	w := &world.Snapshot{Cluster: world.Cluster{OpenShiftSDN: true}, ShardStates: map[world.ShardID]world.ShardState{}}
	d := &world.Domain{Name: "lan", PhysicalNetwork: "eth2", MaxGateways: 5,
		Subnets: []world.Subnet{{Prefix: netip.MustParsePrefix("10.50.0.0/24")}}}
	for i := range 6 {
		n := &world.Node{Name: fmt.Sprintf("n%d", i), Chassis: fmt.Sprintf("n%d", i),
			Kernel: &world.Kernel{Interfaces: map[string][]netip.Prefix{
				"eth0": {netip.MustParsePrefix("172.31.0.1/24")},
				"eth1": {netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 50, 0, byte(10 + i)}), 24)},
			}}}
		if i == 0 {
			n.Kernel.Interfaces["eth2"] = n.Kernel.Interfaces["eth1"]
		}
		if i == 4 {
			delete(n.Kernel.Interfaces, "eth1")
		}
		if i < 5 {
			n.Kernel.Agent = netip.MustParseAddrPort("172.31.0.1:9484")
		}
		w.Nodes = append(w.Nodes, n)
		d.Nodes = append(d.Nodes, n.Name)
	}
	w.Domains = []*world.Domain{d}
	return w
}

func preferred(d *place.Domain) map[int]string {
	out := map[int]string{}
	for _, s := range d.Shards {
		out[s.ID.Index] = s.Gateways[0].Node
	}
	return out
}

// A node with an agent and an address on the segment is a gateway, by the interface that has the address, or
// preferably by the one named like the network.
func TestKernelsAttached(t *testing.T) {
	d := place.Compute(kernels()).Domains[0]
	loads := map[string]int{}
	for _, s := range d.Shards {
		loads[s.Gateways[0].Node]++
		for _, g := range s.Gateways {
			want := "eth1"
			if g.Node == "n0" {
				want = "eth2"
			}
			if g.Interface != want {
				t.Errorf("shard %d: gateway %+v, want interface %s", s.ID.Index, g, want)
			}
		}
	}
	if len(loads) != 4 || loads["n0"] != 2 {
		t.Errorf("8 shards are on %v", loads)
	}
	if d.TooFewGateways {
		t.Error("four gateways are too few")
	}
	reasons := map[string]place.Reason{"n4": place.ReasonNotAttached, "n5": place.ReasonNoAgent}
	for _, out := range d.Excluded {
		if reasons[out.Node] != out.Reason {
			t.Errorf("excluded: %+v", out)
		}
		delete(reasons, out.Node)
	}
	if len(reasons) > 0 {
		t.Errorf("not excluded: %v", reasons)
	}
}

// The shards of a lost node move, no others do, and none moves back.
func TestKernelsFailOver(t *testing.T) {
	w := kernels()
	before := preferred(place.Compute(w).Domains[0])
	for i, node := range before {
		w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{
			Active: node, Settled: true, Order: []string{node},
		}
	}
	w.Nodes[1].Faults = map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultAgent,
		Message: "its agent does not answer"}}
	moved := preferred(place.Compute(w).Domains[0])
	for i, node := range moved {
		if node == "n1" || before[i] != "n1" && node != before[i] {
			t.Errorf("shard %d is on %s, was on %s", i, node, before[i])
		}
		w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{
			Active: node, Settled: true, Order: []string{node},
		}
	}
	w.Nodes[1].Faults = nil
	for i, node := range preferred(place.Compute(w).Domains[0]) {
		if node != moved[i] {
			t.Errorf("shard %d moved back from %s to %s", i, moved[i], node)
		}
	}
}

// A gateway that has no address in the subnets of one family any more gives its shards to those that have, and gets
// none back. If no gateway has one, nothing moves, and addresses of the other family are served.
func TestKernelsWithoutFamily(t *testing.T) {
	w := kernels()
	w.Domains[0].Subnets = append(w.Domains[0].Subnets, world.Subnet{Prefix: netip.MustParsePrefix("fd00:50::/64")})
	addrs := map[string][]netip.Prefix{}
	for i, n := range w.Nodes {
		addrs[n.Name] = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 50, 0, byte(10 + i)}), 24),
			netip.MustParsePrefix(fmt.Sprintf("fd00:50::%d/64", 10+i))}
		n.Kernel.Interfaces = map[string][]netip.Prefix{"eth1": addrs[n.Name]}
	}
	last := map[int]string{}
	place := func() (moved int) {
		t.Helper()
		d := place.Compute(w).Domains[0]
		for i, node := range preferred(d) {
			if last[i] != "" && last[i] != node {
				moved++
			}
			last[i] = node
			w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{
				Active: node, Settled: true, Order: []string{node}}
		}
		return moved
	}
	place()
	had := 0
	for _, node := range last {
		if node == "n1" {
			had++
		}
	}
	w.Nodes[1].Kernel.Interfaces["eth1"] = addrs["n1"][:1]
	if moved := place(); had == 0 || moved != had {
		t.Errorf("n1 had %d shards, and %d have moved", had, moved)
	}
	for i, node := range last {
		if node == "n1" {
			t.Errorf("shard %d is on n1", i)
		}
	}
	w.Nodes[1].Kernel.Interfaces["eth1"] = addrs["n1"]
	if moved := place(); moved > 0 {
		t.Errorf("%d shards have moved back", moved)
	}
	for _, n := range w.Nodes {
		n.Kernel.Interfaces["eth1"] = addrs[n.Name][:1]
	}
	if moved := place(); moved > 0 || len(last) == 0 {
		t.Errorf("%d shards have moved although no node has IPv6", moved)
	}
}
