// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Open vSwitch looks up all IP fragments without ports, the first one of a packet, too (ovs-actions(7), fragments in
// mode "normal"). They match no ACL with ports, and the shard's router has conntrack reassemble them, so that the
// packet matches a load balancer. Fragments therefore have ACLs of their own, for the protocol of the address. All
// Services there share them: fragments pass only if they come from the ranges of each Service that has some.

// isFragment ends the matches of ACLs that drop fragments.
const isFragment = " && ip.is_frag"

// fragmentsTo matches what the fragments of a protocol have in common that can't be reassembled without matching.
//
// The protocol of an IPv6 fragment that is not the first one of its packet is unknown. It waits for the first one in
// vain. That of a first one without all headers is 59 ("no next header", net/openvswitch/flow.c), but older kernels
// reassemble it.
func fragmentsTo(vip netip.Addr, protocol world.Protocol) string {
	if vip.Is6() {
		numbers := map[world.Protocol]int{world.TCP: 6, world.UDP: 17, world.SCTP: 132}
		return fmt.Sprintf("ip6.dst == %s && ip.proto == {%d, 59}", vip, numbers[protocol]) + isFragment
	}
	return fragmentsFrom(vip, protocol)
}

// fragmentsFrom is fragmentsTo for fragments that are to be admitted.
func fragmentsFrom(vip netip.Addr, protocol world.Protocol) string {
	return fmt.Sprintf("ip%d.dst == %s && %s", world.FamilyOf(vip), vip, strings.ToLower(string(protocol))) + isFragment
}

// Restricted indexes the Services with source ranges by the addresses and protocols that they serve. The zero value is
// empty.
//
// Each of them drops fragments. One per address and protocol, the first by key, admits those from the ranges of all, so
// that a change of one Service changes no more than two others.
type Restricted struct {
	sharers map[served][]sharer // sorted by key
}

// served is an address with a protocol of which Services have ports there.
type served struct {
	addr     netip.Addr
	protocol world.Protocol
}

// sharer is a Service with its source ranges.
type sharer struct {
	key     world.Key
	sources []netip.Prefix
}

func (s sharer) compare(key world.Key) int { return s.key.Compare(key) }

// Replace replaces the plan of a Service; was and is may be nil. It returns the other Services whose ACLs have changed,
// sorted.
func (r *Restricted) Replace(was, is *plan.Service) []world.Key {
	before, after := restrictedBy(was), restrictedBy(is)
	var others []world.Key
	for at := range before {
		if _, stays := after[at]; !stays {
			others = append(others, r.set(at, was.Key, nil, false)...)
		}
	}
	for at, sources := range after {
		if had, has := before[at]; !has || !slices.Equal(had, sources) {
			others = append(others, r.set(at, is.Key, sources, true)...)
		}
	}
	slices.SortFunc(others, world.Key.Compare)
	return slices.Compact(others)
}

// set adds a Service, replaces its ranges, or removes it. It returns which other ones have admitted fragments or do.
func (r *Restricted) set(at served, key world.Key, sources []netip.Prefix, restricted bool) (others []world.Key) {
	if r.sharers == nil {
		r.sharers = map[served][]sharer{}
	}
	list := r.sharers[at]
	first := func() {
		if len(list) > 0 && list[0].key != key {
			others = append(others, list[0].key)
		}
	}
	first()
	i, found := slices.BinarySearchFunc(list, key, sharer.compare)
	switch {
	case restricted && found:
		list[i].sources = sources
	case restricted:
		list = slices.Insert(list, i, sharer{key, sources})
	case found:
		list = slices.Delete(list, i, i+1)
	}
	first()
	if r.sharers[at] = list; len(list) == 0 {
		delete(r.sharers, at)
	}
	return others
}

// restrictedBy returns the source ranges of a plan, which may be nil, by what it serves.
func restrictedBy(p *plan.Service) map[served][]netip.Prefix {
	if p == nil || len(p.SourceRanges) == 0 {
		return nil
	}
	out := map[served][]netip.Prefix{}
	for i := range p.Listeners {
		l := &p.Listeners[i]
		if sources, restricted := p.SourceRanges[world.FamilyOf(l.VIP)]; restricted {
			out[served{l.VIP, l.Protocol}] = sources
		}
	}
	return out
}

// ShareFragments reports whether the source ranges of both plans, which may be nil, apply to the same fragments.
func ShareFragments(a, b *plan.Service) bool {
	of := restrictedBy(b)
	for at := range restrictedBy(a) {
		if _, both := of[at]; both {
			return true
		}
	}
	return false
}

// admittedBy returns the ranges whose fragments a Service admits at an address, for all Services there.
func (r *Restricted) admittedBy(p *plan.Service, vip netip.Addr, protocol world.Protocol) []netip.Prefix {
	own := p.SourceRanges[world.FamilyOf(vip)]
	if r == nil {
		return own
	}
	list := r.sharers[served{vip, protocol}]
	if _, known := slices.BinarySearchFunc(list, p.Key, sharer.compare); !known {
		return own
	}
	if list[0].key != p.Key {
		return nil
	}
	lists := [][]netip.Prefix{own}
	for _, s := range list[1:] {
		if !slices.Equal(s.sources, lists[len(lists)-1]) {
			lists = append(lists, s.sources)
		}
	}
	if len(lists) == 1 {
		return own
	}
	return common(lists)
}

// common returns what all lists contain, of one family. It returns nothing if more than plan.MaxSourceRanges prefixes
// are left, which happens if each list leaves out something else: all would be in one ACL, and each node would have to
// read it again whenever one of the Services changes.
func common(lists [][]netip.Prefix) []netip.Prefix {
	var starts, ends []netip.Addr
	for _, list := range lists {
		var merged netipx.IPSetBuilder // so that each list covers an address once
		for _, prefix := range list {
			merged.AddPrefix(prefix)
		}
		set, err := merged.IPSet()
		if err != nil {
			return nil // a prefix that is not valid
		}
		for _, r := range set.Ranges() {
			starts, ends = append(starts, r.From()), append(ends, r.To())
		}
	}
	slices.SortFunc(starts, netip.Addr.Compare)
	slices.SortFunc(ends, netip.Addr.Compare)
	var all []netip.Prefix
	ended := 0
	for i, start := range starts {
		for ends[ended].Less(start) {
			ended++
		}
		if i+1-ended < len(lists) {
			continue
		}
		all = netipx.IPRangeFrom(start, ends[ended]).AppendPrefixes(all)
		if len(all) > plan.MaxSourceRanges {
			return nil
		}
	}
	return all
}

// SetRestricted sets the Services with source ranges. Without it, no Service shares an address with another one.
func (b *Builder) SetRestricted(r *Restricted) { b.restricted = r }
