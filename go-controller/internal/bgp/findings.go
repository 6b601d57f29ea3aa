// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Duplicates returns a finding, by peer name, for each peer that duplicates older peers on some or all of its nodes.
func (l *Layout) Duplicates() map[string]world.Finding {
	found := map[string]world.Finding{}
	older := map[identity][]*world.Peer{}
	for _, p := range l.peers {
		id := identify(p)
		var names []string
		left := slices.Clone(p.Nodes)
		for _, o := range older[id] {
			before := len(left)
			left = slices.DeleteFunc(left, func(n string) bool { return containsName(o.Nodes, n) })
			if len(left) < before {
				names = append(names, "BGPPeer "+o.Name)
			}
		}
		older[id] = append(older[id], p)
		if len(names) > 0 {
			found[p.Name] = world.Finding{Reason: v1alpha1.ReasonDuplicatePeer, Fatal: len(left) == 0,
				Message: fmt.Sprintf("same peer as the older %s on %d of %s", strings.Join(names, ", "),
					len(p.Nodes)-len(left), world.Count(len(p.Nodes), "node"))}
		}
	}
	return found
}

// Clashes returns, by advertisement name, the aggregates that are too wide and the attributes that older advertisements
// override.
func (l *Layout) Clashes() map[string][]world.Finding {
	found := map[string][]world.Finding{}
	for _, ad := range l.ads {
		found[ad.Name] = append(found[ad.Name], l.tooWide(ad)...)
	}
	overlaps := l.overlaps()
	for _, young := range l.ads {
		for _, old := range l.ads[:l.rank[young]] {
			prefix, ok := overlaps[[2]*world.Advertisement{old, young}]
			if !ok || !overlap(old, young) {
				continue
			}
			if what := differ(old, young); len(what) > 0 {
				found[young.Name] = append(found[young.Name], world.Finding{Reason: v1alpha1.ReasonAttributesDiffer,
					Message: fmt.Sprintf("%s: the older BGPAdvertisement %s says otherwise of %s, and that counts",
						strings.Join(what, ", "), old.Name, prefix)})
			}
		}
	}
	return found
}

// overlaps returns the pairs of advertisements, the older one first, that advertise the same prefix, and the first such
// prefix of each pair.
func (l *Layout) overlaps() map[[2]*world.Advertisement]netip.Prefix {
	pairs := map[[2]*world.Advertisement]netip.Prefix{}
	if len(l.ads) < 2 {
		return pairs
	}
	for p, ads := range l.byPrefix() {
		for i, a := range ads {
			for _, b := range ads[:i] {
				pair := [2]*world.Advertisement{a, b}
				if l.rank[b] < l.rank[a] {
					pair = [2]*world.Advertisement{b, a}
				}
				if first, ok := pairs[pair]; !ok || p.Compare(first) < 0 {
					pairs[pair] = p
				}
			}
		}
	}
	return pairs
}

// byPrefix returns the advertisements of each prefix.
func (l *Layout) byPrefix() map[netip.Prefix][]*world.Advertisement {
	advertised := map[netip.Prefix][]*world.Advertisement{}
	for _, s := range l.world.Services {
		for _, a := range l.Advertised(s) {
			for _, ad := range l.selecting(s, a) {
				for p := range l.prefixes(s, ad, a) {
					if !slices.Contains(advertised[p], ad) {
						advertised[p] = append(advertised[p], ad)
					}
				}
			}
		}
	}
	return advertised
}

// overlap reports whether two advertisements have a node and a peer in common.
func overlap(a, b *world.Advertisement) bool {
	peers := len(a.Peers) == 0 || len(b.Peers) == 0 || slices.ContainsFunc(a.Peers, func(p string) bool {
		return slices.Contains(b.Peers, p)
	})
	return peers && slices.ContainsFunc(a.Nodes, func(n string) bool { return containsName(b.Nodes, n) })
}

// differ returns the attributes that both advertisements set to different values.
func differ(a, b *world.Advertisement) []string {
	set := func(a, b *uint32) bool { return a != nil && b != nil && *a != *b }
	var what []string
	if set(a.LocalPref, b.LocalPref) {
		what = append(what, fmt.Sprintf("spec.localPref: %d", *b.LocalPref))
	}
	if set(a.MED, b.MED) {
		what = append(what, fmt.Sprintf("spec.med: %d", *b.MED))
	}
	if a.Prepend != b.Prepend && a.Prepend != 0 && b.Prepend != 0 {
		what = append(what, fmt.Sprintf("spec.asPathPrepend: %d", b.Prepend))
	}
	if a.ByGateway != b.ByGateway {
		what = append(what, "spec.nextHop")
	}
	return what
}

// tooWide reports the pools with addresses whose aggregate is wider than the pool.
func (l *Layout) tooWide(ad *world.Advertisement) []world.Finding {
	var found []world.Finding
	for _, name := range ad.Pools {
		p := l.pools[name]
		if p == nil {
			continue
		}
		sticksOut := func(a netip.Addr, length int) bool {
			return length < a.BitLen() && !l.set(p).ContainsPrefix(netip.PrefixFrom(a, length).Masked())
		}
		i := slices.IndexFunc(p.Ranges, func(r netipx.IPRange) bool {
			length := ad.Length6
			if r.From().Is4() {
				length = ad.Length4
			}
			return sticksOut(r.From(), length) || sticksOut(r.To(), length)
		})
		if i >= 0 {
			field, length := "spec.aggregationLengthV6", ad.Length6
			if p.Ranges[i].From().Is4() {
				field, length = "spec.aggregationLength", ad.Length4
			}
			found = append(found, world.Finding{Reason: v1alpha1.ReasonAggregateTooWide,
				Message: fmt.Sprintf("%s: %d: the prefix extends beyond %s of pool %s; such addresses are advertised individually",
					field, length, p.Ranges[i], name)})
		}
	}
	slices.SortFunc(found, func(a, b world.Finding) int { return cmp.Compare(a.Message, b.Message) })
	return found
}
