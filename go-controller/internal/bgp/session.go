// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

// Session is one BGP session of a node and everything that is told in it.
type Session struct {
	// Peer is the name of the BGPPeer.
	Peer     string
	Neighbor Neighbor
	// BFD watches the peer; nil for no BFD.
	BFD    *BFD
	Routes map[netip.Prefix]Attributes
	// Leaving: the node is to go, or BGP is switched off. Its routes get the community GRACEFUL_SHUTDOWN (RFC 8326),
	// are withdrawn a little later, and then the session is closed, and stays so as long
	// as this is true.
	Leaving bool
}

// Neighbor is what a session is built with. Sessions whose Neighbors are Alike are the same session.
type Neighbor struct {
	// MyASN is the node's AS number, LocalASN what this peer sees instead of it, 0 for the same.
	MyASN, LocalASN uint32
	// PeerASN that the peer must have; 0 leaves it to Dynamic.
	PeerASN uint32
	// Dynamic says which AS numbers are good if PeerASN is 0.
	Dynamic DynamicASN
	// Addr to dial; the zero Addr for an unnumbered peer, which is found on Interface by
	// its Router Advertisements (RFC 4861).
	Addr      netip.Addr
	Interface string
	// Source to dial from; the zero Addr leaves it to the routing table.
	Source netip.Addr
	Port   uint16
	// Hold, Keepalive and Connect are whole seconds. Hold is 0 for never (RFC 4271 section 4.2), then there are no
	// KEEPALIVEs; attempts to connect are between half of Connect and Connect apart.
	Hold, Keepalive, Connect time.Duration
	// RouterID is an IPv4 address (RFC 4271 section 4.2).
	RouterID netip.Addr
	// Password of TCP MD5 (RFC 2385), empty for none.
	Password string
	// TTL of an external peer beyond the link, 0 for a peer on the link.
	TTL uint8
	// SecurityHops bounds the distance of the peer (RFC 5082), 0 for no bound.
	SecurityHops uint8
	// GracefulRestart keeps our routes in the peer while we restart (RFC 4724).
	GracefulRestart bool
	// IPv4 and IPv6 are the families of routes that the session carries.
	IPv4, IPv6 bool
}

// Alike reports whether a session with n can go on as one with o: what differs, if anything, is no matter of the
// OPEN or of the connection.
func (n Neighbor) Alike(o Neighbor) bool {
	n.Connect, n.Keepalive = o.Connect, o.Keepalive
	return n == o
}

// Resumes reports whether a router that keeps the routes of a session with o while it restarts (RFC 4724) finds
// them again in one with n.
func (n Neighbor) Resumes(o Neighbor) bool {
	return n.GracefulRestart && o.GracefulRestart && n.Addr == o.Addr && n.Interface == o.Interface && n.Source == o.Source && n.Port == o.Port
}

// DynamicASN says which AS numbers of a peer are accepted where none is written down.
type DynamicASN uint8

// The values of dynamicASN.
const (
	ExactASN DynamicASN = iota
	InternalASN
	ExternalASN
)

// Attributes of a route.
type Attributes struct {
	// NextHop of either family. In a session with an unnumbered peer the zero Addr stands for
	// the node's link-local address on Interface, which only the node itself knows.
	NextHop netip.Addr
	// LocalPref is told to internal peers (RFC 4271 section 5.1.5), MED to all (5.1.4); nil tells none.
	LocalPref, MED *uint32
	// Prepend is how many more times our AS number stands in the path.
	Prepend uint8
	// Communities are those of RFC 1997 and LargeCommunities those of RFC 8092, sorted and distinct.
	Communities      []uint32
	LargeCommunities []LargeCommunity
}

// Equal tells whether two routes with these attributes are told alike.
func (a Attributes) Equal(b Attributes) bool {
	same := func(a, b *uint32) bool { return a == b || a != nil && b != nil && *a == *b }
	return a.NextHop == b.NextHop && same(a.LocalPref, b.LocalPref) && same(a.MED, b.MED) && a.Prepend == b.Prepend &&
		slices.Equal(a.Communities, b.Communities) && slices.Equal(a.LargeCommunities, b.LargeCommunities)
}

// LargeCommunity is a community of RFC 8092.
type LargeCommunity struct{ Global, Local1, Local2 uint32 }

// BFD is how the path to a peer is watched.
type BFD = bfd.Settings
