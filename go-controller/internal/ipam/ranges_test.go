// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go4.org/netipx"
)

// list parses ranges, as "10.0.0.1-10.0.0.9 fd00::-fd00::1".
func list(text string) []netipx.IPRange {
	var ranges []netipx.IPRange
	for _, word := range strings.Fields(text) {
		ranges = append(ranges, netipx.MustParseIPRange(word))
	}
	return ranges
}

func TestMinus(t *testing.T) {
	for _, c := range []struct{ from, cuts, want string }{
		{"10.0.0.0-10.0.0.9", "", "10.0.0.0-10.0.0.9"},
		{"10.0.0.0-10.0.0.9", "10.0.0.0-10.0.0.9", ""},
		{"10.0.0.0-10.0.0.9", "9.0.0.0-10.0.0.0 10.0.0.9-10.0.0.20", "10.0.0.1-10.0.0.8"},
		{"10.0.0.0-10.0.0.9", "10.0.0.2-10.0.0.3 10.0.0.5-10.0.0.5", "10.0.0.0-10.0.0.1 10.0.0.4-10.0.0.4 10.0.0.6-10.0.0.9"},
		{"255.255.255.0-255.255.255.255", "255.255.255.9-255.255.255.255", "255.255.255.0-255.255.255.8"},
		{"fd00::-fd00::9", "10.0.0.0-10.0.0.9 fd00::-fd00::3", "fd00::4-fd00::9"},
	} {
		if got := minus(netipx.MustParseIPRange(c.from), list(c.cuts)); !slices.Equal(got, list(c.want)) {
			t.Errorf("%s minus %s is %v, want %s", c.from, c.cuts, got, c.want)
		}
	}
}

func TestUnion(t *testing.T) {
	got := union(list("fd00::1-fd00::2 10.0.0.5-10.0.0.9 10.0.0.1-10.0.0.6 10.0.0.2-10.0.0.3"))
	if want := list("10.0.0.1-10.0.0.9 fd00::1-fd00::2"); !slices.Equal(got, want) {
		t.Errorf("union is %v, want %v", got, want)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"10.0.0.1-10.0.0.1":                                1,
		"0.0.0.0-255.255.255.255":                          1 << 32,
		"fd00::-fd00::ffff:ffff:ffff":                      1 << 48,
		"fd00::ffff:ffff:ffff:ffff-fd00::1:0:0:0:0":        2,
		"fd00::-fd00::7fff:ffff:ffff:fffe":                 math.MaxInt64,
		"fd00::-fd00::ffff:ffff:ffff:ffff":                 math.MaxInt64,
		"::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff":       math.MaxInt64,
		"fd00::1-fd00:0:0:1::":                             math.MaxInt64,
		"fd00::8000:0:0:0-fd00::ffff:ffff:ffff:fffe":       math.MaxInt64,
		"fd00::8000:0:0:1-fd00::ffff:ffff:ffff:fffe":       math.MaxInt64 - 1,
		"255.255.255.255-255.255.255.255":                  1,
		"fd00::fffe-fd00::1:0":                             3,
		"fd00::fffe:ffff:ffff:ffff-fd00::ffff:0:0:0":       2,
		"fd00:0:0:1:ffff:ffff:ffff:ffff-fd00:0:0:2::":      2,
		"fd00:0:0:1:ffff:ffff:ffff:fff0-fd00:0:0:2::f":     32,
		"fd00:0:0:1::-fd00:0:0:1:7fff:ffff:ffff:fffd":      math.MaxInt64 - 1,
		"fd00:0:0:1:8000::-fd00:0:0:2:7fff:ffff:ffff:ffff": math.MaxInt64,
	} {
		if got := size(netipx.MustParseIPRange(text)); got != want {
			t.Errorf("size of %s is %d, want %d", text, got, want)
		}
	}
	if plus(math.MaxInt64, 1) != math.MaxInt64 || plus(2, 3) != 5 {
		t.Error("plus does not stop at the largest int64")
	}
}

func TestBuggyIn(t *testing.T) {
	for from := range 600 {
		for length := range 40 {
			r := netipx.IPRangeFrom(at(from), at(from+13*length))
			var want int64
			for a := r.From(); a.Compare(r.To()) <= 0; a = a.Next() {
				if buggy(a) {
					want++
				}
			}
			if got := buggyIn(r); got != want {
				t.Fatalf("%d buggy addresses in %s, want %d", got, r, want)
			}
		}
	}
	if all := buggyIn(netipx.MustParseIPRange("0.0.0.0-255.255.255.255")); all != 2<<24 {
		t.Errorf("%d buggy addresses in all, want %d", all, 2<<24)
	}
	if n := buggyIn(netipx.MustParseIPRange("fd00::-fd00::ffff")); n != 0 {
		t.Errorf("%d buggy IPv6 addresses", n)
	}
}

func at(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(n / 256), byte(n)})
}
