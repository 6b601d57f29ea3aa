// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Table maps each node to the addresses assigned to it.
type Table map[string]map[netip.Addr]world.Held

// Add assigns an address to a node.
func (t Table) Add(node string, h world.Held) {
	if t[node] == nil {
		t[node] = map[netip.Addr]world.Held{}
	}
	t[node][h.Addr] = h
}

// Of returns the addresses assigned to a node, sorted.
func (t Table) Of(node string) []world.Held { return sorted(t[node]) }

// Clone returns a copy of the table.
func (t Table) Clone() Table {
	out := make(Table, len(t))
	for node, held := range t {
		out[node] = maps.Clone(held)
	}
	return out
}

// Has reports whether an address is assigned to a node.
func (t Table) Has(node string, a netip.Addr) bool {
	_, has := t[node][a]
	return has
}

// Without returns a copy of the table without the assignments of another one.
func (t Table) Without(other Table) Table {
	out := t.Clone()
	for node, held := range other {
		for a := range held {
			delete(out[node], a)
		}
	}
	return out
}

func sorted(held map[netip.Addr]world.Held) []world.Held {
	return slices.SortedFunc(maps.Values(held), func(a, b world.Held) int { return a.Addr.Compare(b.Addr) })
}

// ShardStates returns the active gateway of each shard with an assigned address. If several nodes hold addresses of a
// shard, for example after the shards of a domain have changed, it is the node with the highest generation.
func (t Table) ShardStates() map[world.ShardID]world.ShardState {
	newest := map[world.ShardID]uint64{}
	shardStates := map[world.ShardID]world.ShardState{}
	for _, node := range slices.Sorted(maps.Keys(t)) {
		for _, h := range t[node] {
			if last, known := newest[h.Shard]; !known || h.Generation > last {
				newest[h.Shard] = h.Generation
				shardStates[h.Shard] = world.ShardState{Active: node, Settled: true, Order: []string{node}}
			}
		}
	}
	return shardStates
}

// Assignment is the desired assignment.
type Assignment struct {
	Table Table
	// Failed contains the reasons why a Service gets none, or not all, of its addresses.
	Failed map[world.Key]string
}

// Want returns the desired assignment: the first gateway of each shard holds the shard's addresses. Assignments in
// have of Services without a plan remain if keep returns true. An address that two Services share is assigned for the
// first Service by name.
func Want(
	topology *plan.Topology, plans map[world.Key]*plan.Service, have Table, keep func(world.Key) bool,
) Assignment {
	w := Assignment{Table{}, map[world.Key]string{}}
	gateways := gateways(topology)
	last := newest(have)
	placed := map[netip.Addr]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(plans), world.Key.Compare) {
		for _, v := range plans[key].VIPs {
			if placed[v.Addr] {
				continue
			}
			g, ok := gateways[v.Shard]
			if !ok {
				w.Failed[key] = fmt.Sprintf("address %s: shard %d of L2Domain %s has no gateway", v.Addr, v.Shard.Index,
					v.Shard.Domain)
				continue
			}
			h, stays := have[g.Node][v.Addr]
			if !stays {
				h.Generation = last[v.Addr] + 1
			}
			h.Addr, h.Service, h.Shard, h.Interface = v.Addr, key, v.Shard, g.Interface
			if len(w.Table[g.Node]) == MaxVIPs {
				w.Failed[key] = fmt.Sprintf("address %s: node %s holds %d addresses already, which is the most", v.Addr, g.Node,
					MaxVIPs)
				continue
			}
			placed[v.Addr] = true
			w.Table.Add(g.Node, h)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(have)) {
		for _, h := range have.Of(node) {
			if !placed[h.Addr] && plans[h.Service] == nil && keep(h.Service) && h.Generation == last[h.Addr] &&
				len(w.Table[node]) < MaxVIPs {
				placed[h.Addr] = true
				w.Table.Add(node, h)
			}
		}
	}
	return w
}

// newest returns the highest generation of each address.
func newest(t Table) map[netip.Addr]uint64 {
	out := map[netip.Addr]uint64{}
	for _, held := range t {
		for a, h := range held {
			out[a] = max(out[a], h.Generation)
		}
	}
	return out
}

func gateways(t *plan.Topology) map[world.ShardID]plan.Gateway {
	out := map[world.ShardID]plan.Gateway{}
	if t == nil {
		return out
	}
	for _, d := range t.Domains {
		for _, s := range d.Shards {
			if len(s.Gateways) > 0 {
				out[s.ID] = s.Gateways[0]
			}
		}
	}
	return out
}

// Step is the next assignment of one node.
type Step struct {
	Node string
	Held []world.Held
	// Removed are the addresses that the node gives up in this step. New are the addresses that it takes.
	Removed, New []netip.Addr
}

// Release returns the steps in which nodes only give up addresses that they must not hold.
func Release(have, want Table) []Step {
	return steps(have, func(node string) map[netip.Addr]world.Held {
		stays := map[netip.Addr]world.Held{}
		for a, h := range have[node] {
			if _, stay := want[node][a]; stay {
				stays[a] = h
			}
		}
		return stays
	}, slices.Collect(maps.Keys(have)))
}

// Take returns the steps to the desired assignment, except for addresses that another node must give up first.
// Release must be called before.
func Take(have, want Table, waits func(netip.Addr) bool) []Step {
	return steps(have, func(node string) map[netip.Addr]world.Held {
		next := maps.Clone(want[node])
		maps.DeleteFunc(next, func(a netip.Addr, _ world.Held) bool {
			_, had := have[node][a]
			return !had && waits(a)
		})
		return next
	}, slices.AppendSeq(slices.Collect(maps.Keys(have)), maps.Keys(want)))
}

func steps(have Table, next func(node string) map[netip.Addr]world.Held, nodes []string) []Step {
	var list []Step
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		now, then := have[node], next(node)
		if maps.Equal(now, then) {
			continue
		}
		list = append(list, Step{Node: node, Held: sorted(then), Removed: without(now, then), New: without(then, now)})
	}
	return list
}

// without returns the addresses of a that b lacks, sorted.
func without(a, b map[netip.Addr]world.Held) []netip.Addr {
	var list []netip.Addr
	for addr := range a {
		if _, ok := b[addr]; !ok {
			list = append(list, addr)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// String returns a description of the step.
func (s Step) String() string {
	return fmt.Sprintf("node %s: gives up %v, takes %v, holds %d", s.Node, s.Removed, s.New, len(s.Held))
}
