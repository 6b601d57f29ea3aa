// SPDX-License-Identifier: Apache-2.0

package neighbour

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// Answer is a neighbour's claim that it has an address.
type Answer struct {
	Addr netip.Addr
	// MAC is the address that hosts send to from then on, in the form 02:00:00:00:00:01: the one that the answer claims,
	// or else that of its sender. A host can send from the address of another one, such as our own router.
	MAC string
	// VLAN is the tag of the frame, 0 for none.
	VLAN int
}

const (
	typeARP, typeIPv6, typeVLAN = 0x0806, 0x86dd, 0x8100

	icmpv6 = 58
	// Extension headers that hosts skip before ICMPv6 (RFC 8200 section 4.1). A fragment is none (RFC 6980).
	hopByHop, routing, destinationOptions = 0, 43, 60
	solicitation, advertisement           = 135, 136
	// linkLayerOption is the type of the option with the target's MAC address, linkLayerLength its length in units of 8
	// bytes (RFC 4861 section 4.6.1).
	linkLayerOption, linkLayerLength = 2, 1
	// hops is the hop limit of neighbour discovery packets. No packet from outside the segment has it.
	hops = 255
	// Offsets in an untagged frame.
	atType, atPayload = 12, 14
	atSenderMAC       = atPayload + 8 // in ARP
	atSenderAddr      = atPayload + 14
	atNextHeader      = atPayload + 6
	atHopLimit        = atPayload + 7
	atICMP            = atPayload + 40
	// Offsets in a neighbour advertisement.
	atTarget = 8
	atOption = atTarget + 16
)

// probeFrame returns a frame to which the host with an address replies, without identifying the sender: an ARP probe
// (RFC 5227 section 2.1.1), or a neighbour solicitation as sent by duplicate address detection (RFC 4862 section
// 5.4.2).
func probeFrame(from [6]byte, a netip.Addr, vlan int) []byte {
	var to [6]byte
	var payload []byte
	kind := uint16(typeARP)
	if a = a.Unmap(); a.Is4() {
		to = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		payload = probe(from, a.As4())
	} else {
		target := a.As16()
		to = [6]byte{0x33, 0x33, 0xff, target[13], target[14], target[15]} // RFC 2464 section 7
		kind, payload = typeIPv6, solicit(target)
	}
	return ethernetFrame(to, from, vlan, kind, payload)
}

// claim returns a frame that announces an address to all hosts: an ARP announcement (RFC 5227 section 2.3), or an
// unsolicited neighbour advertisement (RFC 4861 section 7.2.6) that overrides their caches.
func claim(from [6]byte, a netip.Addr, vlan int) []byte {
	if a = a.Unmap(); a.Is4() {
		broadcast := [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		return ethernetFrame(broadcast, from, vlan, typeARP, arpRequest(from, a.As4(), a.As4()))
	}
	// All nodes of the link (RFC 4291 section 2.7.1).
	return ethernetFrame([6]byte{0x33, 0x33, 5: 1}, from, vlan, typeIPv6, advertise(from, a.As16()))
}

func ethernetFrame(to, from [6]byte, vlan int, kind uint16, payload []byte) []byte {
	frame := slices.Concat(to[:], from[:])
	if vlan != 0 {
		frame = binary.BigEndian.AppendUint16(frame, typeVLAN)
		frame = binary.BigEndian.AppendUint16(frame, uint16(vlan))
	}
	frame = binary.BigEndian.AppendUint16(frame, kind)
	return append(frame, payload...)
}

// probe returns an ARP request (RFC 826) without a sender address.
func probe(from [6]byte, target [4]byte) []byte { return arpRequest(from, [4]byte{}, target) }

func arpRequest(from [6]byte, sender, target [4]byte) []byte {
	p := []byte{0, 1, 8, 0, 6, 4, 0, 1}
	p = append(p, from[:]...)
	p = append(p, sender[:]...)
	p = append(p, make([]byte, 6)...)
	return append(p, target[:]...)
}

// solicit returns a neighbour solicitation (RFC 4861 section 4.3) from the unspecified address to the target's
// solicited-node address (RFC 4291 section 2.7.1).
func solicit(target [16]byte) []byte {
	to := [16]byte{0: 0xff, 1: 0x02, 11: 1, 12: 0xff, 13: target[13], 14: target[14], 15: target[15]}
	return icmpPacket([16]byte{}, to, append([]byte{solicitation, 0, 0, 0, 0, 0, 0, 0}, target[:]...))
}

// advertise returns a neighbour advertisement (RFC 4861 section 4.4) from the target address to all nodes.
func advertise(from [6]byte, target [16]byte) []byte {
	const override = 0x20
	message := append([]byte{advertisement, 0, 0, 0, override, 0, 0, 0}, target[:]...)
	message = append(append(message, linkLayerOption, linkLayerLength), from[:]...)
	return icmpPacket(target, [16]byte{0: 0xff, 1: 0x02, 15: 1}, message)
}

func icmpPacket(from, to [16]byte, message []byte) []byte {
	p := []byte{6 << 4, 0, 0, 0, 0, byte(len(message)), icmpv6, hops}
	p = append(p, from[:]...)
	p = append(p, to[:]...)
	p = append(p, message...)
	// The length and protocol of the pseudo-header (RFC 8200 section 8.1) take the place of the rest of the header.
	sum := checksum(uint32(len(message))+icmpv6, p[8:])
	binary.BigEndian.PutUint16(p[42:], sum)
	return p
}

func checksum(sum uint32, data []byte) uint16 {
	for pair := range slices.Chunk(data, 2) {
		sum += uint32(binary.BigEndian.Uint16(pair))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// icmpMessage returns the ICMPv6 message of an untagged IPv6 frame, behind any extension headers; nil if it has none.
func icmpMessage(frame []byte) []byte {
	if len(frame) < atICMP {
		return nil
	}
	next, rest := frame[atNextHeader], frame[atICMP:]
	for next == hopByHop || next == routing || next == destinationOptions {
		if len(rest) < 8 {
			return nil
		}
		next, rest = rest[0], rest[min(len(rest), 8+8*int(rest[1])):]
	}
	if next != icmpv6 {
		return nil
	}
	return rest
}

// parseAnswer parses from an untagged frame the address that its sender claims. Any ARP packet with a sender address
// makes a claim (RFC 5227 section 2.1.1), and so does a neighbour advertisement.
func parseAnswer(frame []byte) (a netip.Addr, mac string, ok bool) {
	if len(frame) < atSenderAddr+4 {
		return a, "", false
	}
	m := frame[6:12]
	switch binary.BigEndian.Uint16(frame[atType:]) {
	case typeARP:
		a, m = netip.AddrFrom4([4]byte(frame[atSenderAddr:])), frame[atSenderMAC:]
	case typeIPv6:
		message := icmpMessage(frame)
		if len(message) < atOption || message[0] != advertisement || frame[atHopLimit] != hops {
			return a, "", false
		}
		a = netip.AddrFrom16([16]byte(message[atTarget:]))
		// An option has its type, its length in units of 8 bytes, and at least 6 more bytes. Of several, hosts take the
		// first (Linux: net/ipv6/ndisc.c, ndisc_parse_options).
		for o := message[atOption:]; len(o) >= 8 && o[1] > 0; o = o[min(len(o), 8*int(o[1])):] {
			if o[0] == linkLayerOption {
				m = o[2:]
				break
			}
		}
	}
	if !a.IsValid() || a.IsUnspecified() {
		return a, "", false
	}
	return a, net.HardwareAddr(m[:6]).String(), true
}
