// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/unnumbered"
)

const (
	maxBackoff = time.Minute
	// renewed is the reason for the end of a session whose configuration changed.
	renewed = "the session was reconfigured"
)

// peer drives one session to the wanted state. Each step considers the complete state.
type peer struct {
	name    string
	speaker *Speaker
	log     klog.Logger
	// wake has a token if the state has changed.
	wake chan struct{}
	// running is guarded by the Speaker's mutex.
	running bool

	mu    sync.Mutex
	want  *bgp.Session
	state State
	found found // the discovered link of an unnumbered peer
	// session and its target are changed by run only, which reads them without the mutex.
	session *session

	// The following fields are used by run only.
	attempt *attempt
	// target is that of the session and the attempts; the zero target before the first.
	target target
	// dials means that the address to dial is known and the session is not leaving.
	dials bool
	// retry is the earliest time of the next attempt to dial, or of the first one.
	retry  time.Time
	dialed bool
	// expedited is when BFD brought an attempt forward last.
	expedited time.Time
	// withdrawAt is when the routes of a leaving session are withdrawn; zero if the peer has not received
	// GRACEFUL_SHUTDOWN yet.
	withdrawAt time.Time
	path       *Path // monitored by BFD
	// endOfBFD is when BFD ends because it is not wanted any more; zero if it goes on.
	endOfBFD time.Time
	// notBefore is when the peer may be dialed again at the earliest after the end of BFD.
	notBefore  time.Time
	failedDial failedDial
	// pathFailed means that BFD detected a path failure, and that no session has been Established since. lastLiveness is
	// the last known state of BFD.
	pathFailed   bool
	lastLiveness Liveness
	// outdated means that the session waits for the node's turn to be closed for an edit.
	outdated bool
	// cancelDiscovery cancels the discovery of an unnumbered peer on discoveryInterface.
	cancelDiscovery    context.CancelFunc
	discoveryInterface string
	err                failure
	damping            damping
	// others are connections of other processes that have ended. ending are those that had not ended when the session was
	// dialed.
	others chan socket
	ending []uint64
	// gaveWay is the last attempt of another speaker of the node to open the session; zero if there was none, or if it has
	// had the session since.
	gaveWay contention
	// updates and notifications count those of sessions that ended.
	updates       uint64
	notifications notifications
}

// found is the result of the discovery of an unnumbered peer.
type found struct {
	link unnumbered.Link
	err  error
}

func newPeer(name string, s *Speaker) *peer {
	return &peer{name: name, speaker: s, wake: make(chan struct{}, 1), others: make(chan socket, 16),
		state: State{Peer: name, Phase: Idle, Since: time.Now()}}
}

func (p *peer) set(want *bgp.Session) {
	p.mu.Lock()
	p.want = want
	p.mu.Unlock()
	signal(p.wake)
}

func (p *peer) wanted() *bgp.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.want
}

// State returns the state of the session.
func (p *peer) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *peer) run(ctx context.Context) {
	p.log = klog.FromContext(ctx).WithValues("peer", p.name)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			p.cancelAttempt()
			return
		case <-p.wake:
		case <-timer.C:
		}
		want := p.wanted()
		again := p.step(ctx, want)
		if later := p.postponed(); later > 0 {
			again = earliest(again, later)
		} else {
			p.publish(want)
		}
		if want == nil && p.speaker.removeIfUnwanted(p) {
			p.speaker.options.Notify()
			return
		}
		timer.Stop()
		if again > 0 {
			timer.Reset(again)
		}
	}
}

// step returns the time after which there is more to do without an event; 0 for never.
func (p *peer) step(ctx context.Context, want *bgp.Session) time.Duration {
	if want == nil {
		p.releaseTurn(true)
		p.startDiscovery(ctx, "")
		p.remove()
		return 0
	}
	if !p.dialed {
		p.dialed, p.retry = true, time.Now().Add(firstDialAfter(want))
	}
	to, err := p.resolveTarget(ctx, want.Neighbor)
	p.dials = err == nil && !want.Leaving
	p.handleBFD(want.Neighbor)
	if p.session != nil {
		p.reap()
	}
	if err == nil {
		p.change(want, to)
	}
	if p.attempt != nil && (err != nil || !p.attempt.target.sameSession(to) || want.Leaving) {
		p.retry = time.Time{}
		p.cancelAttempt()
	}
	p.releaseTurn(err != nil || want.Leaving || p.session != nil && p.target == to && !p.outdated &&
		p.session.observed().phase == Established)
	if want.Leaving {
		return p.drain(want)
	}
	p.withdrawAt = time.Time{}
	if err != nil {
		p.recordError(err, unreachable)
		p.advertise(want.Routes) // A working session is kept although its peer can't be located now.
		return 0
	}
	p.yieldSession(to)
	var wait time.Duration
	if p.session == nil {
		wait = p.connect(ctx, to, want.Routes)
	}
	p.advertise(want.Routes)
	_, left := p.damped(to.neighbor)
	return earliest(earliest(wait, left), p.startBFD(want, to))
}

// advertise updates the routes of the session, if there is one.
func (p *peer) advertise(routes map[netip.Prefix]bgp.Attributes) {
	if p.session != nil {
		p.recordError(p.session.advertise(routes), detected)
	}
}

// postponed returns how long the state is not reported because the session sends routes; 0 if it is reported.
func (p *peer) postponed() (left time.Duration) {
	if p.session != nil {
		_, left = p.session.advertisedCounts()
	}
	return left
}

// earliest returns the shorter of two waits; 0 stands for none.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// resolveTarget returns the address to dial.
func (p *peer) resolveTarget(ctx context.Context, n bgp.Neighbor) (target, error) {
	if n.Addr.IsValid() {
		p.startDiscovery(ctx, "")
		return target{neighbor: n, addr: zoned(n.Addr, n.Interface)}, nil
	}
	p.startDiscovery(ctx, n.Interface)
	p.mu.Lock()
	defer p.mu.Unlock()
	return target{n, p.found.link.Peer, p.found.link.Local}, p.found.err
}

// startDiscovery starts the discovery of an unnumbered peer on an interface, and stops it if the interface is empty.
func (p *peer) startDiscovery(ctx context.Context, on string) {
	if p.discoveryInterface == on {
		return
	}
	if p.cancelDiscovery != nil {
		p.cancelDiscovery()
	}
	p.cancelDiscovery, p.discoveryInterface = nil, on
	p.setDiscovered(ctx, found{err: fmt.Errorf("no Router Advertisement was received on interface %s", on)})
	if on == "" {
		return
	}
	ctx, p.cancelDiscovery = context.WithCancel(ctx)
	go unnumbered.Seek(ctx, on, p.router, func(link unnumbered.Link, err error) { p.setDiscovered(ctx, found{link, err}) })
}

// router returns the address of the router with which there is a session; the zero Addr if there is none. The published
// state may be older.
func (p *peer) router() netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil || p.session.observed().phase != Established {
		return netip.Addr{}
	}
	return p.session.addr
}

// setDiscovered records the result of a discovery, unless its context has ended: there may be another one by now.
func (p *peer) setDiscovered(ctx context.Context, f found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		p.found = f
		signal(p.wake)
	}
}

// reap removes a session that has ended.
func (p *peer) reap() {
	saw := p.session.observed()
	if !saw.closed {
		return
	}
	p.sessionEnded(saw, p.session.neighbor)
	p.recordLoss(saw.why)
	p.end("")
}

// drain closes a session in three steps: it lowers the preference of the routes, withdraws them and ends the session.
func (p *peer) drain(want *bgp.Session) time.Duration {
	if p.session == nil {
		p.stopBFD()
		return 0
	}
	if p.session.observed().phase == Established {
		if p.withdrawAt.IsZero() {
			p.withdrawAt = time.Now().Add(p.speaker.options.DrainTime)
		}
		if wait := time.Until(p.withdrawAt); wait > 0 {
			p.advertise(gracefulShutdownRoutes(want.Routes))
			return wait
		}
		p.advertise(nil)
	}
	p.close("the node is draining")
	return 0
}

// gracefulShutdownRoutes returns the routes with attributes that make a peer use them only if it has no others (RFC
// 8326). Within an AS, this is the effect of LOCAL_PREF.
func gracefulShutdownRoutes(routes map[netip.Prefix]bgp.Attributes) map[netip.Prefix]bgp.Attributes {
	least := new(uint32)
	leaving := make(map[netip.Prefix]bgp.Attributes, len(routes))
	for prefix, a := range routes {
		if !slices.Contains(a.Communities, gracefulShutdown) {
			a.Communities = append(slices.Clone(a.Communities), gracefulShutdown)
			slices.Sort(a.Communities)
		}
		a.LocalPref = least
		leaving[prefix] = a
	}
	return leaving
}

// remove withdraws all routes and closes the session.
func (p *peer) remove() {
	p.cancelAttempt()
	p.advertise(nil)
	p.close("the session is no longer configured")
}

// close ends the session and the BFD monitoring of its path.
func (p *peer) close(why string) {
	p.end(why)
	p.stopBFD()
}

// end ends the session.
func (p *peer) end(why string) {
	if p.session != nil {
		p.clearFailures(p.session.observed(), p.session.neighbor)
		p.session.close(why)
		routes, _ := p.session.advertisedCounts()
		p.updates += routes.updates
		p.notifications.add(p.session.observed().notifications)
		p.setSession(nil)
	}
}

// setSession replaces the session; nil stands for none.
func (p *peer) setSession(s *session) {
	p.mu.Lock()
	p.session = s
	p.mu.Unlock()
}

// recordError records an error if it differs from the last one.
func (p *peer) recordError(err error, kind reasonKind) {
	if err == nil || err.Error() == p.err.text {
		return
	}
	next := p.err.then(failure{reason: reason{text: err.Error(), kind: kind}, at: time.Now()})
	if next != p.err && !errors.Is(err, context.Canceled) {
		p.log.Info("BGP session", "err", err)
	}
	p.err = next
}

// recordLoss records why a session ended or could not be opened, even if the reason is the same as before.
func (p *peer) recordLoss(why reason) {
	next := p.err.then(failure{reason: why, at: time.Now()})
	if next.text != p.err.text {
		p.log.Info("BGP session", "err", why.text)
	}
	p.err = next
}
