// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"encoding/binary"
	"hash/fnv"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// PrefixSets numbers the sets of nodes that have the same prefixes. The work and memory for it are proportional to the
// lists that are added, not to the product of nodes and prefixes.
type PrefixSets struct {
	numbers map[netip.Prefix]int
	steps   []step
}

// step is a set: another one and further nodes.
type step struct {
	before int
	nodes  []string
}

// NewPrefixSets returns no sets.
func NewPrefixSets() *PrefixSets { return &PrefixSets{numbers: map[netip.Prefix]int{}} }

// Add adds nodes to the sets of some prefixes, which it divides into those and the others.
func (s *PrefixSets) Add(nodes []string, prefixes iter.Seq[netip.Prefix]) {
	with := map[int]int{}
	for prefix := range prefixes {
		was := s.numbers[prefix]
		if with[was] == 0 {
			s.steps = append(s.steps, step{was, nodes})
			with[was] = len(s.steps)
		}
		s.numbers[prefix] = with[was]
	}
}

// Number returns the number of the set of a prefix; 0 is the empty one.
func (s *PrefixSets) Number(prefix netip.Prefix) int { return s.numbers[prefix] }

// Prefixes returns all prefixes that a node has, in no order.
func (s *PrefixSets) Prefixes() iter.Seq[netip.Prefix] { return maps.Keys(s.numbers) }

// Nodes returns the nodes of a set, in no order, some several times.
func (s *PrefixSets) Nodes(number int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := number; n > 0; n = s.steps[n-1].before {
			for _, name := range s.steps[n-1].nodes {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// RunningSets returns the sets of nodes, of those named, that advertise the same prefixes to a peer. Only prefixes that
// are known count, which are sorted, so that what a node reports beyond these costs a comparison each.
func RunningSets(f *world.FRR, p *world.Peer, names iter.Seq[string], known []netip.Prefix) *PrefixSets {
	type list struct {
		prefixes []netip.Prefix
		nodes    []string
	}
	var lists []*list
	var both []netip.Prefix
	bySum := map[uint64][]*list{} // nodes with the same list divide nothing further
	for name := range names {
		both = both[:0]
		h := fnv.New64a()
		for prefix, is := range Compared(f.Running(name, p), known) {
			if !is {
				continue
			}
			both = append(both, prefix)
			b := prefix.Addr().As16()
			h.Write(binary.BigEndian.AppendUint16(b[:], uint16(prefix.Bits())))
		}
		sum := h.Sum64()
		at := slices.IndexFunc(bySum[sum], func(l *list) bool { return slices.Equal(l.prefixes, both) })
		if at >= 0 {
			bySum[sum][at].nodes = append(bySum[sum][at].nodes, name)
			continue
		}
		is := &list{slices.Clone(both), []string{name}}
		lists, bySum[sum] = append(lists, is), append(bySum[sum], is)
	}
	sets := NewPrefixSets()
	for _, l := range lists {
		sets.Add(l.nodes, slices.Values(l.prefixes))
	}
	return sets
}

// Compared yields prefixes, which are sorted, and whether they are among others, which are sorted, too.
func Compared(prefixes, others []netip.Prefix) iter.Seq2[netip.Prefix, bool] {
	return func(yield func(netip.Prefix, bool) bool) {
		for _, prefix := range prefixes {
			order := 1
			for len(others) > 0 && order > 0 {
				if order = prefix.Compare(others[0]); order > 0 {
					others = others[1:]
				}
			}
			if !yield(prefix, len(others) > 0 && order == 0) {
				return
			}
		}
	}
}
