// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// Phase is the state of a session (RFC 4271 section 8.2.2).
type Phase string

// The states of a session. It is Active while the peer is dialled and between two attempts, and
// Connect when it has taken the connection and our OPEN is yet to go out.
const (
	Idle        Phase = "Idle"
	Connect     Phase = "Connect"
	Active      Phase = "Active"
	OpenSent    Phase = "OpenSent"
	OpenConfirm Phase = "OpenConfirm"
	Established Phase = "Established"
)

// State is how a session is.
type State struct {
	// Peer is the name of the BGPPeer.
	Peer string
	// Addr is dialled; the zero Addr while an unnumbered peer has not been heard on Interface.
	Addr      netip.Addr
	Interface string
	// Local is our end of the session, while it is Established.
	Local netip.Addr
	// PeerASN is what the peer told, while the session is OpenConfirm or Established.
	PeerASN uint32
	Phase   Phase
	// Since when the session is in this phase.
	Since time.Time
	// LastError is why the session was lost or could not be opened, the last time; empty if it never was.
	LastError     string
	LastErrorTime time.Time
	// IPv4 and IPv6 are how many prefixes the peer was told.
	IPv4, IPv6 int
	// Updates are how many routes the peer was told and withdrawn, in all sessions: each begins with all routes.
	Updates uint64
	// BFD is the state of the BFD session (RFC 5880 section 6.2), empty where there is none.
	BFD string
}

// Path is what BFD watches: from one of our addresses to a peer.
type Path struct {
	Local, Peer netip.Addr
	// Interface that both are on, if they are link-local.
	Interface string
	BFD       bgp.BFD
}

// Turn orders nodes of which each has to close a session that is Established, for an edit: one after another.
type Turn interface {
	// Take asks for the turn, and reports whether this node has it for a peer. If not, Changed is called for the peer when it has.
	Take(peer string) bool
	// Done gives it back. A peer that neither asked nor has it is nothing to do.
	Done(peer string)
}

// BFD watches paths by name.
type BFD interface {
	// Watch begins, or goes on with other parameters.
	Watch(name string, path Path)
	// Leave ends, and says AdminDown to the peer (RFC 5880 section 6.8.16). A name that is not watched is nothing to do.
	Leave(name string)
	// Session is how the session is; the zero Liveness if there is none.
	Session(name string) Liveness
}

// Liveness is how a BFD session is.
type Liveness struct {
	// State as in RFC 5880 section 6.2, empty if there is no session.
	State string
	Up    bool
	// Failures counts how often the session went down because the path failed or the peer said so, not
	// because of an administrator (RFC 5882 section 3.2).
	Failures uint64
}
