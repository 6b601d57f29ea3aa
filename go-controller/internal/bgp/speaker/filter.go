// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// Of a message (RFC 4271 section 4.1): 16 bytes of ones, the length of all of it, the type.
const (
	markerLength = 16
	headerLength = packet.BGP_HEADER_LENGTH
	typeAt       = headerLength - 1
	maxMessage   = packet.BGP_MAX_MESSAGE_LENGTH
	// refreshLength is that of a plain ROUTE-REFRESH (RFC 2918 section 3).
	refreshLength = headerLength + 4
	// bfdDownSubcode is that of a Cease when BFD is down (RFC 9384).
	bfdDownSubcode = 10
	// finiteStateMachineSubcodes are those of RFC 6608 section 3, one for each stage.
	finiteStateMachineSubcodes = 1
)

// stage is what a router may send next.
type stage uint8

const (
	beginning stage = iota // an OPEN
	opened                 // a KEEPALIVE
	talking                // anything but an OPEN
	finished               // nothing
)

// filter lets pass of a router's messages what gobgp may see: each is well formed and fits the
// state of the session. It passes on
//   - the OPEN, once and first, if it is one that we agree to;
//   - KEEPALIVEs, and one in place of each UPDATE: both are signs of life (RFC 4271 section 4.4);
//   - the first End-of-RIB of each family of the session: routes are not read at all;
//   - requests for our routes of a family of the session (RFC 2918).
//
// It has no clock and does no I/O.
type filter struct {
	neighbor bgp.Neighbor
	stage    stage
	// asn and hold are the router's AS number and the hold time of both, 0 for never, after the OPEN.
	asn  uint32
	hold time.Duration
	// families of the session that both sides have; true for those whose End-of-RIB was passed on.
	families map[packet.RouteFamily]bool
}

// refusal is an error of the router, and the NOTIFICATION that says so (RFC 4271 section 6).
type refusal struct {
	code, subcode uint8
	data          []byte
	text          string
	// mute: a NOTIFICATION must not be answered with one (RFC 4271 section 6.4).
	mute bool
}

// bfdDown ends a session whose path failed (RFC 9384), also with graceful restart: the peer must not keep routes
// over a path that carries nothing.
func bfdDown() *refusal {
	return &refusal{code: packet.BGP_ERROR_CEASE, subcode: bfdDownSubcode, text: "BFD is down: the path to the peer failed"}
}

func (r *refusal) Error() string { return r.text }

// farewell is a NOTIFICATION of the router.
type farewell struct{ code packet.NotificationErrorCode }

func (f *farewell) Error() string {
	text := "received notification: " + f.code.String()
	if f.code == packet.NewNotificationErrorCode(packet.BGP_ERROR_CEASE, bfdDownSubcode) { // Newer than gobgp's names.
		text = "received notification: code 6(cease) subcode 10(bfd down)"
	}
	if f.code == packet.NewNotificationErrorCode(packet.BGP_ERROR_OPEN_MESSAGE_ERROR, packet.BGP_ERROR_SUB_BAD_PEER_AS) {
		text += ": do both sides agree on the AS numbers?"
	}
	return text
}

// measure checks a header and returns the length of the message (RFC 4271 section 6.1).
func measure(header []byte) (int, *refusal) {
	length, kind := int(binary.BigEndian.Uint16(header[markerLength:])), header[typeAt]
	wrong := func(subcode uint8, data []byte, format string, args ...any) (int, *refusal) {
		return 0, &refusal{code: packet.BGP_ERROR_MESSAGE_HEADER_ERROR, subcode: subcode, data: data, text: fmt.Sprintf(format, args...)}
	}
	for _, b := range header[:markerLength] {
		if b != 0xff {
			return wrong(packet.BGP_ERROR_SUB_CONNECTION_NOT_SYNCHRONIZED, nil, "the peer sent something that is no BGP message")
		}
	}
	least, most := headerLength, maxMessage
	switch kind {
	case packet.BGP_MSG_OPEN:
		least += 10
	case packet.BGP_MSG_UPDATE:
		least += 4
	case packet.BGP_MSG_NOTIFICATION:
		least += 2
	case packet.BGP_MSG_KEEPALIVE:
		most = least
	case packet.BGP_MSG_ROUTE_REFRESH:
		least = refreshLength
	default:
		return wrong(packet.BGP_ERROR_SUB_BAD_MESSAGE_TYPE, []byte{kind}, "the peer sent a message of type %d, which there is not", kind)
	}
	if length < least || length > most {
		_, r := wrong(packet.BGP_ERROR_SUB_BAD_MESSAGE_LENGTH, bytes.Clone(header[markerLength:typeAt]), "the peer sent a message of type %d with length %d", kind, length)
		r.mute = kind == packet.BGP_MSG_NOTIFICATION
		return 0, r
	}
	return length, nil
}

// take takes a whole message whose header measure found right, and returns what gobgp is to see in
// its place: nil for nothing. The error is a *refusal or a *farewell and ends the session.
func (f *filter) take(m []byte) ([]byte, error) {
	kind := m[typeAt]
	switch {
	case kind == packet.BGP_MSG_NOTIFICATION && f.stage != finished:
		f.stage = finished
		return nil, &farewell{packet.NewNotificationErrorCode(m[headerLength], m[headerLength+1])}
	case f.stage == beginning && kind == packet.BGP_MSG_OPEN:
		if err := f.open(m); err != nil {
			f.stage = finished
			return nil, err
		}
		f.stage = opened
		return m, nil
	case f.stage == opened && kind == packet.BGP_MSG_KEEPALIVE:
		f.stage = talking
		return m, nil
	case f.stage == talking && kind == packet.BGP_MSG_KEEPALIVE:
		return m, nil
	case f.stage == talking && kind == packet.BGP_MSG_UPDATE:
		if family, ends := endOfRIB(m); ends {
			if passed, ours := f.families[family]; ours && !passed {
				f.families[family] = true
				return m, nil
			}
		}
		return keepalive(), nil
	case f.stage == talking && kind == packet.BGP_MSG_ROUTE_REFRESH:
		return f.refresh(m), nil
	}
	r := &refusal{
		code: packet.BGP_ERROR_FSM_ERROR, subcode: finiteStateMachineSubcodes + uint8(f.stage),
		text: fmt.Sprintf("the peer sent a message of type %d when it should not", kind),
	}
	f.stage = finished
	return nil, r
}

// open takes over what the router's OPEN says, if it is one that we agree to.
func (f *filter) open(m []byte) *refusal {
	fault := func(subcode uint8, format string, args ...any) *refusal {
		return &refusal{code: packet.BGP_ERROR_OPEN_MESSAGE_ERROR, subcode: subcode, text: fmt.Sprintf(format, args...)}
	}
	n := f.neighbor
	body, err := parse(m)
	if err == nil {
		f.asn, err = packet.ValidateOpenMsg(body, peerASN(n), asn(n), n.RouterID.AsSlice())
	}
	var known *packet.MessageError
	switch {
	case errors.As(err, &known) && known.TypeCode == packet.BGP_ERROR_OPEN_MESSAGE_ERROR:
		r := fault(known.SubTypeCode, "the peer's OPEN message: %s", known.Message)
		if known.SubTypeCode == packet.BGP_ERROR_SUB_UNSUPPORTED_VERSION_NUMBER {
			r.data = []byte{0, 4} // The version that we have (RFC 4271 section 6.2).
		}
		return r
	case err != nil:
		return fault(0, "the peer's OPEN message is malformed: %v", err)
	case n.PeerASN == 0 && n.Dynamic == bgp.ExternalASN && f.asn == asn(n):
		return fault(packet.BGP_ERROR_SUB_BAD_PEER_AS, "the peer's AS number is %d, as ours: want an external one", f.asn)
	}
	f.hold = min(time.Duration(body.HoldTime)*time.Second, n.Hold) // 0 of either side is that of both: never.
	f.families = shared(n, body)
	return nil
}

// parse reads an OPEN as gobgp does: what it can't read, and what makes it panic, is an error.
func parse(m []byte) (open *packet.BGPOpen, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be read: %v", r)
		}
	}()
	message, err := packet.ParseBGPMessage(m)
	if err != nil {
		return nil, err
	}
	return message.Body.(*packet.BGPOpen), nil
}

// shared are the families that both sides have. A router that tells of none has IPv4 (RFC 4760 section 1).
func shared(n bgp.Neighbor, open *packet.BGPOpen) map[packet.RouteFamily]bool {
	ours := map[packet.RouteFamily]bool{packet.RF_IPv4_UC: n.IPv4, packet.RF_IPv6_UC: n.IPv6}
	told, both := false, map[packet.RouteFamily]bool{}
	for _, p := range open.OptParams {
		capabilities, ok := p.(*packet.OptionParameterCapability)
		if !ok {
			continue
		}
		for _, c := range capabilities.Capability {
			if family, ok := c.(*packet.CapMultiProtocol); ok {
				told = true
				if ours[family.CapValue] {
					both[family.CapValue] = false
				}
			}
		}
	}
	if !told && n.IPv4 {
		both[packet.RF_IPv4_UC] = false
	}
	return both
}

// refresh passes a plain request for a family of the session. Others ask for what we did not say that
// we have, and are ignored (RFC 2918 section 4, RFC 7313 section 4).
func (f *filter) refresh(m []byte) []byte {
	family := packet.AfiSafiToRouteFamily(binary.BigEndian.Uint16(m[headerLength:]), m[headerLength+3])
	if _, ours := f.families[family]; !ours || len(m) != refreshLength || m[headerLength+2] != 0 {
		return nil
	}
	return m
}

// endOfRIB tells whether an UPDATE is the End-of-RIB marker of a family (RFC 4724 section 2): one
// without anything, or with an MP_UNREACH_NLRI attribute (RFC 4760 section 4) that has no routes.
func endOfRIB(m []byte) (packet.RouteFamily, bool) {
	body := m[headerLength:]
	switch {
	case bytes.Equal(body, []byte{0, 0, 0, 0}):
		return packet.RF_IPv4_UC, true
	case len(body) == 10 && bytes.Equal(body[:7], []byte{0, 0, 0, 6, byte(packet.BGP_ATTR_FLAG_OPTIONAL), byte(packet.BGP_ATTR_TYPE_MP_UNREACH_NLRI), 3}):
		return packet.AfiSafiToRouteFamily(binary.BigEndian.Uint16(body[7:]), body[9]), true
	case len(body) == 11 && bytes.Equal(body[:8], []byte{0, 0, 0, 7, byte(packet.BGP_ATTR_FLAG_OPTIONAL | packet.BGP_ATTR_FLAG_EXTENDED_LENGTH), byte(packet.BGP_ATTR_TYPE_MP_UNREACH_NLRI), 0, 3}):
		return packet.AfiSafiToRouteFamily(binary.BigEndian.Uint16(body[8:]), body[10]), true
	}
	return 0, false
}

// compose is a message with a body.
func compose(kind byte, body ...byte) []byte {
	m := bytes.Repeat([]byte{0xff}, markerLength)
	m = binary.BigEndian.AppendUint16(m, uint16(headerLength+len(body)))
	return append(append(m, kind), body...)
}

func keepalive() []byte { return compose(packet.BGP_MSG_KEEPALIVE) }

// notification is the message that says so to the router; nil for none.
func (r *refusal) notification() []byte {
	if r.mute {
		return nil
	}
	return compose(packet.BGP_MSG_NOTIFICATION, append([]byte{r.code, r.subcode}, r.data...)...)
}
