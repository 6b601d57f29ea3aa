// SPDX-License-Identifier: Apache-2.0

package unnumbered

import "net/netip"

const (
	solicitation, advertisement = 133, 134
	// hops is the hop limit of Neighbor Discovery. A packet from beyond the link can't have it (RFC 4861 section 6.1).
	hops = 255
	// Lengths without options (RFC 4861 sections 4.1 and 4.2).
	solicitationLen, advertisementLen = 8, 16
	sourceAddress                     = 1 // option of section 4.6.1
)

// advertise returns a Router Advertisement that only announces our presence. The kernel fills in the checksum (RFC 3542
// section 3.1).
func advertise(mac []byte) []byte { return message(advertisement, advertisementLen, mac) }

// solicit returns a Router Solicitation.
func solicit(mac []byte) []byte { return message(solicitation, solicitationLen, mac) }

func message(kind byte, length int, mac []byte) []byte {
	m := make([]byte, length)
	m[0] = kind
	if len(mac) == 6 {
		m = append(m, sourceAddress, 1)
		m = append(m, mac...)
	}
	return m
}

// valid reports whether a message passes the validation for its type (RFC 4861 sections 6.1.1 and 6.1.2).
func valid(m []byte, hopLimit int, from netip.Addr) bool {
	if len(m) < solicitationLen || hopLimit != hops || m[1] != 0 {
		return false
	}
	options := m[solicitationLen:]
	switch m[0] {
	case solicitation:
	case advertisement:
		if len(m) < advertisementLen || !from.Is6() || !from.IsLinkLocalUnicast() {
			return false
		}
		options = m[advertisementLen:]
	default:
		return false
	}
	for len(options) > 0 {
		if len(options) < 2 || options[1] == 0 || len(options) < 8*int(options[1]) {
			return false
		}
		options = options[8*int(options[1]):]
	}
	return true
}
