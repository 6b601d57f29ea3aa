// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// For returns the sessions of a node, sorted by peer, with the routes advertised in each.
func (l *Layout) For(node string) []Session {
	n := l.nodes[node]
	if n == nil {
		return nil
	}
	offers := l.routesToAdvertise(n)
	unions := map[string]Attributes{}
	var sessions []Session
	for _, p := range l.peersOf(n) {
		s := Session{Peer: p.Name, Neighbor: neighbor(p, n), BFD: watched(p, n), Leaving: n.Draining != "" || l.Off() != "",
			FRRK8s: p.FRRK8s}
		s.Routes = l.routes(n, p, s.Neighbor, offers, unions)
		sessions = append(sessions, s)
	}
	slices.SortFunc(sessions, func(a, b Session) int { return cmp.Compare(a.Peer, b.Peer) })
	return sessions
}

// identity distinguishes the peers of a node.
type identity struct {
	addr, source netip.Addr
	iface        string
	port         uint16
}

func identify(p *world.Peer) identity { return identity{p.Addr, p.Source, p.Interface, p.Port} }

// peersOf returns the peers of a node. Of duplicates, it returns only the oldest.
func (l *Layout) peersOf(n *world.Node) []*world.Peer {
	var peers []*world.Peer
	for _, p := range l.peers {
		same := func(o *world.Peer) bool { return identify(o) == identify(p) }
		if containsName(p.Nodes, n.Name) && !slices.ContainsFunc(peers, same) {
			peers = append(peers, p)
		}
	}
	return peers
}

func neighbor(p *world.Peer, n *world.Node) Neighbor {
	return Neighbor{
		MyASN: p.MyASN, LocalASN: p.LocalASN, PeerASN: p.PeerASN, Dynamic: dynamic(p),
		Addr: p.Addr, Interface: p.Interface, Source: p.Source, Port: p.Port,
		Hold: p.Hold, Keepalive: p.Keepalive, Connect: p.Connect,
		RouterID: RouterID(p, n), Password: p.Password,
		TTL: p.TTL, SecurityHops: p.SecurityHops, GracefulRestart: p.GracefulRestart,
		IPv4: Carries(p, world.IPv4), IPv6: Carries(p, world.IPv6),
	}
}

func dynamic(p *world.Peer) DynamicASN {
	switch {
	case p.PeerASN != 0:
		return ExactASN
	case p.Internal:
		return InternalASN
	}
	return ExternalASN
}

// Carries reports whether a session carries routes of a family: that of the peer's address, or both if the session is
// dual-stack or the peer has no configured address.
func Carries(p *world.Peer, f world.Family) bool {
	return p.DualStack || !p.Addr.IsValid() || world.FamilyOf(p.Addr) == f
}

// NotNegotiated returns why a session does not carry a family although the peer is configured for it.
func NotNegotiated(f world.Family) string {
	text := f.String() + " unicast was not negotiated with the peer: check that the peer activates it for this node"
	if f == world.IPv4 {
		text += ", and extended next hops (RFC 8950) if the session is over IPv6"
	}
	return text
}

// RouterID returns the BGP identifier of a node (RFC 6286): the one configured for the peer, the node's own IPv4
// address, or a hash of the node's name. The hash has the form of a unicast address, which some routers require.
func RouterID(p *world.Peer, n *world.Node) netip.Addr {
	if p.RouterID.IsValid() {
		return p.RouterID
	}
	for _, a := range n.External {
		if a.Is4() {
			return a
		}
	}
	h := fnv.New64a()
	h.Write([]byte(n.Name))
	const lastUnicast = 223
	sum := h.Sum64()
	return netip.AddrFrom4([4]byte{byte(sum>>32%lastUnicast) + 1, byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

func watched(p *world.Peer, n *world.Node) *BFD {
	b := p.BFD
	if b == nil {
		return nil
	}
	return &BFD{Receive: b.Receive, Transmit: b.Transmit, Multiplier: b.Multiplier, Passive: b.Passive,
		Multihop: multihop(p, n), MinimumTTL: b.MinimumTTL}
}

// multihop reports whether a peer is beyond the node's links, by the rules that the peer router itself applies: the
// configuration for an external peer, the subnets for an internal one.
func multihop(p *world.Peer, n *world.Node) bool {
	internal := p.PeerASN == p.MyASN || p.PeerASN == 0 && p.Internal
	switch {
	case !p.Addr.IsValid(), internal && p.Addr.IsLinkLocalUnicast(): // Routers forward no link-local addresses.
		return false
	case internal:
		return len(n.Links) > 0 && !slices.ContainsFunc(n.Links, func(link netip.Prefix) bool {
			return link.Masked().Contains(p.Addr)
		})
	}
	return p.TTL > 1 || p.SecurityHops > 1
}
