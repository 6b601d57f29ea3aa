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

// Facts are the contents of the database that our rows depend on.
type Facts struct {
	// Join are the addresses of ovn_cluster_router on the join switch with their prefix length, at most one per
	// family.
	Join []netip.Prefix
	// Nodes maps node names to the addresses that OVN-Kubernetes has configured for each node.
	Nodes map[string]NodeFacts
	// UsedAddrs contains the addresses of router ports that we do not own.
	UsedAddrs map[netip.Addr]bool
	// Ordinals are the numbers previously assigned to the routers of shards.
	Ordinals map[world.ShardID]int
	// HashIPv6 reports whether load balancers can hash IPv6 addresses, that is, whether the server's schema has the
	// selection fields ipv6_src and ipv6_dst. Without them OVN hashes ports only.
	HashIPv6 bool
	// SkipsSNATForReplies reports whether OVN leaves replies untranslated by lb_force_snat_ip (since OVN 24.03.5,
	// 24.09.2 and 25.03).
	SkipsSNATForReplies bool
}

// NodeFacts are the addresses of a node in the database.
type NodeFacts struct {
	// Subnets are those of the node's pods, Join the addresses of its gateway router on the join switch with their
	// prefix length, and External the addresses on the node's own network.
	Subnets, Join, External []netip.Prefix
	// Transit are the subnets of the transit switch. Only the node of the zone itself has them.
	Transit []netip.Prefix
}

// shard is a shard that has rows, with the data they depend on.
type shard struct {
	plan.Shard
	domain  *plan.Domain
	ordinal int
	// join are the addresses of the shard's router on the join switch; in a zone, those of its return router.
	join []netip.Prefix
	// local is set if the database has the shard's router: always, but in a zone only if its node is a gateway.
	local bool
}

// Builder builds the rows of a topology for one database.
type Builder struct {
	cluster   world.Cluster
	facts     Facts
	domains   []*plan.Domain
	shardList []*shard
	shards    map[world.ShardID]*shard
	// unnumbered are the shards without rows because no number is free.
	unnumbered []world.ShardID
	nodes      map[string]*node
	// zone is nil if one database configures the whole cluster. peers are all nodes, in a zone.
	zone  *plan.Zone
	peers []plan.Node
	// nodeCount is the number of nodes of the cluster.
	nodeCount  int
	egress     Egress
	restricted *Restricted
}

// NewBuilder returns a Builder for each domain of the topology that has a resident and each shard that has an anchor.
func NewBuilder(f *plan.Topology, facts Facts) (*Builder, error) {
	g := &Builder{cluster: f.Cluster, facts: facts, shards: map[world.ShardID]*shard{}, nodes: map[string]*node{},
		zone: f.Zone, nodeCount: len(f.Nodes)}
	if g.zone != nil {
		g.peers = f.Nodes
	}
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
			g.shardList = append(g.shardList, &shard{Shard: s, domain: d, local: g.isLocal(s)})
		}
	}
	if len(g.domains) > 0 && len(facts.Join) == 0 {
		return nil, fmt.Errorf("port %s has no address on the join switch yet", ClusterRouterPort)
	}
	for _, s := range g.shardList {
		g.shards[s.ID] = s
	}
	g.assignOrdinals()
	g.buildNodes(f.Nodes)
	return g, nil
}

// HasShards reports whether any shard has an address.
func (b *Builder) HasShards() bool { return len(b.shardList) > 0 }

// isLocal reports whether the database has a shard's router.
func (b *Builder) isLocal(s plan.Shard) bool {
	return b.zone == nil ||
		slices.ContainsFunc(s.Gateways, func(gw plan.Gateway) bool { return gw.Chassis == b.zone.Chassis })
}

// assignOrdinals assigns an ordinal to every shard: the previous one if its addresses are free, otherwise the lowest
// free one. If none is left, a shard has no rows; shards that have an ordinal keep it. In a zone the ordinals are
// those of the topology.
func (b *Builder) assignOrdinals() {
	if b.zone != nil {
		for _, s := range b.shardList {
			s.ordinal = s.Ordinal
			if s.ordinal >= 0 && s.ordinal <= maxOrdinal {
				s.join = b.joinAddrs(s.ordinal)
			}
		}
		b.removeUnnumbered()
		return
	}
	used, given := map[int]bool{}, map[int]bool{}
	for _, n := range b.facts.Ordinals {
		used[n] = true
	}
	for _, s := range b.shardList {
		if n, ok := b.facts.Ordinals[s.ID]; ok && n >= 0 && n <= maxOrdinal && !given[n] {
			s.ordinal, s.join = n, b.joinAddrs(n)
			given[n] = len(s.join) > 0
		}
	}
	next := 0
	for _, s := range b.shardList {
		for ; len(s.join) == 0 && next <= maxOrdinal; next++ {
			if !used[next] {
				s.ordinal, s.join = next, b.joinAddrs(next)
			}
		}
	}
	b.removeUnnumbered()
}

// removeUnnumbered removes the shards without addresses on the join switch.
func (b *Builder) removeUnnumbered() {
	b.shardList = slices.DeleteFunc(b.shardList, func(s *shard) bool {
		if len(s.join) > 0 {
			return false
		}
		b.unnumbered = append(b.unnumbered, s.ID)
		delete(b.shards, s.ID)
		return true
	})
}

// ShardsWithoutOrdinal returns the shards that have no rows because no number is left for them.
func (b *Builder) ShardsWithoutOrdinal() []world.ShardID { return b.unnumbered }

// NoOrdinalReason returns the reason why a shard has no number.
func NoOrdinalReason() string {
	return fmt.Sprintf("no router number is available: at most %d shards with addresses are supported, of all L2Domains "+
		"together, and the join subnet must have free addresses for their routers", maxOrdinal+1)
}

// joinAddrs returns one address per join subnet, counted down from its top. OVN-Kubernetes counts up by node number
// and reaches the top last. It returns nil if one of the addresses is taken.
func (b *Builder) joinAddrs(ordinal int) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(b.facts.Join))
	for _, router := range b.facts.Join {
		a := netipx.PrefixLastIP(router.Masked())
		for range ordinal + 1 {
			a = a.Prev()
		}
		if !router.Contains(a) || a == router.Addr() || a == router.Masked().Addr() || b.facts.UsedAddrs[a] {
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

// texts returns the prefixes as sorted strings.
func texts(prefixes []netip.Prefix) []string {
	out := make([]string, 0, len(prefixes))
	for _, p := range prefixes {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}
