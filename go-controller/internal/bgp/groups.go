// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Group are the routes of a peer that some nodes, sorted, advertise with the same attributes.
type Group struct {
	// Key names the family and the advertisements of the prefixes, which determine the nodes and attributes. It is empty
	// if the nodes depend on endpoints.
	Key    string
	Nodes  []string
	Routes map[netip.Prefix]Attributes
}

// Grouped are the routes of a peer on all its nodes.
type Grouped struct {
	// Groups are sorted by their nodes. A prefix with several attributes is in several groups.
	Groups []Group
	// Prefixes is the number of distinct prefixes, and Dropped are those beyond a limit, which are in no group.
	Prefixes int
	Dropped  map[netip.Prefix]bool
}

// FRRPeers returns the peers whose sessions frr-k8s has, the oldest first.
func (l *Layout) FRRPeers() []*world.Peer {
	return slices.DeleteFunc(slices.Clone(l.peers), func(p *world.Peer) bool { return !p.FRRK8s })
}

// NodesOf returns the nodes that have a peer, sorted, without those where an older peer is the same.
func (l *Layout) NodesOf(p *world.Peer) []*world.Node {
	var list []*world.Node
	for _, name := range p.Nodes {
		if n := l.nodes[name]; n != nil && slices.Contains(l.peersOf(n), p) {
			list = append(list, n)
		}
	}
	return list
}

// source is an advertisement of a prefix and the nodes that may announce it.
type source struct {
	ad *world.Advertisement
	// nodes numbers a list of nodes in grouping.lists.
	nodes int
	// local means that these depend on endpoints.
	local bool
}

// use is what the nodes of an address of a Service depend on.
type use struct {
	ad     *world.Advertisement
	family world.Family
}

// grouping computes a Grouped.
type grouping struct {
	layout *Layout
	peer   *world.Peer
	// eligible are the names of the nodes that may announce prefixes of a family, sorted.
	eligible map[world.Family][]string
	lists    [][]string
	numbers  map[string]int
	// used are the numbers of lists for a Service, which may have thousands of addresses.
	used    map[use]int
	sources map[netip.Prefix][]source
	// claims are the prefixes of namespaces, those of the oldest Services first.
	claims []claim
	// splits are the nodes of each combination of sources.
	splits map[string][]split
	unions map[string]Attributes
}

// claim is a prefix in which a Service of a namespace is advertised.
type claim struct {
	namespace string
	prefix    netip.Prefix
}

// split are the nodes, sorted, to which the same of the sources of a prefix apply.
type split struct {
	nodes []string
	ads   []*world.Advertisement
}

// Limits bound the routes of a peer: its distinct prefixes, and for those whose nodes depend on endpoints, the sum of
// the numbers of nodes.
type Limits struct{ Prefixes, Local int }

// Group returns the routes of a peer whose sessions frr-k8s has on some of its nodes, within limits. Routes by gateways
// are left out: their next hop is not expressible. It does not compute each node for each Service: Services with the
// same advertisements and nodes share the result.
func (l *Layout) Group(p *world.Peer, nodes []*world.Node, limits Limits) Grouped {
	g := &grouping{layout: l, peer: p, eligible: map[world.Family][]string{}, numbers: map[string]int{},
		used: map[use]int{}, sources: map[netip.Prefix][]source{}, splits: map[string][]split{},
		unions: map[string]Attributes{}}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		for _, n := range nodes {
			if _, hop := nextHop(p, n, unspecified(f)); hop && Carries(p, f) && !n.NetworkUnavailable {
				g.eligible[f] = append(g.eligible[f], n.Name)
			}
		}
		slices.Sort(g.eligible[f])
	}
	for _, s := range l.byAge() {
		clear(g.used)
		for _, a := range l.Advertised(s) {
			g.add(s, a)
		}
	}
	out := Grouped{Prefixes: len(g.sources)}
	out.Dropped = map[netip.Prefix]bool{}
	g.limit(limits.Prefixes, func(netip.Prefix) int { return 1 }, out.Dropped)
	g.limit(limits.Local, g.localNodes, out.Dropped)
	groups := map[string]*Group{}
	for prefix, sources := range g.sources {
		for _, part := range g.split(sources) {
			attributes := l.union(part.ads, g.unions)
			key := keyOf(prefix, sources, part.ads)
			id := cmp.Or(key, strings.Join(part.nodes, "/"))
			if groups[id] == nil {
				groups[id] = &Group{Key: key, Nodes: part.nodes, Routes: map[netip.Prefix]Attributes{}}
			}
			groups[id].Routes[prefix] = attributes
		}
	}
	for _, group := range groups {
		out.Groups = append(out.Groups, *group)
	}
	slices.SortFunc(out.Groups, func(a, b Group) int {
		return cmp.Or(slices.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// keyOf returns the key of the group of a prefix with these sources, of which some apply to its nodes.
func keyOf(prefix netip.Prefix, sources []source, applied []*world.Advertisement) string {
	everywhere := map[*world.Advertisement]bool{} // the nodes of these do not depend on endpoints
	for _, o := range sources {
		everywhere[o.ad] = everywhere[o.ad] || !o.local
	}
	var names, of []string
	for ad, is := range everywhere {
		if !is {
			return ""
		}
		names = append(names, ad.Name)
	}
	for _, ad := range applied {
		of = append(of, ad.Name)
	}
	slices.Sort(names)
	slices.Sort(of)
	return world.FamilyOf(prefix.Addr()).String() + "/" + strings.Join(names, ",") + "/" + strings.Join(of, ",")
}

// Prefixes returns all prefixes in which routes of Services to peers of frr-k8s, on whichever nodes, are advertised or
// would be if the Services had endpoints, sorted.
func (l *Layout) Prefixes() []netip.Prefix {
	if l.all == nil {
		l.all = []netip.Prefix{}
		for _, s := range l.world.Services {
			for _, a := range l.Advertised(s) {
				for _, ad := range l.selecting(s, a) {
					l.all = slices.AppendSeq(l.all, l.prefixes(s, ad, a))
				}
			}
		}
		slices.SortFunc(l.all, netip.Prefix.Compare)
		l.all = slices.Compact(l.all)
	}
	return l.all
}

// byAge returns the Services, the oldest first.
func (l *Layout) byAge() []*world.Service {
	if l.aged == nil {
		l.aged = slices.SortedFunc(slices.Values(l.world.Services), func(a, b *world.Service) int {
			return cmp.Or(a.Created.Compare(b.Created), a.Key.Compare(b.Key))
		})
	}
	return l.aged
}

// add adds the prefixes of an address of a Service.
func (g *grouping) add(s *world.Service, a netip.Addr) {
	f := world.FamilyOf(a)
	for _, ad := range g.layout.selecting(s, a) {
		if ad.ByGateway || !advertises(ad, g.peer.Name) || !g.layout.serves(s, f, "") {
			continue
		}
		nodes, known := g.used[use{ad, f}]
		if !known {
			nodes = g.nodesOf(s, ad, f)
			g.used[use{ad, f}] = nodes
		}
		if len(g.lists[nodes]) == 0 {
			continue
		}
		for prefix := range g.layout.prefixes(s, ad, a) {
			if c := (claim{s.Key.Namespace, prefix}); len(g.claims) == 0 || g.claims[len(g.claims)-1] != c {
				g.claims = append(g.claims, c)
			}
			if o := (source{ad, nodes, s.LocalPolicy}); !slices.Contains(g.sources[prefix], o) {
				g.sources[prefix] = append(g.sources[prefix], o)
			}
		}
	}
}

// localNodes returns the number of nodes of a prefix, 0 if they do not depend on endpoints.
func (g *grouping) localNodes(prefix netip.Prefix) int {
	everywhere := map[*world.Advertisement]bool{}
	number := 0
	for _, o := range g.sources[prefix] {
		everywhere[o.ad] = everywhere[o.ad] || !o.local
		number += len(g.lists[o.nodes])
	}
	for _, is := range everywhere {
		if !is {
			return min(number, len(g.eligible[world.FamilyOf(prefix.Addr())]))
		}
	}
	return 0
}

// limit drops prefixes so that the others cost at most the limit. Namespaces that need most get an equal share and what
// others leave of the limit (plan.Divide): one that stays below the share loses nothing to another. Prefixes that
// objects have now come first, and then those of the oldest Services, so that an edit of an old Service withdraws no
// route.
func (g *grouping) limit(limit int, cost func(netip.Prefix) int, dropped map[netip.Prefix]bool) {
	costs, total := make(map[netip.Prefix]int, len(g.sources)), 0
	for prefix := range g.sources {
		costs[prefix] = cost(prefix)
		total += costs[prefix]
	}
	if total <= limit {
		return
	}
	there := g.layout.world.FRR.Prefixes(g.peer.Name)
	var claims []plan.Claim[netip.Prefix]
	seen := map[claim]bool{}
	for _, c := range g.claims {
		if !seen[c] && !dropped[c.prefix] {
			seen[c] = true
			claims = append(claims, plan.Claim[netip.Prefix]{Namespace: c.namespace, Key: c.prefix, Cost: costs[c.prefix],
				Current: there[c.prefix.String()]})
		}
	}
	kept, _ := plan.Divide(claims, limit)
	for prefix := range g.sources {
		if !kept[prefix] {
			dropped[prefix] = true
			delete(g.sources, prefix)
		}
	}
}

// nodesOf returns the number of the list of nodes that may announce addresses of a Service by an advertisement.
func (g *grouping) nodesOf(s *world.Service, ad *world.Advertisement, f world.Family) int {
	key := f.String() + "/" + strconv.Itoa(g.layout.rank[ad])
	var local *nodeList
	if s.LocalPolicy {
		local = g.layout.endpointNodes(s, f)
		key += ":" + strconv.Itoa(local.number)
	}
	number, known := g.numbers[key]
	if known {
		return number
	}
	var list []string
	for _, name := range g.eligible[f] {
		if containsName(ad.Nodes, name) && (local == nil || containsName(local.names, name)) {
			list = append(list, name)
		}
	}
	g.lists = append(g.lists, list)
	g.numbers[key] = len(g.lists) - 1
	return len(g.lists) - 1
}

// split divides the nodes of sources by which of these apply to them.
func (g *grouping) split(sources []source) []split {
	slices.SortFunc(sources, func(a, b source) int {
		return cmp.Or(cmp.Compare(g.layout.rank[a.ad], g.layout.rank[b.ad]), cmp.Compare(a.nodes, b.nodes))
	})
	var key strings.Builder
	for _, o := range sources {
		key.WriteString(strconv.Itoa(g.layout.rank[o.ad]) + "/" + strconv.Itoa(o.nodes) + " ")
	}
	if done, ok := g.splits[key.String()]; ok {
		return done
	}
	which := map[string]string{} // the ranks of the advertisements that apply to a node
	ads := map[string][]*world.Advertisement{}
	for _, o := range sources {
		for _, node := range g.lists[o.nodes] {
			if was := ads[node]; len(was) == 0 || was[len(was)-1] != o.ad {
				ads[node] = append(was, o.ad)
				which[node] += strconv.Itoa(g.layout.rank[o.ad]) + "/"
			}
		}
	}
	at := map[string]int{}
	var list []split
	for node, key := range which {
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			list = append(list, split{ads: ads[node]})
		}
		list[i].nodes = append(list[i].nodes, node)
	}
	for i := range list {
		slices.Sort(list[i].nodes)
	}
	g.splits[key.String()] = list
	return list
}
