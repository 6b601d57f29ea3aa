// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Group are the routes of a peer that some nodes, sorted, advertise with the same attributes.
type Group struct {
	Nodes  []string
	Routes map[netip.Prefix]Attributes
}

// Grouped are the routes of a peer on all its nodes.
type Grouped struct {
	// Groups are sorted by their nodes. A prefix with several attributes is in several groups.
	Groups []Group
	// Prefixes is the number of distinct prefixes, and Dropped are those beyond the limit, which are in no group.
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
}

// grouping computes a Grouped.
type grouping struct {
	layout *Layout
	peer   *world.Peer
	// eligible are the names of the nodes that may announce prefixes of a family, sorted.
	eligible map[world.Family][]string
	lists    [][]string
	numbers  map[string]int
	sources  map[netip.Prefix][]source
	// splits are the nodes of each combination of sources.
	splits map[string][]split
	unions map[string]Attributes
}

// split are the nodes, sorted, to which the same of the sources of a prefix apply.
type split struct {
	nodes []string
	ads   []*world.Advertisement
}

// Group returns the routes of a peer whose sessions frr-k8s has on some of its nodes, at most limit distinct prefixes:
// those of the oldest Services. Routes by gateways are left out: their next hop is not expressible. It does not compute
// each node for each Service: Services with the same advertisements and nodes share the result.
func (l *Layout) Group(p *world.Peer, nodes []*world.Node, limit int) Grouped {
	g := &grouping{layout: l, peer: p, eligible: map[world.Family][]string{}, numbers: map[string]int{},
		sources: map[netip.Prefix][]source{}, splits: map[string][]split{}, unions: map[string]Attributes{}}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		for _, n := range nodes {
			if _, hop := nextHop(p, n, unspecified(f)); hop && Carries(p, f) && !n.NetworkUnavailable {
				g.eligible[f] = append(g.eligible[f], n.Name)
			}
		}
		slices.Sort(g.eligible[f])
	}
	out := Grouped{Dropped: map[netip.Prefix]bool{}}
	for _, s := range l.byAge() {
		for _, a := range l.Advertised(s) {
			g.add(s, a, limit, out.Dropped)
		}
	}
	out.Prefixes = len(g.sources) + len(out.Dropped)
	groups := map[string]*Group{}
	for prefix, sources := range g.sources {
		for _, part := range g.split(sources) {
			attributes := l.union(part.ads, g.unions)
			key := strings.Join(part.nodes, "/")
			if groups[key] == nil {
				groups[key] = &Group{Nodes: part.nodes, Routes: map[netip.Prefix]Attributes{}}
			}
			groups[key].Routes[prefix] = attributes
		}
	}
	for _, group := range groups {
		out.Groups = append(out.Groups, *group)
	}
	slices.SortFunc(out.Groups, func(a, b Group) int { return slices.Compare(a.Nodes, b.Nodes) })
	return out
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
func (g *grouping) add(s *world.Service, a netip.Addr, limit int, dropped map[netip.Prefix]bool) {
	f := world.FamilyOf(a)
	for _, ad := range g.layout.taking(s, a) {
		if ad.ByGateway || !advertises(ad, g.peer.Name) || !g.layout.serves(s, f, "") {
			continue
		}
		nodes := g.nodesOf(s, ad, f)
		if len(g.lists[nodes]) == 0 {
			continue
		}
		prefix := g.layout.prefix(ad, a)
		if g.sources[prefix] == nil && len(g.sources) >= limit {
			dropped[prefix] = true
			continue
		}
		if o := (source{ad, nodes}); !slices.Contains(g.sources[prefix], o) {
			g.sources[prefix] = append(g.sources[prefix], o)
		}
	}
}

// nodesOf returns the number of the list of nodes that may announce addresses of a Service by an advertisement.
func (g *grouping) nodesOf(s *world.Service, ad *world.Advertisement, f world.Family) int {
	key := f.String() + "/" + strconv.Itoa(g.layout.rank[ad])
	var local []string
	if s.LocalPolicy {
		local = g.layout.endpointNodes(s, f)
		key += ":" + strings.Join(local, "/")
	}
	number, known := g.numbers[key]
	if known {
		return number
	}
	var list []string
	for _, name := range g.eligible[f] {
		if on(ad.Nodes, name) && (!s.LocalPolicy || on(local, name)) {
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
