// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Layout is the state that the nodes of a cluster have in common: the peers, and which advertisements select which
// addresses.
type Layout struct {
	world      *world.Snapshot
	allocation *ipam.Allocation
	home       Home
	nodes      map[string]*world.Node
	domains    map[string]*world.Domain
	pools      map[string]*world.Pool
	// peers and ads are those without fatal findings, sorted by age with the oldest first; invalid are the other peers.
	peers   []*world.Peer
	invalid []*world.Peer
	ads     []*world.Advertisement
	// ineffective are the advertisements with fatal findings, also sorted by age.
	ineffective []*world.Advertisement
	// byPool contains the advertisements that select a pool, also sorted by age.
	byPool map[string][]*world.Advertisement
	// rank is the index of each advertisement in ads.
	rank map[*world.Advertisement]int
	// sets caches the addresses of the pools that are advertised as aggregates.
	sets map[*world.Pool]*netipx.IPSet
	// kept are the results of served: one for each Service and family, because a Layout outlives many changes of them.
	// lists are the nodeLists by their keys, and numbered is how many were made, also by former layouts.
	kept     map[servedID]*served
	lists    map[string]*nodeList
	numbered int
	// surveyed is the last survey, possibly of a former layout; nil if there was none.
	surveyed *surveyed
	// aged are the Services by age, once byAge was called.
	aged []*world.Service
	// all are the prefixes of all Services, once Prefixes was called.
	all []netip.Prefix
	// shown are the addresses in the ingress of any Service, once inIngress was called.
	shown map[netip.Addr]bool
}

// Home returns the shard of an address of a pool (empty if the address is in no pool). It returns false if the address
// is in no L2Domain.
type Home func(pool string, a netip.Addr) (world.ShardID, bool)

// NewLayout builds a Layout from a snapshot, which may contain all nodes or only the node that computes it.
func NewLayout(w *world.Snapshot, a *ipam.Allocation, home Home) *Layout {
	l := &Layout{
		world: w, allocation: a, home: home,
		nodes:   make(map[string]*world.Node, len(w.Nodes)),
		domains: make(map[string]*world.Domain, len(w.Domains)),
		pools:   make(map[string]*world.Pool, len(w.Pools)),
		byPool:  make(map[string][]*world.Advertisement, len(w.Pools)),
		rank:    make(map[*world.Advertisement]int, len(w.Advertisements)),
		sets:    map[*world.Pool]*netipx.IPSet{},
		kept:    map[servedID]*served{},
		lists:   map[string]*nodeList{},
	}
	for _, n := range w.Nodes {
		l.nodes[n.Name] = n
	}
	for _, d := range w.Domains {
		l.domains[d.Name] = d
	}
	for _, p := range w.Pools {
		l.pools[p.Name] = p
	}
	l.peers = slices.SortedFunc(slices.Values(w.Peers), func(a, b *world.Peer) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	l.invalid = slices.DeleteFunc(slices.Clone(l.peers), func(p *world.Peer) bool { return !world.Fatal(p.Findings) })
	l.peers = slices.DeleteFunc(l.peers, func(p *world.Peer) bool { return world.Fatal(p.Findings) })
	l.ads = slices.SortedFunc(slices.Values(w.Advertisements), func(a, b *world.Advertisement) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	l.ineffective = slices.DeleteFunc(slices.Clone(l.ads), func(ad *world.Advertisement) bool {
		return !world.Fatal(ad.Findings)
	})
	l.ads = slices.DeleteFunc(l.ads, func(ad *world.Advertisement) bool { return world.Fatal(ad.Findings) })
	for i, ad := range l.ads {
		l.rank[ad] = i
		for _, pool := range ad.Pools {
			l.byPool[pool] = append(l.byPool[pool], ad)
		}
		if ad.EveryPool {
			l.byPool[""] = append(l.byPool[""], ad)
		}
	}
	return l
}

// Off returns the reason why there must be no sessions (BGP is disabled), or "" if there may be.
func (l *Layout) Off() string {
	if s := &l.world.Cluster.ModeSetting; !s.Mode.BGP() {
		return s.Off("BGP is")
	}
	return ""
}

// Advertised returns the addresses of a Service that may be advertised: those that its status shows and that we
// allocated, and those external IPs that it is granted and that its condition ExternalIPs says it holds. The condition
// is the controller's: a node knows neither the addresses of other nodes nor all networks of the cluster, so it would
// grant a tenant the address of another node. If another client has cleared the status, and the ingress of another
// Service shows such an address, that one has it, unless both share it.
func (l *Layout) Advertised(s *world.Service) []netip.Addr {
	list := s.Shown()
	if s.IsCleared() {
		has := l.allocation.Services[s.Key].Addrs
		list = slices.DeleteFunc(slices.Clone(list), func(a netip.Addr) bool {
			return !slices.Contains(has, a) && l.inIngress(a)
		})
	}
	if foreign := func(a netip.Addr) bool { return !slices.Contains(s.Given, a) }; slices.ContainsFunc(list, foreign) {
		list = slices.DeleteFunc(slices.Clone(list), foreign)
	}
	external := l.allocation.Services[s.Key].External
	if len(external) == 0 {
		return list
	}
	own, held := list, world.AddrSet(s.HeldExternalIPs)
	list = slices.Clone(list)
	for _, a := range external {
		if held(a) && !slices.Contains(own, a) {
			list = append(list, a)
		}
	}
	return list
}

// inIngress reports whether the ingress of a Service shows an address.
func (l *Layout) inIngress(a netip.Addr) bool {
	if l.shown == nil {
		l.shown = make(map[netip.Addr]bool, len(l.world.Services))
		for _, s := range l.world.Services {
			for _, shown := range s.Assigned {
				l.shown[shown] = true
			}
		}
	}
	return l.shown[a]
}

// selecting returns the advertisements that select an address of a Service, the oldest first. None selects a Service of
// another service proxy: OVN-Kubernetes does not translate on the nodes what routers send to its addresses.
func (l *Layout) selecting(s *world.Service, a netip.Addr) []*world.Advertisement {
	if len(l.ads) == 0 || s.OtherProxy() {
		return nil
	}
	ads := l.byPool[l.allocation.PoolOf(a)]
	refuses := func(ad *world.Advertisement) bool { return !world.Selects(ad.Services, s.Labels) }
	if !slices.ContainsFunc(ads, refuses) {
		return ads
	}
	return slices.DeleteFunc(slices.Clone(ads), refuses)
}

// TakesPool reports whether an advertisement selects the addresses of a pool and may advertise them although no gateway
// has them.
func (l *Layout) TakesPool(pool string) bool {
	return l.Off() == "" && slices.ContainsFunc(l.byPool[pool], func(ad *world.Advertisement) bool {
		return !ad.ByGateway
	})
}

// SelectsPool reports whether an advertisement selects the addresses of a pool.
func (l *Layout) SelectsPool(pool string) bool { return len(l.byPool[pool]) > 0 }

// Ineffective is a BGPAdvertisement that advertises nothing because of a fatal finding, the first of which it has.
type Ineffective struct {
	Name    string
	Finding world.Finding
}

// Which returns that the advertisement selects what was named before, and why it has no effect.
func (i *Ineffective) Which() string {
	return "BGPAdvertisement " + i.Name + ", which selects it, has no effect: " + i.Finding.Message
}

// IneffectiveOn returns the oldest advertisement that selects a pool and has no effect; nil if there is none, or if
// another one has an effect.
func (l *Layout) IneffectiveOn(pool string) *Ineffective {
	if l.SelectsPool(pool) || l.Off() != "" {
		return nil
	}
	return l.firstIneffective(pool, func(*world.Advertisement) bool { return true })
}

// IneffectiveFor is IneffectiveOn for an address of a Service.
func (l *Layout) IneffectiveFor(s *world.Service, a netip.Addr) *Ineffective {
	if s.OtherProxy() || l.Off() != "" || len(l.selecting(s, a)) > 0 {
		return nil
	}
	return l.firstIneffective(l.allocation.PoolOf(a), func(ad *world.Advertisement) bool {
		return world.Selects(ad.Services, s.Labels)
	})
}

func (l *Layout) firstIneffective(pool string, selects func(*world.Advertisement) bool) *Ineffective {
	for _, ad := range l.ineffective {
		if has := slices.Contains(ad.Pools, pool) || ad.EveryPool && pool == ""; has && selects(ad) {
			at := slices.IndexFunc(ad.Findings, func(f world.Finding) bool { return f.Fatal })
			return &Ineffective{ad.Name, ad.Findings[at]}
		}
	}
	return nil
}

// prefixes yields the prefixes in which an advertisement announces an address of a Service. One with policy Local is
// announced alone as well as in an aggregate: nodes without endpoints of it announce the aggregate because of other
// Services, and would drop what is sent to it. Routers send to the longest prefix.
func (l *Layout) prefixes(s *world.Service, ad *world.Advertisement, a netip.Addr) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		p, alone := l.prefix(ad, a), netip.PrefixFrom(a, a.BitLen())
		if yield(p) && s.LocalPolicy && p != alone {
			yield(alone)
		}
	}
}

// decisive returns the prefix on which it depends whether an advertisement announces an address: the longest of
// prefixes. local means that the policy of the Service is Local.
func (l *Layout) decisive(local bool, ad *world.Advertisement, a netip.Addr) netip.Prefix {
	if local {
		return netip.PrefixFrom(a, a.BitLen())
	}
	return l.prefix(ad, a)
}

// prefix returns the aggregate of an address, or the address alone if there is none or it is wider than the pool.
func (l *Layout) prefix(ad *world.Advertisement, a netip.Addr) netip.Prefix {
	length := ad.Length6
	if a.Is4() {
		length = ad.Length4
	}
	if length < a.BitLen() {
		p := netip.PrefixFrom(a, length).Masked()
		if pool := l.pools[l.allocation.PoolOf(a)]; pool != nil && l.set(pool).ContainsPrefix(p) {
			return p
		}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

func (l *Layout) set(p *world.Pool) *netipx.IPSet {
	set := l.sets[p]
	if set == nil {
		var b netipx.IPSetBuilder
		for _, r := range p.Ranges {
			b.AddRange(r)
		}
		// The only error is about invalid ranges, and a Pool has none.
		set, _ = b.IPSet()
		l.sets[p] = set
	}
	return set
}

// containsName reports whether a name is in a sorted list.
func containsName(names []string, name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// advertises reports whether an advertisement applies to a peer.
func advertises(ad *world.Advertisement, peer string) bool {
	return len(ad.Peers) == 0 || slices.Contains(ad.Peers, peer)
}
