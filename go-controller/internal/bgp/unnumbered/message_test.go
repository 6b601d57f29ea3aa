// SPDX-License-Identifier: Apache-2.0

package unnumbered

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"
)

func TestMessages(t *testing.T) {
	mac := []byte{2, 0, 0, 0, 0, 1}
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"advertisement: lifetime 0, no prefix", advertise(mac), "86000000000000000000000000000000" + "0101020000000001"},
		{"solicitation", solicit(mac), "8500000000000000" + "0101020000000001"},
		{"a link without MAC addresses", solicit(nil), "8500000000000000"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestOnlyValidAdvertisementsAreAccepted(t *testing.T) {
	peer := netip.MustParseAddr("fe80::1")
	ours := advertise([]byte{2, 0, 0, 0, 0, 1})
	for _, c := range []struct {
		name     string
		message  []byte
		hopLimit int
		from     string
		want     bool
	}{
		{"an advertisement", ours, 255, "fe80::1", true},
		{"a solicitation of a host without address", solicit(nil), 255, "::", true},
		{"an advertisement from beyond the link", ours, 254, "fe80::1", false},
		{"an advertisement from a global address", ours, 255, "2001:db8::1", false},
		{"cut", ours[:15], 255, "fe80::1", false},
		{"cut in an option", ours[:20], 255, "fe80::1", false},
		{"an option of length 0", append(slices.Clone(ours), 3, 0, 0, 0, 0, 0, 0, 0), 255, "fe80::1", false},
		{"another code", append([]byte{134, 1}, ours[2:]...), 255, "fe80::1", false},
		{"another type", append([]byte{135}, ours[1:]...), 255, "fe80::1", false},
	} {
		from := peer
		if c.from != "" {
			from = netip.MustParseAddr(c.from)
		}
		if got := valid(c.message, c.hopLimit, from); got != c.want {
			t.Errorf("%s: valid %v, want %v", c.name, got, c.want)
		}
	}
}

// A malformed message is rejected and never read beyond its end.
func FuzzValid(f *testing.F) {
	f.Add(advertise([]byte{2, 0, 0, 0, 0, 1}))
	f.Add(solicit(nil))
	f.Fuzz(func(t *testing.T, m []byte) {
		if valid(m, 255, netip.MustParseAddr("fe80::1")) && len(m) < solicitationLen {
			t.Errorf("%x is valid", m)
		}
	})
}
