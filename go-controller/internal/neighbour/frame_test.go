// SPDX-License-Identifier: Apache-2.0

package neighbour

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
)

const (
	// As captured by tcpdump and sent by the kernel.
	arpReply = "021122334455 0242ac000001 0806 0001 0800 06 04 0002 0242ac000001 0a320032 021122334455 00000000"
	advert   = "333300000001 0242ac000001 86dd 60000000 0020 3a ff fd000050000000000000000000000050 " +
		"ff020000000000000000000000000001 " +
		"8800 c5d5 20000000 fd000050000000000000000000000050 0201 0242ac000001"
	ping = "021122334455 0242ac000001 86dd 60000000 0020 3a 40 fd000050000000000000000000000050 " +
		"fd000050000000000000000000000001 " +
		"8000 c5d5 20000000 fd000050000000000000000000000050 0201 0242ac000001"
	tcp = "021122334455 0242ac000001 0800 45000028 00000000 40060000 0a320032 0a320001 0050 0051 00000000 00000000 5000 " +
		"0000 0000 0000"
)

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestARPRequestsAndNeighborSolicitations(t *testing.T) {
	from := [6]byte{2, 0x11, 0x22, 0x33, 0x44, 0x55}
	for _, c := range []struct {
		addr string
		vlan int
		want string
	}{
		{"10.50.0.50", 0, "ffffffffffff 021122334455 0806 0001 0800 06 04 0001 021122334455 00000000 000000000000 0a320032"},
		{"10.50.0.50", 7, "ffffffffffff 021122334455 8100 0007 0806 0001 0800 06 04 0001 021122334455 00000000 " +
			"000000000000 0a320032"},
		{"fd00:50::50", 0, "3333ff000050 021122334455 86dd 60000000 0018 3a ff 00000000000000000000000000000000 " +
			"ff0200000000000000000001ff000050 " +
			"8700 7cb7 00000000 fd000050000000000000000000000050"},
	} {
		if got := probeFrame(from, netip.MustParseAddr(c.addr), c.vlan); string(got) != string(bytesOf(t, c.want)) {
			t.Errorf("probe for %s:\n%x, want\n%x", c.addr, got, bytesOf(t, c.want))
		}
	}
}

// A claim equals the frame that a kernel sends for its own addresses, and is parsed as an answer.
func TestClaims(t *testing.T) {
	from := [6]byte{0x02, 0x42, 0xac, 0, 0, 1}
	for addr, want := range map[string]string{
		"10.50.0.50":  "ffffffffffff 0242ac000001 0806 0001 0800 06 04 0001 0242ac000001 0a320032 000000000000 0a320032",
		"fd00:50::50": strings.Replace(advert, "c5d5", "ad1a", 1), // computed by hand following RFC 4443 section 2.3
	} {
		got := claim(from, netip.MustParseAddr(addr), 0)
		tagged := slices.Concat(got[:12], []byte{0x81, 0, 0, 7}, got[12:])
		if with := claim(from, netip.MustParseAddr(addr), 7); string(with) != string(tagged) {
			t.Errorf("claim of %s on VLAN 7:\n%x, want\n%x", addr, with, tagged)
		}
		if string(got) != string(bytesOf(t, want)) {
			t.Errorf("claim of %s:\n%x, want\n%x", addr, got, bytesOf(t, want))
		}
		if a, mac, ok := parseAnswer(got); !ok || a.String() != addr || mac != "02:42:ac:00:00:01" {
			t.Errorf("claim of %s is read as %s %s %v", addr, a, mac, ok)
		}
	}
}

// spoofed returns a frame whose sender on the link is another one than the host that it claims an address for: the
// guard ignores our own router, and any host can send from its MAC address.
func spoofed(frame string) string { return strings.Replace(frame, "0242ac000001", "02ffffffffff", 1) }

// Answers are parsed, and the kernel's filter rejects all other frames.
func TestAnswers(t *testing.T) {
	filter, err := bpf.NewVM(answerFilter())
	if err != nil {
		t.Fatal(err)
	}
	own := probeFrame([6]byte{2}, netip.MustParseAddr("10.50.0.50"), 0)
	for name, c := range map[string]struct {
		frame  []byte
		want   string
		passes bool
	}{
		"ARP reply":                            {bytesOf(t, arpReply), "10.50.0.50", true},
		"ARP reply in the name of another":     {bytesOf(t, spoofed(arpReply)), "10.50.0.50", true},
		"ARP probe":                            {own, "", false},
		"advertisement":                        {bytesOf(t, advert), "fd00:50::50", true},
		"advertisement in the name of another": {bytesOf(t, spoofed(advert)), "fd00:50::50", true},
		"the same after another option": {bytesOf(t, strings.Replace(spoofed(advert), "0201", "0e01000000000000 0201", 1)),
			"fd00:50::50", true},
		"the same before another one of its kind": {bytesOf(t, strings.Replace(spoofed(advert), "0201 0242ac000001",
			"0201 0242ac000001 0201 021122334455", 1)), "fd00:50::50", true},
		"advertisement behind a hop-by-hop header": {behind(t, "00"), "fd00:50::50", true},
		"advertisement behind a routing header":    {behind(t, "2b"), "fd00:50::50", true},
		"advertisement behind options":             {behind(t, "3c"), "fd00:50::50", true},
		"advertisement behind two headers": {bytesOf(t, strings.Replace(strings.Replace(advert, "3a ff", "00 ff", 1),
			"8800 c5d5", "3c00010400000000 3a01010c0000000000000000000000 00 8800 c5d5", 1)), "fd00:50::50", true},
		"advertisement in a fragment":        {behind(t, "2c"), "", false},
		"a header without an end":            {bytesOf(t, strings.Replace(advert, "3a ff", "3c ff", 1))[:60], "", true},
		"advertisement from beyond the link": {bytesOf(t, strings.Replace(advert, "3a ff", "3a fe", 1)), "", false},
		"ping":                               {bytesOf(t, ping), "", false},
		"TCP":                                {bytesOf(t, tcp), "", false},
		"short":                              {bytesOf(t, arpReply)[:20], "", false},
	} {
		if n, err := filter.Run(c.frame); err != nil || (n > 0) != c.passes {
			t.Errorf("%s: the filter takes %d bytes (%v), want any: %v", name, n, err, c.passes)
		}
		a, mac, ok := parseAnswer(c.frame)
		if ok != (c.want != "") || ok && (a.String() != c.want || mac != "02:42:ac:00:00:01") {
			t.Errorf("%s: answer %s %s %v, want %q", name, a, mac, ok, c.want)
		}
	}
}

// behind returns an advertisement behind an extension header of 8 bytes.
func behind(t *testing.T, header string) []byte {
	t.Helper()
	return bytesOf(t, strings.Replace(strings.Replace(spoofed(advert), "0020 3a ff", "0028 "+header+" ff", 1), "8800 c5d5",
		"3a00010400000000 8800 c5d5", 1))
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		if a, mac, ok := parseAnswer(frame); ok && (!a.IsValid() || len(mac) != 17) {
			t.Errorf("answer %s %s", a, mac)
		}
	})
}
