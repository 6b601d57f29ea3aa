// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// WithdrawTime is how long an ordinary withdrawal takes at most until it is reported: an object is written within 3 s,
	// frr-k8s waits for 3 s, removes 1,000 prefixes in 70 s, and reports what FRR runs every 30 s.
	WithdrawTime = 2 * time.Minute
	// maxLate is the number of nodes per prefix, and MaxRoutes that of prefixes per node, whose withdrawals are watched at
	// the same time: a mass withdrawal, or a node that reports what it does not run, must not cost more.
	maxLate = 16
	// maxOthers is the number of prefixes per node that are watched of those that are neither Services' nor in objects.
	// They are left from objects that are gone, and the node is what matters of them.
	maxOthers = 16
)

// State is what has to be known of the past to plan objects. The zero value is that of a process that knows nothing of
// it, for which all withdrawals that it sees are overdue: after a restart, a status must not change for a while.
type State struct {
	drains Drains
	// late is since when nodes advertise what they should not. seen means that it holds all of that.
	late map[route]time.Time
	seen bool
}

// route is a prefix that a node advertises to a peer.
type route struct {
	peer, node string
	prefix     netip.Prefix
}

// findLate returns, by peer and prefix, the nodes of which FRR advertises what no object for them is to have. Peers may
// be the same neighbor of different nodes; what a node advertises to one is then late for the peer that selects it. To
// peers with another backend, FRR may still advertise what objects had for them before.
func (r *renderer) findLate() map[string]map[netip.Prefix][]string {
	neighbors, out := map[string][]*world.Peer{}, map[string]map[netip.Prefix][]string{}
	for _, p := range r.world.Peers {
		neighbors[p.NeighborID()] = append(neighbors[p.NeighborID()], p)
	}
	byFRR := func(p *world.Peer) bool { return p.FRRK8s }
	for id, list := range neighbors {
		counts := r.inPools
		if slices.ContainsFunc(list, byFRR) {
			counts = func(netip.Prefix) bool { return true }
		}
		late := r.lateWith(list[0], cmp.Or(r.desired[id], bgp.NewPrefixSets()), counts)
		if len(list) == 1 {
			out[list[0].Name] = late
			continue
		}
		rank := func(p *world.Peer, node string) (rank int) {
			if _, selects := slices.BinarySearch(p.Nodes, node); selects {
				rank = 2
			}
			if p.FRRK8s {
				rank++
			}
			return rank
		}
		for _, p := range list {
			other := func(node string) bool {
				return slices.ContainsFunc(list, func(o *world.Peer) bool { return rank(o, node) > rank(p, node) })
			}
			out[p.Name] = map[netip.Prefix][]string{}
			for prefix, nodes := range late {
				if nodes = slices.DeleteFunc(slices.Clone(nodes), other); len(nodes) > 0 {
					out[p.Name][prefix] = nodes
				}
			}
		}
	}
	return out
}

// lateWith returns what is late with the neighbor that is a peer, of the prefixes that count. Of a node for which not
// all objects of others are read, nothing is known to be late. Its memory is proportional to knownPrefixes and nodes,
// whatever nodes report.
func (r *renderer) lateWith(p *world.Peer, desired *bgp.PrefixSets, counts func(netip.Prefix) bool,
) map[netip.Prefix][]string {
	var established []string
	for _, n := range r.world.Nodes {
		if r.world.FRR.Established(n, p) && r.foreignOf(n.Name).unread == "" {
			established = append(established, n.Name)
		}
	}
	running := bgp.RunningSets(r.world.FRR, p, slices.Values(established), r.knownPrefixes())
	type pair struct{ running, desired int }
	differences, late := map[pair][]string{}, map[netip.Prefix][]string{}
	is := map[string]int{} // the number of the last pair in which a node is desired
	for prefix := range running.Prefixes() {
		if !counts(prefix) {
			continue
		}
		key := pair{running.Number(prefix), desired.Number(prefix)}
		nodes, known := differences[key]
		if !known {
			number := len(differences) + 1
			for n := range desired.Nodes(key.desired) {
				is[n] = number
			}
			for n := range running.Nodes(key.running) {
				if is[n] != number {
					nodes = append(nodes, n)
				}
			}
			differences[key] = nodes
		}
		if len(nodes) > 0 {
			late[prefix] = nodes
		}
	}
	if len(late) > 0 {
		r.removeForeignNodes(late)
	}
	for _, name := range established {
		for _, prefix := range r.others(name, p, counts) {
			late[prefix] = append(late[prefix], name)
		}
	}
	return late
}

// updateOverdue updates what is late, and adds to a plan what is overdue, and when the next withdrawal will be.
func (s *State) updateOverdue(plan *Plan, now time.Time) {
	next := map[route]time.Time{}
	plan.overdue = map[string]map[netip.Prefix][]string{}
	perNode := map[string]int{}
	for peer, late := range plan.late {
		plan.overdue[peer] = map[netip.Prefix][]string{}
		clear(perNode)
		for _, prefix := range slices.SortedFunc(maps.Keys(late), netip.Prefix.Compare) {
			for _, node := range s.watched(peer, prefix, late[prefix]) {
				if perNode[node]++; perNode[node] > MaxRoutes {
					continue
				}
				is := route{peer, node, prefix}
				since, was := s.late[is]
				if !was && s.seen {
					since = now
				}
				next[is] = since
				if at := since.Add(WithdrawTime); now.Before(at) {
					plan.Due = world.Earliest(plan.Due, at)
				} else {
					plan.overdue[peer][prefix] = append(plan.overdue[peer][prefix], node)
				}
			}
			slices.Sort(plan.overdue[peer][prefix])
		}
	}
	s.late, s.seen = next, true
}

// watched returns maxLate of the nodes that are late, those first that were watched before.
func (s *State) watched(peer string, prefix netip.Prefix, late []string) []string {
	if len(late) <= maxLate {
		return late
	}
	var before, others []string
	for _, node := range late {
		if _, is := s.late[route{peer, node, prefix}]; is {
			before = append(before, node)
		} else if len(others) < maxLate {
			others = append(others, node)
		}
	}
	return slices.Concat(before, others)[:maxLate]
}

// Overdue returns the nodes, sorted, that advertise a prefix to a peer although they should not.
func (p *Plan) Overdue(peer string, prefix netip.Prefix) []string { return p.overdue[peer][prefix] }

// NotWithdrawn describes the routes with a peer whose withdrawal is overdue, empty if there are none.
func (p *Plan) NotWithdrawn(peer string) string {
	if p == nil {
		return ""
	}
	first := map[string]netip.Prefix{}
	for _, prefix := range slices.SortedFunc(maps.Keys(p.overdue[peer]), netip.Prefix.Compare) {
		for _, node := range p.overdue[peer][prefix] {
			if _, is := first[node]; !is {
				first[node] = prefix
			}
		}
	}
	if len(first) == 0 {
		return ""
	}
	nodes := slices.Sorted(maps.Keys(first))
	return "not withdrawn by " + world.Some(nodes, maxNamed) + ": node " + nodes[0] + " advertises " +
		first[nodes[0]].String() + " by FRR although it should not"
}

// Advertised returns the peers to which FRR on a node advertises prefixes that no object of others has, sorted; to
// peers with another backend, those of pools.
func Advertised(w *world.Snapshot, node string) []string {
	at := slices.IndexFunc(w.Nodes, func(n *world.Node) bool { return n.Name == node })
	if at < 0 || !w.FRR.Available() {
		return nil
	}
	r := &renderer{world: w}
	var peers []string
	for _, p := range w.Peers {
		if !w.FRR.Established(w.Nodes[at], p) {
			continue
		}
		late := map[netip.Prefix][]string{}
		for _, prefix := range w.FRR.Running(node, p) {
			late[prefix] = []string{node}
		}
		r.removeForeignNodes(late)
		if !p.FRRK8s {
			maps.DeleteFunc(late, func(prefix netip.Prefix, _ []string) bool { return !r.inPools(prefix) })
		}
		if slices.ContainsFunc(slices.Collect(maps.Values(late)), func(l []string) bool { return len(l) > 0 }) {
			peers = append(peers, p.Name)
		}
	}
	slices.SortFunc(peers, strings.Compare)
	return peers
}
