// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Assignment is the desired assignment.
type Assignment struct {
	Table Table
	// Failed contains the reasons why a Service gets none, or not all, of its addresses.
	Failed map[world.Key]string
	// sizes are the lengths of the annotations, by node.
	sizes map[string]int
}

// precedence decides which addresses a node holds if there are too many.
type precedence int

const (
	stays precedence = iota // The node holds the address.
	moves                   // Another node holds it.
	isNew
)

// candidate is an address that a node is to hold.
type candidate struct {
	node string
	held world.Held
	// services have the address. held.Service is the first of them by name.
	services []world.Key
	precedence
	// rank is the position among the candidates of the same namespace, node and precedence.
	rank int
}

// candidates collects candidates.
type candidates struct {
	list   []*candidate
	byAddr map[netip.Addr]*candidate
	ranks  map[rankKey]int
}

type rankKey struct {
	namespace, node string
	precedence
}

func (c *candidates) add(node string, h world.Held, p precedence) {
	key := rankKey{h.Service.Namespace, node, p}
	next := &candidate{node: node, held: h, services: []world.Key{h.Service}, precedence: p, rank: c.ranks[key]}
	c.ranks[key]++
	c.list, c.byAddr[h.Addr] = append(c.list, next), next
}

// Want returns the desired assignment: the first gateway of each shard holds the shard's addresses. Assignments in
// have of Services without a plan remain if keep returns true, on each node that lists them: which of these lies is
// known only with the plan. An address that two Services share is assigned for the first Service by name.
//
// If a node has too many addresses, it keeps those that it holds, and takes those of other nodes before new ones. In
// each of these groups, every namespace gets one after the other, so that none takes what others need less of.
func Want(
	topology *plan.Topology, plans map[world.Key]*plan.Service, have Table, keep func(world.Key) bool,
) Assignment {
	w := Assignment{Table{}, map[world.Key]string{}, map[string]int{}}
	gateways := gateways(topology)
	last := newest(have)
	all := candidates{byAddr: map[netip.Addr]*candidate{}, ranks: map[rankKey]int{}}
	for _, key := range slices.SortedFunc(maps.Keys(plans), world.Key.Compare) {
		for _, v := range plans[key].VIPs {
			if known := all.byAddr[v.Addr]; known != nil {
				known.services = append(known.services, key)
				continue
			}
			g, ok := gateways[v.Shard]
			if !ok {
				w.Failed[key] = fmt.Sprintf("address %s: shard %d of L2Domain %s has no gateway", v.Addr, v.Shard.Index,
					v.Shard.Domain)
				continue
			}
			h, holds := have[g.Node][v.Addr]
			p := stays
			if generation, elsewhere := last[v.Addr]; !holds && elsewhere {
				h.Generation, p = max(1, generation+1), moves // 1 after the largest number, which only a kubelet can have written
			} else if !holds {
				h.Generation, p = 1, isNew
			}
			h.Addr, h.Service, h.Shard, h.Interface = v.Addr, key, v.Shard, g.Interface
			all.add(g.Node, h, p)
		}
	}
	kept := Table{}
	for node, held := range have {
		for _, h := range held {
			if all.byAddr[h.Addr] == nil && plans[h.Service] == nil && keep(h.Service) {
				kept.Add(node, h)
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(kept)) {
		for _, h := range kept.Of(node) {
			all.add(node, h, stays)
		}
	}
	slices.SortStableFunc(all.list, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.precedence, b.precedence), cmp.Compare(a.rank, b.rank))
	})
	for _, c := range all.list {
		w.place(c)
	}
	return w
}

// place assigns an address to its node unless the node has too many.
func (a *Assignment) place(c *candidate) {
	n, size := len(a.Table[c.node]), a.sizes[c.node]+sizeOf(c.held)
	if n < MaxVIPs && size <= maxText {
		a.sizes[c.node] = size
		a.Table.Add(c.node, c.held)
		return
	}
	for _, key := range c.services {
		a.Failed[key] = fmt.Sprintf("address %s: node %s holds %d addresses already, which is the most", c.held.Addr, c.node,
			n)
	}
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
