// SPDX-License-Identifier: Apache-2.0

package bfd_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

// wire is a packet in the layout of RFC 5880 section 4.1.
const wire = "20 d0 03 18 00000001 00000002 000493e0 000186a0 00000000"

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPacketOnTheWire(t *testing.T) {
	p := bfd.Packet{
		State: bfd.Up, Final: true, Multiplier: 3, My: 1, Your: 2,
		Transmit: 300 * time.Millisecond, Receive: 100 * time.Millisecond,
	}
	if got := p.Append(nil); !bytes.Equal(got, unhex(t, wire)) {
		t.Errorf("%x, want %s", got, wire)
	}
	if got, err := bfd.Decode(unhex(t, wire)); err != nil || got != p {
		t.Errorf("%+v (%v), want %+v", got, err, p)
	}
	// The echo interval, the Control Plane Independent bit and bytes beyond the packet's length are ignored.
	more := strings.Replace(wire, "d0 03", "d8 03", 1)
	more = more[:len(more)-8] + "000493e0 ffff"
	if got, err := bfd.Decode(unhex(t, more)); err != nil || got != p {
		t.Errorf("with more: %+v (%v), want %+v", got, err, p)
	}
}

// RFC 5880 section 6.8.6 prescribes the order of the checks. Each of these packets violates one rule more than the
// next.
func TestRefusedPackets(t *testing.T) {
	for _, c := range []struct{ packet, want string }{
		{"40 c7 00 17 00000000", "packet length 8, want at least 24"},
		{"40 c5 00 19 00000000 00000000 000493e0 000186a0 00000000", "version 2, want 1"},
		{"20 c5 00 19 00000000 00000000 000493e0 000186a0 00000000", "length 25, want at least 26"},
		{"20 c1 00 17 00000000 00000000 000493e0 000186a0 00000000", "length 23, want at least 24"},
		{"20 c5 00 1a 00000000 00000000 000493e0 000186a0 00000000", "length field 26, packet length 24"},
		{"20 c5 00 1a 00000000 00000000 000493e0 000186a0 00000000 0000", "detect multiplier 0"},
		{"20 c5 03 1a 00000000 00000000 000493e0 000186a0 00000000 0000", "multipoint bit set"},
		{"20 c4 03 1a 00000000 00000000 000493e0 000186a0 00000000 0000", "my discriminator 0"},
		{"20 c4 03 1a 00000001 00000000 000493e0 000186a0 00000000 0000", "your discriminator 0 in state Up"},
		{"20 84 03 1a 00000001 00000000 000493e0 000186a0 00000000 0000", "your discriminator 0 in state Init"},
		{"20 44 03 1a 00000001 00000000 000493e0 000186a0 00000000 0000", "authentication, which is not in use"},
	} {
		if p, err := bfd.Decode(unhex(t, c.packet)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %+v, error %v, want %s", c.packet, p, err, c.want)
		}
	}
	for _, good := range []string{"20 40", "20 00"} { // Down, AdminDown
		if _, err := bfd.Decode(unhex(t, good+"03 18 00000001 00000000 000493e0 000186a0 00000000")); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// An accepted packet is unchanged after it was encoded and decoded again.
func FuzzDecode(f *testing.F) {
	f.Add(unhex(f, wire))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := bfd.Decode(b)
		if err != nil {
			return
		}
		if again, err := bfd.Decode(p.Append(nil)); err != nil || again != p {
			t.Errorf("%x: %+v, then %+v (%v)", b, p, again, err)
		}
		if p.My == 0 || p.Multiplier == 0 {
			t.Errorf("%x: accepted %+v", b, p)
		}
	})
}
