// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

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

// Has reports whether an address is assigned to a node.
func (t Table) Has(node string, a netip.Addr) bool {
	_, has := t[node][a]
	return has
}

func sorted(held map[netip.Addr]world.Held) []world.Held {
	return slices.SortedFunc(maps.Values(held), func(a, b world.Held) int { return a.Addr.Compare(b.Addr) })
}

// ShardStates returns the active gateway of each shard with an assigned address. If several nodes hold addresses of a
// shard, for example because a kubelet has written to its own Node, it is the first one of orders, and without one of
// these the first by name.
func (t Table) ShardStates(orders Orders) map[world.ShardID]world.ShardState {
	shardStates := map[world.ShardID]world.ShardState{}
	for _, node := range slices.Sorted(maps.Keys(t)) {
		for _, h := range t[node] {
			known, ok := shardStates[h.Shard]
			if !ok || orders.precedes(h.Shard, node, known.Active) {
				shardStates[h.Shard] = world.ShardState{Active: node, Settled: true, Order: []string{node}}
			}
		}
	}
	return shardStates
}

// Orders are the gateways of shards in order of preference, from what kubelets cannot write.
type Orders map[world.ShardID][]string

// OrdersOf returns the orders that the statuses of domains contain, each with the active gateway first.
func OrdersOf(domains []*world.Domain) Orders {
	out := Orders{}
	for _, d := range domains {
		for index, order := range d.Gateways {
			if active := d.Active[index]; active != "" {
				order = append([]string{active}, order...)
			}
			out[world.ShardID{Domain: d.Name, Index: index}] = order
		}
	}
	return out
}

// precedes reports whether a node comes before another one.
func (o Orders) precedes(shard world.ShardID, node, other string) bool {
	i, j := slices.Index(o[shard], node), slices.Index(o[shard], other)
	return i >= 0 && (j < 0 || i < j)
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
