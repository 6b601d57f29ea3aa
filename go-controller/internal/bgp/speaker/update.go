// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// maxSegment is the number of AS numbers that a segment of an AS path can have (RFC 4271 section 4.3).
	maxSegment = 255
	// defaultLocalPref is sent to internal peers unless a route has another one; they require the attribute (RFC 4271
	// section 5.1.5).
	defaultLocalPref = 100
	// longestPrefix is the length of an encoded prefix of IPv6.
	longestPrefix = 1 + 16
	// multiprotocolHeader is the length of MP_REACH_NLRI with a next hop of IPv6 but without prefixes: flags, type,
	// length, AFI, SAFI, length of the next hop, next hop, reserved (RFC 4760 section 3).
	multiprotocolHeader = 4 + 2 + 1 + 1 + 16 + 1
	// updateHeader is the length of an UPDATE without withdrawals, attributes and prefixes.
	updateHeader = headerLength + 2 + 2
)

// encode returns the path attributes of a route, without MP_REACH_NLRI. The error says why it can't be sent.
func (o *adjOut) encode(r route) ([]byte, error) {
	hop := o.nextHop(r)
	switch {
	case !r.prefix.IsValid() || r.prefix != r.prefix.Masked():
		return nil, fmt.Errorf("prefix %s: want one without host bits", r.prefix)
	case !hop.IsValid() || hop.IsUnspecified():
		return nil, fmt.Errorf("route to %s: no next hop", r.prefix)
	case r.prefix.Addr().Is6() && hop.Is4():
		return nil, fmt.Errorf("route to %s: next hop %s: want one of IPv6", r.prefix, hop)
	}
	var out []byte
	for _, a := range attributes(o.neighbor, o.fourOctet, hop, r.Attributes) {
		raw, err := a.Serialize()
		if err != nil {
			return nil, fmt.Errorf("route to %s: %w", r.prefix, err)
		}
		out = append(out, raw...)
	}
	if most := maxMessage - updateHeader - multiprotocolHeader - longestPrefix; len(out) > most {
		return nil, fmt.Errorf("route to %s: its attributes have %d octets, of which %d fit into a message", r.prefix,
			len(out), most)
	}
	return out, nil
}

// nextHop returns the next hop of a route.
func (o *adjOut) nextHop(r route) netip.Addr {
	if !r.NextHop.IsValid() {
		return o.local.WithZone("")
	}
	return r.NextHop.WithZone("")
}

// attributes returns the path attributes in the order of their types, without MP_REACH_NLRI.
func attributes(n bgp.Neighbor, fourOctet bool, hop netip.Addr, a bgp.Attributes) []packet.PathAttributeInterface {
	path, path4 := asPath(n, fourOctet, a.Prepend)
	all := []packet.PathAttributeInterface{packet.NewPathAttributeOrigin(packet.BGP_ORIGIN_ATTR_TYPE_IGP), path}
	if hop.Is4() {
		all = append(all, packet.NewPathAttributeNextHop(hop.String()))
	}
	if a.MED != nil {
		all = append(all, packet.NewPathAttributeMultiExitDisc(*a.MED))
	}
	if internal(n) {
		preference := uint32(defaultLocalPref)
		if a.LocalPref != nil {
			preference = *a.LocalPref
		}
		all = append(all, packet.NewPathAttributeLocalPref(preference))
	}
	if len(a.Communities) > 0 {
		all = append(all, packet.NewPathAttributeCommunities(a.Communities))
	}
	if path4 != nil {
		all = append(all, path4)
	}
	if len(a.LargeCommunities) > 0 {
		var large []*packet.LargeCommunity
		for _, c := range a.LargeCommunities {
			large = append(large, packet.NewLargeCommunity(c.Global, c.Local1, c.Local2))
		}
		all = append(all, packet.NewPathAttributeLargeCommunities(large))
	}
	return all
}

// asPath returns the AS_PATH, which is empty for an internal peer: it would take its own number for a loop. For a
// router without AS numbers of four octets, it also returns an AS4_PATH if that has more to say (RFC 6793 section
// 4.2.2).
func asPath(n bgp.Neighbor, fourOctet bool, prepend uint8) (path, path4 packet.PathAttributeInterface) {
	if internal(n) {
		return packet.NewPathAttributeAsPath(nil), nil
	}
	numbers := slices.Repeat([]uint32{asn(n)}, 1+int(prepend))
	var segments []packet.AsPathParamInterface
	var segments4 []*packet.As4PathParam
	for part := range slices.Chunk(numbers, maxSegment) {
		four := packet.NewAs4PathParam(packet.BGP_ASPATH_ATTR_TYPE_SEQ, part)
		if fourOctet {
			segments = append(segments, four)
			continue
		}
		two := slices.Repeat([]uint16{twoOctets(asn(n))}, len(part))
		segments = append(segments, packet.NewAsPathParam(packet.BGP_ASPATH_ATTR_TYPE_SEQ, two))
		segments4 = append(segments4, four)
	}
	path = packet.NewPathAttributeAsPath(segments)
	if !fourOctet && twoOctets(asn(n)) == packet.AS_TRANS {
		path4 = packet.NewPathAttributeAs4Path(segments4)
	}
	return path, path4
}

// twoOctets returns an AS number as it is sent where it has two octets.
func twoOctets(asn uint32) uint16 {
	if asn > 1<<16-1 {
		return packet.AS_TRANS
	}
	return uint16(asn)
}

// update returns an UPDATE for the first of several sorted routes, and as many more with the same attributes as fit,
// and their number.
func (o *adjOut) update(routes []route) (message []byte, n int) {
	first := routes[0]
	attributes, _ := o.encode(first) // plan has done so before.
	hop := o.nextHop(first)
	var prefixes []byte
	for _, r := range routes {
		room := maxMessage - updateHeader - multiprotocolHeader - longestPrefix - len(attributes)
		if r.prefix.Addr().Is4() != first.prefix.Addr().Is4() || !r.Equal(first.Attributes) || len(prefixes) > room {
			break
		}
		prefixes, n = appendPrefix(prefixes, r.prefix), n+1
	}
	body := []byte{0, 0} // no withdrawals
	if first.prefix.Addr().Is4() && hop.Is4() {
		body = append(binary.BigEndian.AppendUint16(body, uint16(len(attributes))), attributes...)
		return newMessage(packet.BGP_MSG_UPDATE, append(body, prefixes...)...), n
	}
	// RFC 4760, and RFC 8950 for a prefix of IPv4 with a next hop of IPv6. It comes first (RFC 7606 section 5.1).
	reach := append(family(first.prefix.Addr()), 16)
	reach = append(append(append(reach, hop.AsSlice()...), 0), prefixes...)
	all := append(multiprotocol(packet.BGP_ATTR_TYPE_MP_REACH_NLRI, reach), attributes...)
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(all))), all...)
	return newMessage(packet.BGP_MSG_UPDATE, body...), n
}

// withdrawal returns an UPDATE that withdraws the first of several sorted prefixes, and as many more as fit, and their
// number.
func withdrawal(all []netip.Prefix) (message []byte, n int) {
	v4 := all[0].Addr().Is4()
	var prefixes []byte
	for _, prefix := range all {
		if prefix.Addr().Is4() != v4 || len(prefixes) > maxMessage-updateHeader-multiprotocolHeader-longestPrefix {
			break
		}
		prefixes, n = appendPrefix(prefixes, prefix), n+1
	}
	if v4 {
		body := append(binary.BigEndian.AppendUint16(nil, uint16(len(prefixes))), prefixes...)
		return newMessage(packet.BGP_MSG_UPDATE, append(body, 0, 0)...), n
	}
	unreach := multiprotocol(packet.BGP_ATTR_TYPE_MP_UNREACH_NLRI, append(family(all[0].Addr()), prefixes...))
	body := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(unreach)))
	return newMessage(packet.BGP_MSG_UPDATE, append(body, unreach...)...), n
}

// endOfRIB returns the End-of-RIB markers of families (RFC 4724 section 2): UPDATEs without routes.
func endOfRIB(f Families) (messages []byte) {
	if f.IPv4 {
		messages = newMessage(packet.BGP_MSG_UPDATE, 0, 0, 0, 0)
	}
	if f.IPv6 {
		messages = append(messages, newMessage(packet.BGP_MSG_UPDATE, 0, 0, 0, 6,
			byte(packet.BGP_ATTR_FLAG_OPTIONAL), byte(packet.BGP_ATTR_TYPE_MP_UNREACH_NLRI), 3, 0, 2, 1)...)
	}
	return messages
}

// multiprotocol returns an attribute of RFC 4760. Its length has two octets if necessary.
func multiprotocol(kind packet.BGPAttrType, value []byte) []byte {
	flags := byte(packet.BGP_ATTR_FLAG_OPTIONAL)
	if len(value) < 1<<8 {
		return append([]byte{flags, byte(kind), byte(len(value))}, value...)
	}
	flags |= byte(packet.BGP_ATTR_FLAG_EXTENDED_LENGTH)
	return append(binary.BigEndian.AppendUint16([]byte{flags, byte(kind)}, uint16(len(value))), value...)
}

// family returns the AFI and SAFI of unicast routes to addresses of the family of a (RFC 4760 section 3).
func family(a netip.Addr) []byte {
	if a.Is4() {
		return []byte{0, packet.AFI_IP, packet.SAFI_UNICAST}
	}
	return []byte{0, packet.AFI_IP6, packet.SAFI_UNICAST}
}

// appendPrefix appends a prefix: its length in bits, and as many octets as these need (RFC 4271 section 4.3).
func appendPrefix(b []byte, prefix netip.Prefix) []byte {
	return append(append(b, byte(prefix.Bits())), prefix.Addr().AsSlice()[:(prefix.Bits()+7)/8]...)
}
