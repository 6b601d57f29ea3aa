// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
	"time"
)

// Peer is a router that nodes keep a BGP session with.
type Peer struct {
	Name    string
	Created time.Time
	// Nodes names the nodes that shall keep the session, sorted; resolved by the reader.
	Nodes []string
	// MyASN is the nodes' AS number, LocalASN what the peer sees instead, 0 for the same.
	MyASN, LocalASN uint32
	// PeerASN is the peer's; 0 accepts any: that of MyASN if Internal, else any other.
	PeerASN  uint32
	Internal bool
	// Addr to dial; the zero Addr for whoever is found on Interface.
	Addr      netip.Addr
	Interface string
	// Source to dial from, the zero Addr for any.
	Source                   netip.Addr
	Port                     uint16
	Hold, Keepalive, Connect time.Duration
	// RouterID of the nodes; the zero Addr leaves it to each of them.
	RouterID netip.Addr
	Password string
	// TTL of packets to an external peer beyond the link, 0 for one on the link.
	TTL uint8
	// SecurityHops is how far away the peer may be, 0 for anywhere.
	SecurityHops    uint8
	GracefulRestart bool
	// DualStack carries routes of both families, not only those of the session's own.
	DualStack bool
	// BFD watches the peer; nil for no BFD.
	BFD      *BFDProfile
	Findings []Finding
}

// BFDProfile is how the path to a peer is watched (RFC 5880).
type BFDProfile struct {
	Receive, Transmit time.Duration
	// Multiplier is how many packets in a row must be missing.
	Multiplier uint8
	Passive    bool
	// MinimumTTL of packets from beyond the link.
	MinimumTTL uint8
}

// Advertisement says which addresses are told to which peers, and how.
type Advertisement struct {
	Name    string
	Created time.Time
	// Nodes names the nodes that tell, sorted; Pools those told, sorted, unless EveryPool
	// tells all addresses, also those that are in none; resolved by the reader.
	Nodes, Pools []string
	EveryPool    bool
	// Services match the labels of those told; empty tells all.
	Services []Selector
	// Peers are the names of those who are told; empty tells all.
	Peers []string
	// Length4 and Length6 are the prefix lengths that addresses are told with.
	Length4, Length6 int
	// ByGateway makes the gateways of the L2Domain the next hop, instead of the node.
	ByGateway      bool
	LocalPref, MED *uint32
	Prepend        uint8
	// Communities are those of RFC 1997, LargeCommunities the three numbers of each of RFC 8092.
	Communities      []uint32
	LargeCommunities [][3]uint32
	Findings         []Finding
}

// PeerSession is what a node says of its session with a peer.
type PeerSession struct {
	Established bool
	// Unknown: what the node reported last has expired; Problem says why.
	Unknown bool
	// Problem is why it is not Established, as far as the node knows.
	Problem string
}

// Finding is something that is wrong with an object, or with what it names.
type Finding struct {
	Reason, Message string
	// Fatal: the object has no effect before it is mended.
	Fatal bool
}

// Fatal reports whether one of the findings takes all effect from an object.
func Fatal(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Fatal })
}
