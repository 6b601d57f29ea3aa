// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// parametersAt is the offset of the length of the optional parameters in an OPEN (RFC 4271 section 4.2).
	parametersAt = headerLength + 9
	// extendedAt is the offset of their extended length, if the octet before it has the value extended (RFC 9072 section
	// 2). Each parameter then has two octets of length.
	extendedAt = parametersAt + 2
	extended   = 255
	// standardMost is the most octets of optional parameters that are not extended.
	standardMost = extended - 1
	// version is that of BGP.
	version = 4
)

// hostname returns the name of the node, which routers show.
func hostname() string {
	name, _ := os.Hostname() // Without a name, the capability is empty.
	return name
}

// openMessage returns our OPEN.
func openMessage(n bgp.Neighbor, hostname string) []byte {
	capabilities := []packet.ParameterCapabilityInterface{packet.NewCapRouteRefresh(), packet.NewCapFQDN(hostname, "")}
	var restarts []*packet.CapGracefulRestartTuple
	for _, f := range families(n) {
		capabilities = append(capabilities, packet.NewCapMultiProtocol(f))
		restarts = append(restarts, packet.NewCapGracefulRestartTuple(f, true))
	}
	capabilities = append(capabilities, packet.NewCapFourOctetASNumber(asn(n)))
	if n.GracefulRestart {
		// Each session may be that of a process that restarted, and what the node forwards does not depend on it.
		capabilities = append(capabilities, packet.NewCapGracefulRestart(true, false,
			uint16(world.GracefulRestartTime/time.Second), restarts))
	}
	if n.IPv4 {
		capabilities = append(capabilities, packet.NewCapExtendedNexthop([]*packet.CapExtendedNexthopTuple{
			packet.NewCapExtendedNexthopTuple(packet.RF_IPv4_UC, packet.AFI_IP6)}))
	}
	body := []byte{version}
	body = binary.BigEndian.AppendUint16(body, twoOctets(asn(n)))
	body = binary.BigEndian.AppendUint16(body, uint16(n.Hold/time.Second))
	body = append(body, n.RouterID.AsSlice()...)
	parameter, err := packet.NewOptionParameterCapability(capabilities).Serialize()
	if err != nil || len(parameter) > standardMost {
		parameter = nil // Capabilities of a fixed length and a host name do not fail.
	}
	return newMessage(packet.BGP_MSG_OPEN, append(append(body, byte(len(parameter))), parameter...)...)
}

func families(n bgp.Neighbor) (all []packet.RouteFamily) {
	if n.IPv4 {
		all = append(all, packet.RF_IPv4_UC)
	}
	if n.IPv6 {
		all = append(all, packet.RF_IPv6_UC)
	}
	return all
}

// open validates the router's OPEN and stores its parameters.
func (f *filter) open(m []byte) error {
	n := f.neighbor
	f.extended = isExtended(m)
	body := &packet.BGPOpen{Version: m[headerLength], MyAS: binary.BigEndian.Uint16(m[headerLength+1:]),
		HoldTime: binary.BigEndian.Uint16(m[headerLength+3:]), ID: bytes.Clone(m[headerLength+5 : parametersAt])}
	capabilities, err := capabilitiesOf(m)
	if err != nil {
		return err
	}
	multiprotocol, sent := false, uint32(body.MyAS)
	for _, c := range capabilities {
		switch code, value := packet.BGPCapabilityCode(c[0]), c[2:]; {
		case code == packet.BGP_CAP_FOUR_OCTET_AS_NUMBER && len(value) == 4:
			sent, f.fourOctet = binary.BigEndian.Uint32(value), true
			body.OptParams = []packet.OptionParameterInterface{packet.NewOptionParameterCapability(
				[]packet.ParameterCapabilityInterface{packet.NewCapFourOctetASNumber(sent)})}
		case code == packet.BGP_CAP_FOUR_OCTET_AS_NUMBER:
			return openError(0, "the peer's OPEN message is malformed: its AS number has %d octets", len(value))
		case code == packet.BGP_CAP_MULTIPROTOCOL && len(value) == 4: // RFC 4760 section 8
			multiprotocol = true
			family := packet.AfiSafiToRouteFamily(binary.BigEndian.Uint16(value), value[3])
			f.families.IPv4 = f.families.IPv4 || family == packet.RF_IPv4_UC && n.IPv4
			f.families.IPv6 = f.families.IPv6 || family == packet.RF_IPv6_UC && n.IPv6
		case code == packet.BGP_CAP_EXTENDED_NEXTHOP:
			f.extendedHop = f.extendedHop || extendsIPv4(value)
		}
	}
	if !multiprotocol { // Such a router supports IPv4 (RFC 4760 section 1).
		f.families.IPv4 = n.IPv4
	}
	f.asn, err = packet.ValidateOpenMsg(body, peerASN(n), asn(n), n.RouterID.AsSlice())
	var known *packet.MessageError
	switch {
	case errors.As(err, &known):
		r := openError(known.SubTypeCode, "the peer's OPEN message: %s", known.Message)
		if known.SubTypeCode == packet.BGP_ERROR_SUB_UNSUPPORTED_VERSION_NUMBER {
			r.data = []byte{0, version} // The supported version (RFC 4271 section 6.2).
		}
		if known.SubTypeCode == packet.BGP_ERROR_SUB_BAD_PEER_AS {
			r.asn = sent
		}
		return r
	case f.asn == 0: // RFC 7607
		return openError(packet.BGP_ERROR_SUB_BAD_PEER_AS, "the peer's AS number is 0, which is reserved")
	case n.PeerASN == 0 && n.Dynamic == bgp.ExternalASN && f.asn == asn(n):
		r := openError(packet.BGP_ERROR_SUB_BAD_PEER_AS, "the peer's AS number is %d, as ours: want an external one", f.asn)
		r.asn = f.asn
		return r
	}
	f.hold = min(time.Duration(body.HoldTime)*time.Second, n.Hold) // If either side sends 0, there is no hold timer.
	return nil
}

// extendsIPv4 reports whether next hops of IPv6 are accepted for IPv4 unicast: one of the triples of AFI, SAFI and AFI
// of the next hop, of two octets each, says so (RFC 8950 section 4).
func extendsIPv4(triples []byte) bool {
	for triple := range slices.Chunk(triples, 6) {
		if bytes.Equal(triple, []byte{0, packet.AFI_IP, 0, packet.SAFI_UNICAST, 0, packet.AFI_IP6}) {
			return true
		}
	}
	return false
}

func openError(subcode uint8, format string, args ...any) *notificationError {
	return &notificationError{code: packet.BGP_ERROR_OPEN_MESSAGE_ERROR, subcode: subcode,
		text: fmt.Sprintf(format, args...)}
}

// isExtended reports whether an OPEN has extended optional parameters.
func isExtended(m []byte) bool {
	return len(m) >= extendedAt && m[parametersAt] != 0 && m[extendedAt-1] == extended
}

// capabilitiesOf returns the capabilities in an OPEN, each with its code and length. Those that we do not know are not
// read: names in them, for example, may be no UTF-8.
func capabilitiesOf(m []byte) ([][]byte, error) {
	at, width, of := parametersAt, 1, "optional parameters"
	if isExtended(m) {
		at, width, of = extendedAt, 2, "extended optional parameters (RFC 9072)"
	}
	capabilities, ok := capabilitiesIn(m[at:], width)
	if !ok {
		return nil, openError(0, "the peer's OPEN message is malformed: lengths in its %s are wrong", of)
	}
	return capabilities, nil
}

// capabilitiesIn returns the capabilities in optional parameters, each with its code and length (RFC 5492 section 4).
// Their lengths have width octets. It returns false if one is wrong.
func capabilitiesIn(b []byte, width int) (capabilities [][]byte, ok bool) {
	if len(b) < width || lengthIn(b[:width]) != len(b)-width {
		return nil, false
	}
	for b = b[width:]; len(b) > 0; {
		if len(b) < 1+width || len(b) < 1+width+lengthIn(b[1:1+width]) {
			return nil, false
		}
		kind, value := b[0], b[1+width:1+width+lengthIn(b[1:1+width])]
		b = b[1+width+len(value):]
		for kind == packet.BGP_OPT_CAPABILITY && len(value) > 0 {
			if len(value) < 2 || len(value) < 2+int(value[1]) {
				return nil, false
			}
			length := 2 + int(value[1])
			capabilities, value = append(capabilities, value[:length]), value[length:]
		}
	}
	return capabilities, true
}

// lengthIn returns the value of one or two octets.
func lengthIn(b []byte) (n int) {
	for _, octet := range b {
		n = n<<8 | int(octet)
	}
	return n
}
