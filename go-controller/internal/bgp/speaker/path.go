// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// bfdFirstAfter is how long a peer is dialed without success before BFD starts without a session: the router may hold
// BGP until BFD is up.
const bfdFirstAfter = 5 * time.Second

// handleBFD closes the session when BFD detects that its path failed (RFC 5882 section 4.2). If there is no session, it
// dials at once when BFD is up.
func (p *peer) handleBFD(n bgp.Neighbor) {
	if p.path == nil {
		return
	}
	was, is := p.lastLiveness, p.speaker.options.BFD.Session(p.name)
	p.lastLiveness = is
	waits := p.session == nil
	if is.Failures > was.Failures && !waits {
		p.pathFailed = true
		p.session.closeOnPathFailure(bfdDown())
		p.sessionEnded(p.session.observed(), p.session.neighbor)
		p.recordLoss(bfdDown().reason())
		p.end("")
	}
	if is.Up && !was.Up && (p.pathFailed || waits) && p.endOfBFD.IsZero() && p.expediteDial(n) {
		p.cancelAttempt()
	}
}

// expediteDial brings the next attempt forward because the path works now, and reports whether it is due. BFD of a
// router can go down and up with a few packets: one attempt per second is brought forward, and one per delay if
// sessions with the router do not last.
func (p *peer) expediteDial(n bgp.Neighbor) bool {
	pause := maxRetryAfterBFD
	if p.damping.short > 1 {
		pause = p.dampedDelay(n)
	}
	now, next := time.Now(), p.expedited.Add(pause)
	if next.Before(now) {
		next = now
	}
	if next.Before(p.retry) {
		p.retry = next
	}
	if next.After(now) {
		return false
	}
	p.expedited = now
	return true
}

// routerDialsAfter is how long after the end of a session, and after the failure of BFD, the router itself may dial.
// FRR does so after a second.
const routerDialsAfter = 1200 * time.Millisecond

const (
	// bfdOutlivesSession is how long BFD goes on after the end of a session that a router takes for a restart. If BFD
	// ended at the same time, the router might notice that first, and would close the session and drop its routes.
	bfdOutlivesSession = time.Second
	// redialAfterBFD is how long after the end of BFD the peer is dialed: when AdminDown has been sent three times.
	redialAfterBFD = 3 * time.Second
)

// endsBFD reports whether the wanted BFD settings end a BFD session that may be up on the router, which closes the BGP
// session then.
func (p *peer) endsBFD(want *bgp.BFD) bool {
	if p.path == nil || !p.endOfBFD.IsZero() || !bgp.EndsBFD(&p.path.BFD, want) {
		return false
	}
	state := p.speaker.options.BFD.Session(p.name).State
	return state == bfd.Up.String() || state == bfd.Init.String() // in Init, the router may be Up
}

// awaitEndOfBFD postpones the next attempt until the router has noticed the end of BFD, after that of the session. A
// further edit does not change that.
func (p *peer) awaitEndOfBFD() {
	at := time.Now()
	if p.path != nil {
		at = at.Add(bfdOutlivesSession)
		p.endOfBFD = at
	}
	p.notBefore = at.Add(redialAfterBFD)
}

// firstDialAfter returns how long a session with graceful restart waits before it dials for the first time. An earlier
// process of this node may have been killed a moment ago, and the router's reactions must not hit the new session:
//   - Its BFD fails. If the new session is Established then, the router closes it and drops all its routes. If BFD
//     fails earlier, it only affects a session that is restarting. The detection time (RFC 5880 section 6.8.4) is taken
//     from this side's configuration.
//   - It dials, and its attempt fails, as nodes do not listen. If that happens in the instant in which the new session
//     becomes Established, FRR closes it, and deletes a dynamic neighbor with all its routes.
func firstDialAfter(want *bgp.Session) time.Duration {
	if !want.Neighbor.GracefulRestart {
		return 0
	}
	wait := routerDialsAfter
	if want.BFD != nil {
		wait += (time.Duration(want.BFD.Multiplier) + 1) * max(want.BFD.Transmit, want.BFD.Receive)
	}
	return wait
}

func (p *peer) stopBFD() {
	if p.path != nil {
		p.path, p.lastLiveness, p.pathFailed, p.endOfBFD = nil, Liveness{}, false, time.Time{}
		p.speaker.options.BFD.Leave(p.name)
	}
}

// failedDial is the address that has been dialed without success, and since when.
type failedDial struct {
	to    netip.Addr
	since time.Time
}

// startBFD lets BFD monitor the peer from when a session is Established, or from strictAfter on. Monitoring ends when
// the peer is replaced or no session is wanted. It continues when the session is lost, to detect that the path is back.
// startBFD returns the time after which it must be called again without an event; 0 for never.
func (p *peer) startBFD(want *bgp.Session, to target) time.Duration {
	if p.speaker.options.BFD == nil {
		return 0
	}
	if p.outdated {
		return 0 // BFD changes when the session does.
	}
	if wait := time.Until(p.endOfBFD); wait > 0 {
		return wait
	}
	if want.BFD == nil || !p.endOfBFD.IsZero() {
		p.stopBFD()
	}
	if want.BFD == nil {
		return 0
	}
	path := Path{Peer: to.addr, Interface: to.addr.Zone(), BFD: *want.BFD}
	if p.session != nil && p.session.observed().phase == Established {
		p.pathFailed, p.failedDial = false, failedDial{}
		path.Local, path.Peer, path.Interface = p.session.observed().local, p.session.addr, p.session.addr.Zone()
	} else if p.path != nil && p.path.Peer == to.addr {
		path.Local = p.path.Local
	} else {
		if p.failedDial.to != to.addr {
			return 0
		}
		if wait := time.Until(p.failedDial.since.Add(bfdFirstAfter)); wait > 0 {
			return wait
		}
		if path.Local = source(to); !path.Local.IsValid() {
			return bfdFirstAfter
		}
	}
	if p.path == nil || *p.path != path {
		other := p.path == nil || p.path.Local != path.Local || p.path.Peer != path.Peer
		p.path = &path
		p.speaker.options.BFD.Watch(p.name, path)
		if other { // The path may have been left a moment ago; ignore its earlier failures.
			p.lastLiveness = Liveness{Failures: p.speaker.options.BFD.Session(p.name).Failures}
		}
	}
	return 0
}

// source returns our address in a session that does not exist yet: the configured address, or the one that the kernel
// would choose. It returns the zero Addr if the kernel has no route.
func source(to target) netip.Addr {
	if to.neighbor.Source.IsValid() {
		return zoned(to.neighbor.Source, to.addr.Zone())
	}
	addr, err := withInterfaceIndex(to.addr)
	if err != nil {
		return netip.Addr{}
	}
	// Connecting a UDP socket sends nothing.
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, to.neighbor.Port)))
	if err != nil {
		return netip.Addr{}
	}
	defer func() { _ = conn.Close() }()
	return localOf(conn, to.addr.Zone())
}
