// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

func victim() bgp.Neighbor {
	return bgp.Neighbor{MyASN: 64500, PeerASN: 64512, RouterID: netip.MustParseAddr("192.0.2.1"), Hold: 90 * time.Second,
		IPv4: true, IPv6: true}
}

// openOf returns the OPEN of a router.
func openOf(t testing.TB, asn, hold uint16, id string, capabilities ...packet.ParameterCapabilityInterface) []byte {
	t.Helper()
	raw, err := packet.NewBGPOpenMessage(asn, hold, id,
		[]packet.OptionParameterInterface{packet.NewOptionParameterCapability(capabilities)}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func both() []packet.ParameterCapabilityInterface {
	return []packet.ParameterCapabilityInterface{packet.NewCapMultiProtocol(packet.RF_IPv4_UC),
		packet.NewCapMultiProtocol(packet.RF_IPv6_UC)}
}

// through passes bytes through a filter, and returns the messages that have an effect, the filter and the error.
func through(n bgp.Neighbor, raw []byte) (out [][]byte, f filter, err error) {
	f.neighbor = n
	in, buf := bufio.NewReader(bytes.NewReader(raw)), make([]byte, maxMessage)
	for {
		m, err := next(in, buf)
		if err != nil {
			return out, f, err
		}
		again, err := f.process(m)
		if err != nil {
			return out, f, err
		}
		if m[typeAt] != packet.BGP_MSG_ROUTE_REFRESH || again != (Families{}) {
			out = append(out, bytes.Clone(m))
		}
	}
}

func kinds(messages [][]byte) string {
	names := map[byte]string{packet.BGP_MSG_OPEN: "open", packet.BGP_MSG_UPDATE: "update",
		packet.BGP_MSG_NOTIFICATION: "notification", packet.BGP_MSG_KEEPALIVE: "keepalive",
		packet.BGP_MSG_ROUTE_REFRESH: "refresh"}
	var words []string
	for _, m := range messages {
		words = append(words, names[m[typeAt]])
	}
	return strings.Join(words, " ")
}

func TestFilter(t *testing.T) {
	open := openOf(t, 64512, 90, "192.0.2.2", both()...)
	update := func(body ...byte) []byte { return newMessage(packet.BGP_MSG_UPDATE, body...) }
	refresh := func(body ...byte) []byte { return newMessage(packet.BGP_MSG_ROUTE_REFRESH, body...) }
	route := update(0, 0, 0, 20, 0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, 2, 0x90, 14, 0, 0, 24, 203, 0, 113)
	end4, end6 := update(0, 0, 0, 0), update(0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1)
	most := slices.Repeat([]packet.ParameterCapabilityInterface{packet.NewCapUnknown(200, make([]byte, 252))}, 15)
	unmarked := append([]byte{0xfe}, keepalive()[1:]...)
	for _, c := range []struct {
		name string
		n    func(*bgp.Neighbor)
		in   [][]byte
		// out contains the types of the messages that have an effect, sends the code and subcode of the NOTIFICATION to the
		// router, and says is a part of the error.
		out   string
		sends []byte
		says  string
		// asn is the AS number because of which the OPEN is refused.
		asn uint32
	}{
		{name: "a session, and the router closes", in: [][]byte{open, keepalive(), keepalive()},
			out: "open keepalive keepalive"},
		{name: "routes, whatever is in them", in: [][]byte{open, keepalive(), route, end4, end6, update(255, 255, 255, 255)},
			out: "open keepalive update update update update"},
		{name: "requests for routes", in: [][]byte{open, keepalive(), refresh(0, 1, 0, 1), refresh(0, 2, 0, 1)},
			out: "open keepalive refresh refresh"},
		{name: "requests for what there is not", in: [][]byte{open, keepalive(), refresh(0, 1, 1, 1), refresh(0, 1, 0, 128),
			refresh(0, 25, 0, 70), refresh(0, 1, 0, 1, 1, 64, 0, 0)}, out: "open keepalive"},
		{name: "a NOTIFICATION at the start", in: [][]byte{newMessage(packet.BGP_MSG_NOTIFICATION, 2, 2), open},
			says: "code 2(open) subcode 2(bad peer as): check the AS numbers on both sides"},
		{name: "a NOTIFICATION in a session", in: [][]byte{open, keepalive(),
			newMessage(packet.BGP_MSG_NOTIFICATION, 6, 2, 200, 1)}, out: "open keepalive",
			says: "received notification: code 6(cease) subcode 2(administrative shutdown)"},
		{name: "a NOTIFICATION that is none", in: [][]byte{open, newMessage(packet.BGP_MSG_NOTIFICATION, 6)}, out: "open",
			says: "type 3 with length 20"},
		{name: "no BGP", in: [][]byte{[]byte("HTTP/1.1 400 Bad Request\r\n\r\n")}, sends: []byte{1, 1},
			says: "invalid BGP marker"},
		{name: "a bit of the marker", in: [][]byte{open, unmarked}, out: "open", sends: []byte{1, 1},
			says: "invalid BGP marker"},
		{name: "a type that there is not", in: [][]byte{open, keepalive(), newMessage(6)}, out: "open keepalive",
			sends: []byte{1, 3, 6}, says: "type 6"},
		{name: "type 0", in: [][]byte{newMessage(0)}, sends: []byte{1, 3, 0}, says: "type 0"},
		{name: "a KEEPALIVE with a body", in: [][]byte{open, newMessage(packet.BGP_MSG_KEEPALIVE, 1)}, out: "open",
			sends: []byte{1, 2, 0, 20}, says: "type 4 with length 20"},
		{name: "an UPDATE that is too short", in: [][]byte{open, keepalive(), update(0, 0, 0)}, out: "open keepalive",
			sends: []byte{1, 2, 0, 22}, says: "type 2 with length 22"},
		{name: "an UPDATE that is too long", in: [][]byte{open, keepalive(), update(make([]byte, maxMessage)...)},
			out: "open keepalive", sends: []byte{1, 2, 0x10, 19}, says: "type 2 with length 4115"},
		{name: "a KEEPALIVE before the OPEN", in: [][]byte{keepalive()}, sends: []byte{5, 1},
			says: "unexpected message of type 4"},
		{name: "an UPDATE before the KEEPALIVE", in: [][]byte{open, end4}, out: "open", sends: []byte{5, 2},
			says: "unexpected message of type 2"},
		{name: "a second OPEN at once", in: [][]byte{open, open}, out: "open", sends: []byte{5, 2},
			says: "unexpected message of type 1"},
		{name: "a second OPEN", in: [][]byte{open, keepalive(), open}, out: "open keepalive", sends: []byte{5, 3},
			says: "unexpected message of type 1"},
		{name: "another AS number", in: [][]byte{openOf(t, 65000, 90, "192.0.2.2")}, sends: []byte{2, 2},
			says: "as number mismatch expected 64512, received 65000", asn: 65000},
		{name: "another AS number of four octets", in: [][]byte{openOf(t, 23456, 90, "192.0.2.2",
			packet.NewCapFourOctetASNumber(4200000000))}, sends: []byte{2, 2},
			says: "as number mismatch expected 64512, received 4200000000", asn: 4200000000},
		{name: "our AS number, and want an external one", n: func(n *bgp.Neighbor) {
			n.PeerASN, n.Dynamic = 0, bgp.ExternalASN
		}, in: [][]byte{openOf(t, 64500, 90, "192.0.2.2")}, sends: []byte{2, 2},
			says: "64500, as ours: want an external one", asn: 64500},
		{name: "no AS number, and want an external one", n: func(n *bgp.Neighbor) {
			n.PeerASN, n.Dynamic = 0, bgp.ExternalASN
		}, in: [][]byte{openOf(t, 0, 90, "192.0.2.2")}, sends: []byte{2, 2}, says: "the peer's AS number is 0"},
		{name: "no hold time", in: [][]byte{openOf(t, 64512, 0, "192.0.2.2")}, out: "open"},
		{name: "a hold time that is too short", in: [][]byte{openOf(t, 64512, 2, "192.0.2.2")}, sends: []byte{2, 6},
			says: "unacceptable hold time 2"},
		{name: "no router ID", in: [][]byte{openOf(t, 64512, 90, "0.0.0.0")}, sends: []byte{2, 3},
			says: "bad BGP identifier"},
		{name: "another version", in: [][]byte{newMessage(packet.BGP_MSG_OPEN, 3, 0xfc, 0, 0, 90, 192, 0, 2, 2, 0)},
			sends: []byte{2, 1, 0, 4}, says: "unsupported version 3"},
		{name: "parameters that end too soon", in: [][]byte{newMessage(packet.BGP_MSG_OPEN, 4, 0xfc, 0, 0, 90, 192, 0, 2, 2,
			200,
			2, 6, 1, 4, 0)}, sends: []byte{2, 0}, says: "malformed"},
		{name: "extended parameters", in: [][]byte{extendedOpen(t, both()...), keepalive()}, out: "open keepalive"},
		{name: "extended parameters are wanted", in: [][]byte{extendedOpen(t, both()...),
			newMessage(packet.BGP_MSG_NOTIFICATION, 2, 0)}, out: "open", says: "extended optional parameters (RFC 9072)"},
		{name: "extended parameters, none", in: [][]byte{extendedOpen(t)}, out: "open"},
		{name: "as many extended parameters as fit", in: [][]byte{extendedOpen(t, most...)}, out: "open"},
		{name: "an AS number of three octets", in: [][]byte{extendedOpen(t, packet.NewCapUnknown(
			packet.BGP_CAP_FOUR_OCTET_AS_NUMBER, []byte{1, 2, 3}))}, sends: []byte{2, 0}, says: "its AS number has 3 octets"},
		{name: "requests for a family that is not ours", n: func(n *bgp.Neighbor) {
			n.IPv6 = false
		}, in: [][]byte{open, keepalive(), refresh(0, 2, 0, 1)}, out: "open keepalive"},
		{name: "extended parameters that end too soon", in: [][]byte{newMessage(packet.BGP_MSG_OPEN, 4, 0xfc, 0, 0, 90, 192,
			0, 2, 2, 255, 255, 0, 9, 2, 0, 6, 1, 4, 0)}, sends: []byte{2, 0}, says: "malformed: lengths"},
		{name: "an extended parameter that ends too soon", in: [][]byte{newMessage(packet.BGP_MSG_OPEN, 4, 0xfc, 0, 0, 90,
			192, 0, 2, 2, 255, 255, 0, 4, 2, 0, 6, 1)}, sends: []byte{2, 0}, says: "malformed: lengths"},
		{name: "a capability that ends too soon", in: [][]byte{newMessage(packet.BGP_MSG_OPEN, 4, 0xfc, 0, 0, 90, 192, 0,
			2, 2, 255, 255, 0, 5, 2, 0, 2, 1, 4)}, sends: []byte{2, 0}, says: "malformed: lengths"},
	} {
		n := victim()
		if c.n != nil {
			c.n(&n)
		}
		out, _, err := through(n, bytes.Join(c.in, nil))
		if got := kinds(out); got != c.out {
			t.Errorf("%s: %q have an effect, want %q", c.name, got, c.out)
		}
		var sends []byte
		if r := (*notificationError)(nil); errors.As(err, &r) && r.notification() != nil {
			sends = r.notification()[headerLength:]
			if r.reason().asn != c.asn {
				t.Errorf("%s: the reason has AS number %d, want %d", c.name, r.reason().asn, c.asn)
			}
		}
		if !bytes.Equal(sends, c.sends) {
			t.Errorf("%s: the router receives %v, want %v", c.name, sends, c.sends)
		}
		if c.says != "" && !strings.Contains(fmt.Sprint(err), c.says) || c.says == "" && !errors.Is(err, io.EOF) {
			t.Errorf("%s: error %q, want %q in it", c.name, err, c.says)
		}
	}
}

// extendedOpen returns the OPEN of a router with extended optional parameters (RFC 9072): one for each capability.
func extendedOpen(t testing.TB, capabilities ...packet.ParameterCapabilityInterface) []byte {
	t.Helper()
	var parameters []byte
	for _, c := range capabilities {
		raw, err := c.Serialize()
		if err != nil {
			t.Fatal(err)
		}
		parameters = append(append(parameters, packet.BGP_OPT_CAPABILITY, byte(len(raw)>>8), byte(len(raw))), raw...)
	}
	body := append([]byte{4, 0xfc, 0, 0, 90, 192, 0, 2, 2, 255, 255}, byte(len(parameters)>>8), byte(len(parameters)))
	return newMessage(packet.BGP_MSG_OPEN, append(body, parameters...)...)
}

// A router that has other families only has none of ours.
func TestOtherFamiliesOnly(t *testing.T) {
	for what, open := range map[string][]byte{
		"standard OPEN": openOf(t, 64512, 90, "192.0.2.2", packet.NewCapMultiProtocol(packet.RF_EVPN)),
		"extended OPEN": extendedOpen(t, packet.NewCapMultiProtocol(packet.RF_EVPN), packet.NewCapFourOctetASNumber(64512)),
	} {
		if _, f, err := through(victim(), append(open, keepalive()...)); f.families != (Families{}) {
			t.Errorf("%s: negotiated %+v (%v)", what, f.families, err)
		}
	}
}

// Capabilities that we do not know are skipped, in both formats, also if they are longer than the standard one permits.
func TestExtendedOptionalParameters(t *testing.T) {
	all := []packet.ParameterCapabilityInterface{packet.NewCapMultiProtocol(packet.RF_EVPN)}
	for code := range packet.BGPCapabilityCode(50) {
		all = append(all, packet.NewCapUnknown(200+code, []byte("unknown")))
	}
	all = append(all, packet.NewCapFourOctetASNumber(64512), packet.NewCapUnknown(packet.BGP_CAP_FQDN, []byte{1, 0xfc, 0}))
	_, f, err := through(victim(), append(extendedOpen(t, append(all, both()...)...), keepalive()...))
	if !errors.Is(err, io.EOF) || f.families != (Families{true, true}) || f.asn != 64512 || f.hold != 90*time.Second ||
		!f.fourOctet || f.stage != talking {
		t.Errorf("the filter is %+v (%v)", f, err)
	}
}

// The parameters of the router's OPEN are stored. The smaller hold time is used.
func TestFilterStoresParameters(t *testing.T) {
	for offered, want := range map[uint16]time.Duration{30: 30 * time.Second, 180: 90 * time.Second} {
		// The error is io.EOF.
		_, f, _ := through(victim(), openOf(t, 23456, offered, "192.0.2.2", packet.NewCapFourOctetASNumber(64512)))
		if f.hold != want || f.asn != 64512 {
			t.Errorf("a hold time of %d s: %s and AS %d, want %s and AS 64512", offered, f.hold, f.asn, want)
		}
	}
}

// For all input, messages have an effect only in a permitted order, and what is sent to the router is well formed.
func FuzzFilter(f *testing.F) {
	open := openOf(f, 64512, 90, "192.0.2.2", append(both(), packet.NewCapGracefulRestart(true, false, 120, nil),
		packet.NewCapFourOctetASNumber(64512), packet.NewCapAddPath(nil))...)
	session := append(bytes.Clone(open), keepalive()...)
	f.Add(open)
	f.Add(session)
	f.Add(append(extendedOpen(f, both()...), keepalive()...))
	f.Add(append(bytes.Clone(session), newMessage(packet.BGP_MSG_UPDATE, 0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1)...))
	f.Add(append(bytes.Clone(session), newMessage(packet.BGP_MSG_ROUTE_REFRESH, 0, 1, 0, 1)...))
	f.Add(append(bytes.Clone(session), newMessage(packet.BGP_MSG_NOTIFICATION, 6, 2, 3)...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, filter, err := through(victim(), raw)
		if err == nil {
			t.Fatal("the filter ends without a reason")
		}
		for i, m := range out {
			switch kind := m[typeAt]; {
			case (kind == packet.BGP_MSG_OPEN) != (i == 0), i == 1 && kind != packet.BGP_MSG_KEEPALIVE,
				kind == packet.BGP_MSG_NOTIFICATION:
				t.Fatalf("message %d is of type %d", i, kind)
			}
		}
		if len(out) > 0 && (filter.asn != 64512 || filter.hold != 0 && filter.hold < 3*time.Second) {
			t.Fatalf("an OPEN with these parameters was accepted: %+v", filter)
		}
		if r := (*notificationError)(nil); errors.As(err, &r) && !r.suppressed {
			if _, err := packet.ParseBGPMessage(r.notification()); err != nil {
				t.Fatalf("the NOTIFICATION is malformed: %v", err)
			}
		}
	})
}
