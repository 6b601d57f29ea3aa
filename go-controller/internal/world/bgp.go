// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Peer is a router with which nodes have a BGP session.
type Peer struct {
	Name    string
	Created time.Time
	// Nodes are the names of the nodes that must have the session, sorted. The reader of the API object has resolved
	// them.
	Nodes []string
	// MyASN is the AS number of the nodes. LocalASN is the AS number presented to the peer instead, 0 for MyASN.
	MyASN, LocalASN uint32
	// PeerASN is the AS number of the peer. 0 accepts MyASN if Internal is set, otherwise any AS number except MyASN.
	PeerASN  uint32
	Internal bool
	// Addr is the address to dial, the zero Addr for the neighbor discovered on Interface.
	Addr      netip.Addr
	Interface string
	// Source is the address to dial from, the zero Addr for any.
	Source                   netip.Addr
	Port                     uint16
	Hold, Keepalive, Connect time.Duration
	// RouterID is the router ID of the nodes. With the zero Addr each node selects its own.
	RouterID netip.Addr
	Password string
	// TTL is the TTL of packets to an external peer that is not on the link (eBGP multihop), 0 for a peer on the link.
	TTL uint8
	// SecurityHops is the maximum distance of the peer in hops, 0 for no limit.
	SecurityHops    uint8
	GracefulRestart bool
	// DualStack advertises routes of both families, not only of the session's own.
	DualStack bool
	// BFD is the profile of the BFD session with the peer, nil for no BFD. BFDName is its name.
	BFD     *BFDProfile
	BFDName string
	// FRRK8s means that frr-k8s has the sessions. PasswordSecret is then the Secret of its namespace with the password.
	FRRK8s         bool
	PasswordSecret string
	Findings       []Finding
}

// NeighborID returns how FRR identifies the peer: by interface or address.
func (p *Peer) NeighborID() string {
	if p.Interface != "" {
		return p.Interface
	}
	return p.Addr.String()
}

// BFDProfile holds the parameters of a BFD session with a peer (RFC 5880).
type BFDProfile struct {
	Receive, Transmit time.Duration
	// Multiplier is the number of consecutive packets that must be missing for the session to fail.
	Multiplier uint8
	Passive    bool
	// MinimumTTL is the minimum TTL of packets from a peer that is not on the link.
	MinimumTTL uint8
}

// AcceptsASN reports whether nodes open a session if the peer sends an AS number.
func (p *Peer) AcceptsASN(asn uint32) bool {
	ours := cmp.Or(p.LocalASN, p.MyASN)
	switch {
	case p.PeerASN != 0:
		return asn == p.PeerASN
	case p.Internal:
		return asn == ours
	}
	return asn != ours
}

// Advertisement selects the addresses to advertise, the peers to advertise them to, and the path attributes.
type Advertisement struct {
	Name    string
	Created time.Time
	// Nodes are the names of the nodes that advertise, sorted. Pools are the names of the advertised pools, sorted. The
	// reader of the API object has resolved both. EveryPool advertises all addresses, including those in no pool.
	Nodes, Pools []string
	EveryPool    bool
	// Services match the labels of the advertised Services. Empty advertises all.
	Services []Selector
	// Peers are the names of the peers to advertise to. Empty advertises to all.
	Peers []string
	// Length4 and Length6 are the lengths of the advertised IPv4 and IPv6 prefixes.
	Length4, Length6 int
	// ByGateway makes the gateways of the L2Domain the next hop, not the node.
	ByGateway      bool
	LocalPref, MED *uint32
	Prepend        uint8
	// Communities are RFC 1997 communities. LargeCommunities are the three numbers of each RFC 8092 large community.
	Communities      []uint32
	LargeCommunities [][3]uint32
	Findings         []Finding
}

// GracefulRestartTime is how long routers with graceful restart keep the routes of a node whose daemon has ended (RFC
// 4724 section 3). An upgraded daemon is back sooner, even if it has to pull the image.
const GracefulRestartTime = 2 * time.Minute

// PeerSession is the state of a node's session with a peer, as the node reports it.
type PeerSession struct {
	Established bool
	// Outdated means that an Established session has settings of before an edit of the peer.
	Outdated bool
	// Unknown means that the last report of the node has expired. Problem is the reason.
	Unknown bool
	// Unread is why the node may advertise other addresses than it is to in an Established session: it can't read a kind.
	Unread string
	// PeerASN is the AS number that the peer has sent, 0 if it is not known.
	PeerASN uint32
	// Problem is the reason why the session is not Established, as far as the node knows.
	Problem string
	// Reason is what Problem is about, if it is the last error of our BGP daemon.
	Reason v1alpha1.BGPErrorReason
	// BFDProblem is why BFD does not work, as far as the node knows; empty if nothing prevents it.
	BFDProblem string
	// WithoutIPv4 and WithoutIPv6 mean that the session is Established and does not have the family. Both are false if
	// an older daemon does not report families.
	WithoutIPv4, WithoutIPv6 bool
	// ByFRR means that the session is one of frr-k8s. Whether it carries a route is in FRR.Nodes.
	ByFRR bool
}

// Carries reports whether routes of a family are sent.
func (s PeerSession) Carries(f Family) bool {
	if f == IPv4 {
		return s.Established && !s.WithoutIPv4
	}
	return s.Established && !s.WithoutIPv6
}

// Finding is a problem with an object or with an object that it references.
type Finding struct {
	Reason, Message string
	// Fatal means that the object has no effect until the problem is fixed.
	Fatal bool
}

// Fatal reports whether a finding in list is fatal.
func Fatal(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Fatal })
}
