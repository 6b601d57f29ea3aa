// SPDX-License-Identifier: Apache-2.0

package sdn_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Parse is the inverse of Format.
func FuzzParse(f *testing.F) {
	f.Add(`[{"ip":"10.0.0.1","service":"shop/a","generation":3,"shard":"lan/0","interface":"eth1"}]`)
	f.Add(`[{"ip":"fd00::1","service":"shop/a","shard":"lan/12","interface":"br0.7"}]`)
	f.Add(`[{"ip":"::ffff:10.0.0.1"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		held, err := sdn.Parse(text)
		if err != nil {
			if len(held) > 0 {
				t.Errorf("%v beside %v", held, err)
			}
			return
		}
		again, err := sdn.Parse(sdn.Format(held))
		if err != nil || !slices.Equal(held, again) {
			t.Errorf("%q is read as %v, and that as %v (%v)", text, held, again, err)
		}
	})
}

// FuzzWant checks the invariants of the package: no address is assigned twice, no address moves whose gateway
// remains, addresses are given up before they are taken, and a second call has nothing to do.
func FuzzWant(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f.Add([]byte("some nodes hold some addresses of some Services"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := worldtest.Source(data)
		topology, plans, have := random(&s)
		keep := s.N(2) == 0
		desired := sdn.Want(topology, plans, have, func(world.Key) bool { return keep })
		checkContested(t, have, desired.Table)
		checkPlacements(t, topology, plans, holders(t, desired.Table))
		checkSteps(t, have, desired.Table)
		again := sdn.Want(topology, plans, have, func(world.Key) bool { return keep })
		if steps := append(sdn.Release(have, again.Table), sdn.Take(have, again.Table, none)...); len(steps) > 0 {
			t.Errorf("the same again does %v", steps)
		}
	})
}

func none(netip.Addr) bool { return false }

// checkContested removes the addresses from both tables that several nodes keep, because no plan places them. They must
// stay as they are.
func checkContested(t *testing.T, have, want sdn.Table) {
	t.Helper()
	count := map[netip.Addr]int{}
	for _, held := range want {
		for a := range held {
			count[a]++
		}
	}
	maps.DeleteFunc(count, func(_ netip.Addr, nodes int) bool { return nodes == 1 })
	for a := range count {
		for node := range have {
			if want.Has(node, a) && want[node][a] != have[node][a] {
				t.Errorf("%s has several nodes, and has changed on %s", a, node)
			}
			delete(have[node], a)
			delete(want[node], a)
		}
	}
}

// holders returns the node of each address, and fails if an address has several nodes.
func holders(t *testing.T, table sdn.Table) map[netip.Addr]string {
	t.Helper()
	out := map[netip.Addr]string{}
	for node, held := range table {
		for a := range held {
			if other := out[a]; other != "" {
				t.Fatalf("%s on %s and %s", a, node, other)
			}
			out[a] = node
		}
	}
	return out
}

func checkPlacements(
	t *testing.T, topology *plan.Topology, plans map[world.Key]*plan.Service, holders map[netip.Addr]string,
) {
	t.Helper()
	first := map[world.ShardID]string{}
	for _, d := range topology.Domains {
		if s := d.Shards[0]; len(s.Gateways) > 0 {
			first[s.ID] = s.Gateways[0].Node
		}
	}
	for key, p := range plans {
		for _, v := range p.VIPs {
			if want := first[v.Shard]; want != "" && holders[v.Addr] != want {
				t.Errorf("%s of %s is on %q, want %s", v.Addr, key, holders[v.Addr], want)
			}
		}
	}
}

// checkSteps applies the steps from one table to another to have, and checks them.
func checkSteps(t *testing.T, have, want sdn.Table) {
	t.Helper()
	for _, step := range sdn.Release(have, want) {
		if len(step.New) > 0 {
			t.Errorf("%s takes before others have given up", step)
		}
		assign(have, step)
	}
	wanted := holders(t, want)
	for a, node := range holders(t, have) {
		if wanted[a] != node {
			t.Errorf("%s is on %s yet, want %q", a, node, wanted[a])
		}
	}
	for _, step := range sdn.Take(have, want, none) {
		if len(step.Removed) > 0 {
			t.Errorf("%s gives up late", step)
		}
		assign(have, step)
	}
}

func assign(t sdn.Table, s sdn.Step) {
	delete(t, s.Node)
	for _, h := range s.Held {
		t.Add(s.Node, h)
	}
}

func random(s *worldtest.Source) (*plan.Topology, map[world.Key]*plan.Service, sdn.Table) {
	node := func() string { return fmt.Sprintf("n%d", s.N(4)) }
	addr := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(s.N(6) + 1)}) }
	key := func() world.Key { return world.Key{Namespace: "shop", Name: strings.Repeat("a", s.N(4)+1)} }
	// The address determines the shard. Existing assignments may be older than the domain.
	shard := func(a netip.Addr) world.ShardID { return world.ShardID{Domain: "lan", Index: int(a.As4()[3]) % 3} }
	topology := &plan.Topology{}
	for i := range s.N(4) {
		d := plan.Domain{Name: "lan", Shards: []plan.Shard{{ID: world.ShardID{Domain: "lan", Index: i}}}}
		if s.N(4) > 0 {
			d.Shards[0].Gateways = []plan.Gateway{{Node: node(), Interface: "eth1"}}
		}
		topology.Domains = append(topology.Domains, d)
	}
	plans := map[world.Key]*plan.Service{}
	for range s.N(4) {
		p := &plan.Service{Key: key()}
		for range s.N(3) {
			a := addr()
			p.VIPs = append(p.VIPs, plan.VIP{Addr: a, Shard: shard(a)})
		}
		plans[p.Key] = p
	}
	have := sdn.Table{}
	for range s.N(8) {
		have.Add(node(), world.Held{Addr: addr(), Service: key(), Generation: uint64(s.N(3)),
			Shard: world.ShardID{Domain: "lan", Index: s.N(3)}, Interface: "eth1"})
	}
	return topology, plans, have
}
