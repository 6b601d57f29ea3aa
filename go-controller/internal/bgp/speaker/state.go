// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Phase is the state of a session (RFC 4271 section 8.2.2).
type Phase string

// The states of a session. It is Active while the peer is dialed and between two attempts. It is Connect when the peer
// has accepted the connection and our OPEN is not sent yet.
const (
	Idle        Phase = "Idle"
	Connect     Phase = "Connect"
	Active      Phase = "Active"
	OpenSent    Phase = "OpenSent"
	OpenConfirm Phase = "OpenConfirm"
	Established Phase = "Established"
)

// State is the state of a session.
type State struct {
	// Peer is the name of the BGPPeer.
	Peer string
	// Addr is the address to dial; the zero Addr while an unnumbered peer has not been discovered on Interface.
	Addr      netip.Addr
	Interface string
	// Local is our address in the session, while it is Established.
	Local netip.Addr
	// PeerASN is the AS number in the peer's OPEN, while the session is OpenConfirm or Established, or while LastError is
	// that it is not acceptable.
	PeerASN uint32
	Phase   Phase
	// Since is when the session entered this phase.
	Since time.Time
	// Damped means that the session counts as down even if it is Established, because those before it ended soon.
	Damped bool
	// Outdated means that an Established session has other settings than wanted until it is the node's turn to reopen it
	// (Turn).
	Outdated bool
	// LastError is the latest reason why the session was lost or could not be opened; empty if that never happened.
	LastError       string
	LastErrorReason v1alpha1.BGPErrorReason
	LastErrorTime   time.Time
	// Families are the address families of the session, while it is Established. IPv4 is not among them if there are
	// routes whose next hops of IPv6 the peer does not accept (RFC 8950).
	Families Families
	// IPv4 and IPv6 are the numbers of prefixes advertised to the peer.
	IPv4, IPv6 int
	// Updates counts the routes advertised to the peer and withdrawn, in all sessions. Each session begins with all
	// routes.
	Updates uint64
	// Pending is the number of prefixes to advertise that are not, because there is no session, it does not have their
	// family, or they failed.
	Pending int
	// NotificationsSent and NotificationsReceived count the NOTIFICATIONs of all sessions (RFC 4271 section 4.5).
	NotificationsSent, NotificationsReceived uint64
	// BFD is the state of the BFD session (RFC 5880 section 6.2), empty if there is none.
	BFD string
	// BFDProblem is why BFD does not work, empty if nothing prevents it.
	BFDProblem string
	// BFDFailures counts how often the BFD session went down, except because of an administrator.
	BFDFailures uint64
}

// Families are the address families that both sides support (RFC 4760 section 8). No routes of others are sent.
type Families struct{ IPv4, IPv6 bool }

// carries reports whether a route to a prefix is sent.
func (f Families) carries(prefix netip.Prefix) bool {
	if prefix.Addr().Is4() {
		return f.IPv4
	}
	return f.IPv6
}

// Path is monitored by BFD: from one of our addresses to a peer.
type Path struct {
	Local, Peer netip.Addr
	// Interface is that of both addresses, if they are link-local.
	Interface string
	BFD       bgp.BFD
}

// Turn serializes the nodes that have to close an Established session for an edit.
type Turn interface {
	// Take requests the turn for a peer, and reports whether this node has it. If not, Changed is called for the peer
	// when the node gets it.
	Take(peer string) bool
	// Done returns the turn. It has no effect for a peer that neither requested nor has it.
	Done(peer string)
}

// BFD monitors paths by name.
type BFD interface {
	// Watch starts to monitor a path, or changes the parameters.
	Watch(name string, path Path)
	// Leave stops and sends AdminDown to the peer (RFC 5880 section 6.8.16). It has no effect for an unknown name.
	Leave(name string)
	// Session returns the state of a session; the zero Liveness if there is none.
	Session(name string) Liveness
}

// Liveness is the state of a BFD session.
type Liveness struct {
	// State is that of RFC 5880 section 6.2, empty if there is no session.
	State string
	Up    bool
	// Since is when the session entered this state.
	Since time.Time
	// Received means that packets of the peer have arrived within its detection time.
	Received bool
	// Failures counts how often the session went down because the path failed or the peer reported it, not because of
	// an administrator (RFC 5882 section 3.2).
	Failures uint64
	// Problem prevents packets from being sent or received, or is why those of the peer are rejected. It is empty if
	// there is none.
	Problem string
}
