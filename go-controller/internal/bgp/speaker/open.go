// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// parametersAt is the offset of the length of the optional parameters in an OPEN (RFC 4271 section 4.2).
	parametersAt = headerLength + 9
	// extendedAt is the offset of their extended length, if the octet before it has the value extended (RFC 9072 section
	// 2). Each parameter then has two octets of length.
	extendedAt = parametersAt + 2
	extended   = 255
)

// open validates the router's OPEN and stores its parameters. It returns the OPEN that gobgp receives.
func (f *filter) open(m []byte) ([]byte, error) {
	n := f.neighbor
	f.extended = isExtended(m)
	m, err := standardOpen(m)
	if err != nil {
		return nil, err
	}
	body, err := parse(m)
	if err == nil {
		f.asn, err = packet.ValidateOpenMsg(body, peerASN(n), asn(n), n.RouterID.AsSlice())
	}
	var known *packet.MessageError
	switch {
	case errors.As(err, &known) && known.TypeCode == packet.BGP_ERROR_OPEN_MESSAGE_ERROR:
		r := openError(known.SubTypeCode, "the peer's OPEN message: %s", known.Message)
		if known.SubTypeCode == packet.BGP_ERROR_SUB_UNSUPPORTED_VERSION_NUMBER {
			r.data = []byte{0, 4} // The supported version (RFC 4271 section 6.2).
		}
		if known.SubTypeCode == packet.BGP_ERROR_SUB_BAD_PEER_AS {
			r.asn = sentASN(body)
		}
		return nil, r
	case err != nil:
		return nil, openError(0, "the peer's OPEN message is malformed: %v", err)
	case n.PeerASN == 0 && n.Dynamic == bgp.ExternalASN && f.asn == asn(n):
		r := openError(packet.BGP_ERROR_SUB_BAD_PEER_AS, "the peer's AS number is %d, as ours: want an external one", f.asn)
		r.asn = f.asn
		return nil, r
	}
	f.hold = min(time.Duration(body.HoldTime)*time.Second, n.Hold) // If either side sends 0, there is no hold timer.
	f.families = commonFamilies(n, body)
	return m, nil
}

// sentASN returns the AS number in an OPEN (RFC 6793 section 4.1).
func sentASN(open *packet.BGPOpen) uint32 {
	sent := uint32(open.MyAS)
	for _, o := range open.OptParams {
		capabilities, ok := o.(*packet.OptionParameterCapability)
		if !ok {
			continue
		}
		for _, c := range capabilities.Capability {
			if four, ok := c.(*packet.CapFourOctetASNumber); ok {
				sent = four.CapValue
			}
		}
	}
	return sent
}

func openError(subcode uint8, format string, args ...any) *notificationError {
	return &notificationError{code: packet.BGP_ERROR_OPEN_MESSAGE_ERROR, subcode: subcode,
		text: fmt.Sprintf(format, args...)}
}

// isExtended reports whether an OPEN has extended optional parameters.
func isExtended(m []byte) bool {
	return len(m) >= extendedAt && m[parametersAt] != 0 && m[extendedAt-1] == extended
}

// standardOpen returns an OPEN with the capabilities that gobgp needs, in the format of RFC 4271. gobgp knows no
// extended optional parameters (RFC 9072), and its API panics on names in other capabilities that are no UTF-8.
func standardOpen(m []byte) ([]byte, error) {
	if len(m) <= parametersAt {
		return m, nil // gobgp's parser says what is wrong.
	}
	at, width, of := parametersAt, 1, "optional parameters"
	if isExtended(m) {
		at, width, of = extendedAt, 2, "extended optional parameters (RFC 9072)"
	}
	capabilities, ok := capabilitiesIn(m[at:], width)
	if !ok {
		return nil, openError(0, "the peer's OPEN message is malformed: lengths in its %s are wrong", of)
	}
	var parameters []byte
	foreign := false
	for _, c := range capabilities {
		// One other family is enough to show that the peer does not have ours (see commonFamilies).
		if needed(c) || isMultiprotocol(c) && !foreign {
			foreign = foreign || !needed(c)
			parameters = append(append(parameters, packet.BGP_OPT_CAPABILITY, byte(len(c))), c...)
		}
	}
	if len(parameters) >= extended {
		return nil, openError(packet.BGP_ERROR_SUB_UNSUPPORTED_OPTIONAL_PARAMETER, "the peer's OPEN message has %d octets "+
			"of %s, of which at most %d are supported", len(parameters), of, extended-1)
	}
	body := append(bytes.Clone(m[headerLength:parametersAt]), byte(len(parameters)))
	return newMessage(packet.BGP_MSG_OPEN, append(body, parameters...)...), nil
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

// needed reports whether a capability affects a session with our families.
func needed(capability []byte) bool {
	code := packet.BGPCapabilityCode(capability[0])
	if isMultiprotocol(capability) {
		return bytes.Equal(capability[1:], []byte{4, 0, 1, 0, 1}) || bytes.Equal(capability[1:], []byte{4, 0, 2, 0, 1})
	}
	return code == packet.BGP_CAP_ROUTE_REFRESH || code == packet.BGP_CAP_EXTENDED_NEXTHOP ||
		code == packet.BGP_CAP_GRACEFUL_RESTART || code == packet.BGP_CAP_FOUR_OCTET_AS_NUMBER
}

// isMultiprotocol reports whether a capability is a multiprotocol one (RFC 4760 section 8) of the right length.
func isMultiprotocol(capability []byte) bool {
	return packet.BGPCapabilityCode(capability[0]) == packet.BGP_CAP_MULTIPROTOCOL && capability[1] == 4
}

// parse reads an OPEN with gobgp's parser. It returns an error if that fails or panics.
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

// commonFamilies returns the families that both sides support. A router without a multiprotocol capability supports
// IPv4 (RFC 4760 section 1).
func commonFamilies(n bgp.Neighbor, open *packet.BGPOpen) map[packet.RouteFamily]bool {
	ours := map[packet.RouteFamily]bool{packet.RF_IPv4_UC: n.IPv4, packet.RF_IPv6_UC: n.IPv6}
	announced, both := false, map[packet.RouteFamily]bool{}
	for _, p := range open.OptParams {
		capabilities, ok := p.(*packet.OptionParameterCapability)
		if !ok {
			continue
		}
		for _, c := range capabilities.Capability {
			if family, ok := c.(*packet.CapMultiProtocol); ok {
				announced = true
				if ours[family.CapValue] {
					both[family.CapValue] = false
				}
			}
		}
	}
	if !announced && n.IPv4 {
		both[packet.RF_IPv4_UC] = false
	}
	return both
}
