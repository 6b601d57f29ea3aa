// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

// Session is one BGP session of a node and the routes advertised in it.
type Session struct {
	// Peer is the name of the BGPPeer.
	Peer     string
	Neighbor Neighbor
	// BFD monitors the path to the peer; nil for no BFD.
	BFD    *BFD
	Routes map[netip.Prefix]Attributes
	// Leaving means that the node drains or BGP is disabled. The routes get the community GRACEFUL_SHUTDOWN (RFC
	// 8326) and are withdrawn a little later. Then the session is closed and stays closed as long as Leaving is true.
	Leaving bool
	// FRRK8s means that frr-k8s has the session, not the daemon of the node. Next hops, MED and prepending of its Routes
	// have no effect.
	FRRK8s bool
}

// Neighbor is the configuration of a session. SameSession reports whether two Neighbors are those of the same
// session.
type Neighbor struct {
	// MyASN is the node's AS number. LocalASN is sent to this peer instead, 0 for the same.
	MyASN, LocalASN uint32
	// PeerASN is the AS number that the peer must have; 0 leaves it to Dynamic.
	PeerASN uint32
	// Dynamic selects the AS numbers that are accepted if PeerASN is 0.
	Dynamic DynamicASN
	// Addr is the address to dial. It is the zero Addr for an unnumbered peer, which is discovered on Interface by its
	// Router Advertisements (RFC 4861).
	Addr      netip.Addr
	Interface string
	// Source is the address to dial from; the zero Addr leaves it to the routing table.
	Source netip.Addr
	Port   uint16
	// Hold, Keepalive and Connect are whole seconds. If Hold is 0, the hold timer never expires and no KEEPALIVEs are
	// sent (RFC 4271 section 4.2). The interval between connection attempts is between half of Connect and Connect.
	Hold, Keepalive, Connect time.Duration
	// RouterID is an IPv4 address (RFC 4271 section 4.2).
	RouterID netip.Addr
	// Password is the key of TCP MD5 (RFC 2385), empty for none.
	Password string
	// TTL is that of an external peer beyond the link, 0 for a peer on the link.
	TTL uint8
	// SecurityHops limits the distance of the peer (RFC 5082), 0 for no limit.
	SecurityHops uint8
	// GracefulRestart lets the peer keep our routes while we restart (RFC 4724).
	GracefulRestart bool
	// IPv4 and IPv6 are the families of routes that the session carries.
	IPv4, IPv6 bool
}

// SameSession reports whether a session with n can continue as one with o: they differ, if at all, only in values that
// affect neither the OPEN message nor the connection.
func (n Neighbor) SameSession(o Neighbor) bool {
	n.Connect, n.Keepalive = o.Connect, o.Keepalive
	return n == o
}

// Resumes reports whether a router that keeps the routes of a session with o during a restart (RFC 4724) recognizes a
// session with n as its continuation.
func (n Neighbor) Resumes(o Neighbor) bool {
	return n.GracefulRestart && o.GracefulRestart && n.Addr == o.Addr && n.Interface == o.Interface &&
		n.Source == o.Source && n.Port == o.Port
}

// DynamicASN selects which AS numbers of a peer are accepted if none is configured.
type DynamicASN uint8

// The values of DynamicASN.
const (
	ExactASN DynamicASN = iota
	InternalASN
	ExternalASN
)

// Attributes are the path attributes of a route.
type Attributes struct {
	// NextHop has either family. In a session with an unnumbered peer the zero Addr stands for the node's link-local
	// address on Interface, which only the node itself knows.
	NextHop netip.Addr
	// LocalPref is sent to internal peers (RFC 4271 section 5.1.5), MED to all (RFC 4271 section 5.1.4). If nil, the
	// attribute is not sent.
	LocalPref, MED *uint32
	// Prepend is how many additional times our AS number appears in the AS path.
	Prepend uint8
	// Communities are those of RFC 1997 and LargeCommunities those of RFC 8092, sorted and distinct.
	Communities      []uint32
	LargeCommunities []LargeCommunity
}

// Equal reports whether routes with these attributes are advertised identically.
func (a Attributes) Equal(b Attributes) bool { return a.Compare(b) == 0 }

// Compare orders attributes, so that those that are Equal are adjacent.
func (a Attributes) Compare(b Attributes) int {
	optional := func(a, b *uint32) int {
		switch {
		case a == b:
			return 0
		case a == nil:
			return -1
		case b == nil:
			return 1
		}
		return cmp.Compare(*a, *b)
	}
	return cmp.Or(a.NextHop.Compare(b.NextHop), optional(a.LocalPref, b.LocalPref), optional(a.MED, b.MED),
		cmp.Compare(a.Prepend, b.Prepend), slices.Compare(a.Communities, b.Communities),
		slices.CompareFunc(a.LargeCommunities, b.LargeCommunities, LargeCommunity.compare))
}

// LargeCommunity is a large community (RFC 8092).
type LargeCommunity struct{ Global, Local1, Local2 uint32 }

// compare orders large communities (RFC 8092 section 2).
func (c LargeCommunity) compare(o LargeCommunity) int {
	return cmp.Or(cmp.Compare(c.Global, o.Global), cmp.Compare(c.Local1, o.Local1), cmp.Compare(c.Local2, o.Local2))
}

// BFD contains the BFD settings for the path to a peer.
type BFD = bfd.Settings

// EndsBFD reports whether a BFD session with some settings ends when others are wanted, nil for no BFD: a path of the
// other kind has a session of its own. Routers such as FRR close the BGP session if BFD was up, although AdminDown is
// not a failure (RFC 5882 section 3.2).
func EndsBFD(has, want *BFD) bool {
	return has != nil && (want == nil || want.Multihop != has.Multihop)
}
