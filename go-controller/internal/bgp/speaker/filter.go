// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Layout of a message (RFC 4271 section 4.1): 16 bytes of ones, the total length, the type.
const (
	markerLength = 16
	headerLength = packet.BGP_HEADER_LENGTH
	typeAt       = headerLength - 1
	maxMessage   = packet.BGP_MAX_MESSAGE_LENGTH
	// refreshLength is the length of a plain ROUTE-REFRESH (RFC 2918 section 3).
	refreshLength = headerLength + 4
	// finiteStateMachineSubcodes is the first of the subcodes of RFC 6608 section 3, which has one for each stage.
	finiteStateMachineSubcodes = 1
)

// stage determines what a router may send next.
type stage uint8

const (
	beginning stage = iota // an OPEN
	opened                 // a KEEPALIVE
	talking                // anything but an OPEN
	finished               // nothing
)

// filter checks that each message of a router is well formed and allowed in the state of the session. It reads no more
// of it than we need: of UPDATEs only that they are there, as they reset the hold timer (RFC 4271 section 4.4). It has
// no clock and does no I/O.
type filter struct {
	neighbor bgp.Neighbor
	stage    stage
	// The following fields are set by the OPEN: the router's AS number, the negotiated hold time, 0 for no limit, and
	// the families that both sides support.
	asn      uint32
	hold     time.Duration
	families Families
	// fourOctet means that the router has AS numbers of four octets (RFC 6793), extended that its OPEN has extended
	// optional parameters (RFC 9072), and extendedHop that it accepts next hops of IPv6 for IPv4 (RFC 8950).
	fourOctet, extended, extendedHop bool
}

// notificationError is an error of the router, and the NOTIFICATION that reports it (RFC 4271 section 6).
type notificationError struct {
	code, subcode uint8
	data          []byte
	text          string
	// asn is the AS number in an OPEN that is not acceptable because of it.
	asn uint32
	// suppressed suppresses the NOTIFICATION: a NOTIFICATION must not be answered with one (RFC 4271 section 6.4).
	suppressed bool
}

// bfdDown ends a session whose path failed (RFC 9384), even with graceful restart: the peer must not keep routes over a
// path that does not forward packets.
func bfdDown() *notificationError {
	return &notificationError{code: packet.BGP_ERROR_CEASE, subcode: bfdDownSubcode,
		text: "BFD is down: the path to the peer failed"}
}

func (e *notificationError) Error() string { return e.text }

// reason returns why the session ends. An OPEN that is not acceptable stays so until a configuration changes.
func (e *notificationError) reason() reason {
	why := reason{text: e.text, kind: detected}
	switch {
	case e.code == packet.BGP_ERROR_OPEN_MESSAGE_ERROR:
		why.kind, why.asn = standing, e.asn
		if e.subcode == packet.BGP_ERROR_SUB_BAD_PEER_AS {
			why.about = v1alpha1.BGPErrorWrongASN
		}
	case e.code == packet.BGP_ERROR_CEASE && e.subcode == bfdDownSubcode:
		why.about = v1alpha1.BGPErrorBFDDown
	}
	return why
}

// messageLength checks a header and returns the length of the message (RFC 4271 section 6.1).
func messageLength(header []byte) (int, *notificationError) {
	length, kind := int(binary.BigEndian.Uint16(header[markerLength:])), header[typeAt]
	wrong := func(subcode uint8, data []byte, format string, args ...any) (int, *notificationError) {
		return 0, &notificationError{code: packet.BGP_ERROR_MESSAGE_HEADER_ERROR, subcode: subcode, data: data,
			text: fmt.Sprintf(format, args...)}
	}
	for _, b := range header[:markerLength] {
		if b != 0xff {
			return wrong(packet.BGP_ERROR_SUB_CONNECTION_NOT_SYNCHRONIZED, nil, "the peer sent an invalid BGP marker")
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
		return wrong(packet.BGP_ERROR_SUB_BAD_MESSAGE_TYPE, []byte{kind},
			"the peer sent a message of unknown type %d", kind)
	}
	if length < least || length > most {
		_, r := wrong(packet.BGP_ERROR_SUB_BAD_MESSAGE_LENGTH, bytes.Clone(header[markerLength:typeAt]),
			"the peer sent a message of type %d with length %d", kind, length)
		r.suppressed = kind == packet.BGP_MSG_NOTIFICATION
		return 0, r
	}
	return length, nil
}

// process processes a complete message whose header was checked by messageLength. It returns the families of which the
// router requests all routes. An error is a *notificationError or a *receivedNotification and ends the session.
func (f *filter) process(m []byte) (again Families, err error) {
	kind := m[typeAt]
	switch {
	case kind == packet.BGP_MSG_NOTIFICATION && f.stage != finished:
		f.stage = finished
		return again, &receivedNotification{m[headerLength], m[headerLength+1], bytes.Clone(m[headerLength+2:]), f.extended}
	case f.stage == beginning && kind == packet.BGP_MSG_OPEN:
		if err := f.open(m); err != nil {
			f.stage = finished
			return again, err
		}
		f.stage = opened
		return again, nil
	case f.stage == opened && kind == packet.BGP_MSG_KEEPALIVE:
		f.stage = talking
		return again, nil
	case f.stage == talking && (kind == packet.BGP_MSG_KEEPALIVE || kind == packet.BGP_MSG_UPDATE):
		return again, nil
	case f.stage == talking && kind == packet.BGP_MSG_ROUTE_REFRESH:
		return f.refresh(m), nil
	}
	r := &notificationError{
		code: packet.BGP_ERROR_FSM_ERROR, subcode: finiteStateMachineSubcodes + uint8(f.stage),
		text: fmt.Sprintf("the peer sent an unexpected message of type %d", kind),
	}
	f.stage = finished
	return again, r
}

// refresh returns the family of a plain request, if it is one of the session. Other requests need capabilities that we
// did not advertise, and are ignored (RFC 2918 section 4, RFC 7313 section 4).
func (f *filter) refresh(m []byte) (again Families) {
	if len(m) != refreshLength || m[headerLength+2] != 0 {
		return again
	}
	family := packet.AfiSafiToRouteFamily(binary.BigEndian.Uint16(m[headerLength:]), m[headerLength+3])
	again.IPv4 = family == packet.RF_IPv4_UC && f.families.IPv4
	again.IPv6 = family == packet.RF_IPv6_UC && f.families.IPv6
	return again
}

// newMessage returns a message with a body.
func newMessage(kind byte, body ...byte) []byte {
	m := bytes.Repeat([]byte{0xff}, markerLength)
	m = binary.BigEndian.AppendUint16(m, uint16(headerLength+len(body)))
	return append(append(m, kind), body...)
}

func keepalive() []byte { return newMessage(packet.BGP_MSG_KEEPALIVE) }

// notification returns the NOTIFICATION to send to the router; nil for none.
func (e *notificationError) notification() []byte {
	if e.suppressed {
		return nil
	}
	return newMessage(packet.BGP_MSG_NOTIFICATION, append([]byte{e.code, e.subcode}, e.data...)...)
}
