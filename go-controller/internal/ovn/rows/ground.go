// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Facts are what our rows depend on in the database itself.
type Facts struct {
	// Join are the addresses of ovn_cluster_router on the join switch with their
	// prefix length, at most one a family.
	Join []netip.Prefix
	// Nodes are what OVN-Kubernetes has made for each node, by name.
	Nodes map[string]NodeFacts
	// Taken are the addresses of router ports that are not ours.
	Taken map[netip.Addr]bool
	// Ordinals are the numbers that shards' routers were given before.
	Ordinals map[world.ShardID]int
	// HashIPv6 says that load balancers can hash IPv6 addresses: the server's schema
	// knows the selection fields ipv6_src and ipv6_dst. Without them OVN hashes ports only.
	HashIPv6 bool
	// RepliesUnhidden says that OVN does not translate replies by lb_force_snat_ip (since OVN 24.03.5, 24.09.2 and 25.03).
	RepliesUnhidden bool
}

// NodeFacts are the addresses that a node has in the database.
type NodeFacts struct {
	// Subnets are those of its pods, Join the addresses of its gateway router on the join
	// switch with their prefix length, External those on its own network.
	Subnets, Join, External []netip.Prefix
}

// shard is a shard that has rows, with what they depend on.
type shard struct {
	plan.Shard
	domain  *plan.Domain
	ordinal int
	// join are the addresses of the shard's router on the join switch.
	join []netip.Prefix
}

// Ground is the fabric as this database will have it.
type Ground struct {
	cluster world.Cluster
	facts   Facts
	domains []*plan.Domain
	order   []*shard
	shards  map[world.ShardID]*shard
	// numberless are the shards that have no place, for want of a number.
	numberless []world.ShardID
	nodes      map[string]*node
}

// Lay gives each domain that has a resident, and each shard of the fabric that has an anchor, its place in the database.
func Lay(f *plan.Fabric, facts Facts) (*Ground, error) {
	g := &Ground{cluster: f.Cluster, facts: facts, shards: map[world.ShardID]*shard{}, nodes: map[string]*node{}}
	for i := range f.Domains {
		d := &f.Domains[i]
		if len(d.Residents) > 0 {
			g.domains = append(g.domains, d)
		}
		for _, s := range d.Shards {
			if len(s.Anchors) == 0 {
				continue
			}
			if n := len(g.domains); n == 0 || g.domains[n-1] != d {
				g.domains = append(g.domains, d)
			}
			g.order = append(g.order, &shard{Shard: s, domain: d})
		}
	}
	if len(g.domains) > 0 && len(facts.Join) == 0 {
		return nil, fmt.Errorf("port %s has no address on the join switch yet", ClusterRouterPort)
	}
	for _, s := range g.order {
		g.shards[s.ID] = s
	}
	g.number()
	g.layNodes(f.Nodes)
	return g, nil
}

// number gives every shard an ordinal: its former one if its addresses are free, else the lowest
// free one. A shard for which there is none has no rows; those that have one keep it.
func (g *Ground) number() {
	used, given := map[int]bool{}, map[int]bool{}
	for _, n := range g.facts.Ordinals {
		used[n] = true
	}
	for _, s := range g.order {
		if n, ok := g.facts.Ordinals[s.ID]; ok && n >= 0 && n <= maxOrdinal && !given[n] {
			s.ordinal, s.join = n, g.joinAddrs(n)
			given[n] = len(s.join) > 0
		}
	}
	next := 0
	for _, s := range g.order {
		for ; len(s.join) == 0 && next <= maxOrdinal; next++ {
			if !used[next] {
				s.ordinal, s.join = next, g.joinAddrs(next)
			}
		}
	}
	g.order = slices.DeleteFunc(g.order, func(s *shard) bool {
		if len(s.join) > 0 {
			return false
		}
		g.numberless = append(g.numberless, s.ID)
		delete(g.shards, s.ID)
		return true
	})
}

// Numberless are the shards that have no rows because no number is left for them.
func (g *Ground) Numberless() []world.ShardID { return g.numberless }

// NumberlessText says why a shard can have no number.
func NumberlessText() string {
	return fmt.Sprintf("no number is free: OVN serves %d shards that have addresses, of all L2Domains together, "+
		"and the join network must have room for their routers", maxOrdinal+1)
}

// joinAddrs counts down from the top of each join subnet, where OVN-Kubernetes, which
// counts up by node number, comes last. It returns none if one of them is taken.
func (g *Ground) joinAddrs(ordinal int) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(g.facts.Join))
	for _, router := range g.facts.Join {
		a := netipx.PrefixLastIP(router.Masked())
		for range ordinal + 1 {
			a = a.Prev()
		}
		if !router.Contains(a) || a == router.Addr() || a == router.Masked().Addr() || g.facts.Taken[a] {
			return nil
		}
		out = append(out, netip.PrefixFrom(a, router.Bits()))
	}
	return out
}

// byFamily returns the prefixes of one family.
func byFamily(prefixes []netip.Prefix, f world.Family) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range prefixes {
		if world.FamilyOf(p.Addr()) == f {
			out = append(out, p)
		}
	}
	return out
}

// texts returns the sorted texts of prefixes.
func texts(prefixes []netip.Prefix) []string {
	out := make([]string, 0, len(prefixes))
	for _, p := range prefixes {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}
