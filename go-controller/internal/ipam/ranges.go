// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// In this file, a sorted list of ranges is sorted by address and disjoint. IPv4 comes before IPv6.

// find returns the index of the first range of a sorted list that does not end before a.
func find(sorted []netipx.IPRange, a netip.Addr) int {
	i, _ := slices.BinarySearchFunc(sorted, a, func(r netipx.IPRange, a netip.Addr) int { return r.To().Compare(a) })
	return i
}

// contains reports whether an address is in one of the ranges of a sorted list.
func contains(sorted []netipx.IPRange, a netip.Addr) bool {
	i := find(sorted, a)
	return i < len(sorted) && sorted[i].Contains(a)
}

// overlapping returns the bounds of the part of a sorted list that overlaps r.
func overlapping(sorted []netipx.IPRange, r netipx.IPRange) (first, end int) {
	first = find(sorted, r.From())
	for end = first; end < len(sorted) && !r.To().Less(sorted[end].From()); end++ {
	}
	return first, end
}

// minus returns r without the addresses of a sorted list, in order.
func minus(r netipx.IPRange, sorted []netipx.IPRange) []netipx.IPRange {
	var left []netipx.IPRange
	from := r.From()
	first, end := overlapping(sorted, r)
	for _, cut := range sorted[first:end] {
		if from.Less(cut.From()) {
			left = append(left, netipx.IPRangeFrom(from, cut.From().Prev()))
		}
		if !cut.To().Less(r.To()) {
			return left
		}
		from = cut.To().Next()
	}
	return append(left, netipx.IPRangeFrom(from, r.To()))
}

// common returns the intersection of two overlapping ranges.
func common(a, b netipx.IPRange) netipx.IPRange {
	from, to := a.From(), a.To()
	if from.Less(b.From()) {
		from = b.From()
	}
	if b.To().Less(to) {
		to = b.To()
	}
	return netipx.IPRangeFrom(from, to)
}

// union returns the sorted list of the addresses of all ranges.
func union(ranges []netipx.IPRange) []netipx.IPRange {
	all := slices.SortedFunc(slices.Values(ranges), func(a, b netipx.IPRange) int { return a.From().Compare(b.From()) })
	merged := all[:0]
	for _, r := range all {
		if n := len(merged); n > 0 && !merged[n-1].To().Less(r.From()) {
			if merged[n-1].To().Less(r.To()) {
				merged[n-1] = netipx.IPRangeFrom(merged[n-1].From(), r.To())
			}
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// size returns the number of addresses in r, at most the largest int64.
func size(r netipx.IPRange) int64 {
	from, to := r.From().As16(), r.To().As16()
	lo, borrow := bits.Sub64(binary.BigEndian.Uint64(to[8:]), binary.BigEndian.Uint64(from[8:]), 0)
	hi, _ := bits.Sub64(binary.BigEndian.Uint64(to[:8]), binary.BigEndian.Uint64(from[:8]), borrow)
	if hi != 0 || lo >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo) + 1
}

// plus adds two counts and saturates at the largest int64.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// buggy reports whether some old network devices and clients would drop an address: an IPv4 address that ends in .0
// or .255, as in a class C network.
func buggy(a netip.Addr) bool {
	if !a.Is4() {
		return false
	}
	b := a.As4()
	return b[3] == 0 || b[3] == 255
}

// buggyIn returns the number of buggy addresses in r.
func buggyIn(r netipx.IPRange) int64 {
	if !r.From().Is4() {
		return 0
	}
	from, to := r.From().As4(), r.To().As4()
	return buggyBelow(int64(binary.BigEndian.Uint32(to[:]))+1) - buggyBelow(int64(binary.BigEndian.Uint32(from[:])))
}

// buggyBelow returns how many of the IPv4 addresses 0 .. n-1 are buggy: two in each full block of 256, and .0 of the
// last partial one.
func buggyBelow(n int64) int64 {
	return n/256*2 + min(n%256, 1)
}
