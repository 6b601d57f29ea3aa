// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	api "github.com/osrg/gobgp/v3/api"
	gobgp "github.com/osrg/gobgp/v3/pkg/server"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// server is a gobgp server: it has one session, or none and waits for the next.
type server struct {
	*gobgp.BgpServer
	gate *gate
	// session is whom the log is about.
	session atomic.Pointer[session]
}

func newServer(g *gate, log klog.Logger) *server {
	s := &server{gate: g}
	s.BgpServer = gobgp.NewBgpServer(gobgp.LoggerOption(&logger{log, s}), gobgp.TimingHookOption(turnstile{s}))
	g.enter(s)
	go s.Serve()
	return s
}

// session is a server at work.
type session struct {
	server   *server
	neighbor bgp.Neighbor
	addr     netip.Addr
	// local is our link-local address where the peer is unnumbered.
	local netip.Addr
	told  map[netip.Prefix]bgp.Attributes
	// updates are the routes that were told and withdrawn since the peer hears: all of them at first.
	updates uint64
	hears   bool
	// unwatch ends what calls observe.
	unwatch context.CancelFunc

	mu   sync.Mutex
	seen seen
	wake func()
}

// seen is what gobgp said about a session.
type seen struct {
	phase Phase
	since time.Time
	// lasted is how long the session was Established that is lost; zero as long as none is.
	lasted time.Duration
	asn    uint32
	local  netip.Addr
	// detail is of a NOTIFICATION, and is the error if the session ends next.
	detail string
	err    failure
}

// failure is an error and when it came up.
type failure struct {
	text string
	at   time.Time
}

// open starts a session in the order that keeps routes through a restart: the peer hears all
// routes before the End-of-RIB. wake is called, without blocking, when there is news in look.
func (s *server) open(ctx context.Context, n bgp.Neighbor, addr, local netip.Addr, routes map[netip.Prefix]bgp.Attributes, wake func()) (*session, error) {
	c := &session{server: s, neighbor: n, addr: addr, local: local, wake: wake, unwatch: func() {}}
	c.seen.phase, c.seen.since = Idle, time.Now()
	s.session.Store(c)
	if err := c.start(ctx, routes); err != nil {
		return nil, errors.Join(fmt.Errorf("open a session with %s: %w", addr, err), c.close(ctx, ""))
	}
	return c, nil
}

func (c *session) start(ctx context.Context, routes map[netip.Prefix]bgp.Attributes) error {
	s := c.server
	if err := s.gate.alone(ctx, s, func() error {
		return s.StartBgp(ctx, &api.StartBgpRequest{Global: global(c.neighbor)})
	}); err != nil {
		return err
	}
	policy, assignment := ours()
	if err := s.AddPolicy(ctx, &api.AddPolicyRequest{Policy: policy}); err != nil {
		return err
	}
	if err := s.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: assignment}); err != nil {
		return err
	}
	if err := c.tell(ctx, routes); err != nil { // Of single routes, and the others are in.
		c.failed(err.Error())
	}
	ctx, c.unwatch = context.WithCancel(ctx)
	if err := s.WatchEvent(ctx, &api.WatchEventRequest{Peer: &api.WatchEventRequest_Peer{}}, c.observe); err != nil {
		return err
	}
	return s.AddPeer(ctx, &api.AddPeerRequest{Peer: neighbor(c.neighbor, c.addr)})
}

// tell makes routes what the peer is told: an UPDATE a route that differs, and none if none does.
// A route that can't be told is left out, and the error names it.
func (c *session) tell(ctx context.Context, routes map[netip.Prefix]bgp.Attributes) error {
	if !c.hears && c.look().phase == Established {
		c.hears, c.updates = true, uint64(len(c.told))
	}
	var errs []error
	did := func(err error) {
		if err != nil {
			errs = append(errs, err)
		} else if c.hears {
			c.updates++
		}
	}
	for prefix := range c.told {
		if _, ok := routes[prefix]; ok {
			continue
		}
		path, err := withdrawal(prefix)
		if err == nil {
			err = c.server.DeletePath(ctx, &api.DeletePathRequest{Path: path})
		}
		did(err)
	}
	for prefix, a := range routes {
		if old, ok := c.told[prefix]; ok && old.Equal(a) {
			continue
		}
		did(c.add(ctx, prefix, a))
	}
	c.told = routes
	return errors.Join(errs...)
}

func (c *session) add(ctx context.Context, prefix netip.Prefix, a bgp.Attributes) error {
	if !a.NextHop.IsValid() {
		a.NextHop = c.local
	}
	path, err := route(c.neighbor, prefix, a)
	if err != nil {
		return err
	}
	if _, err := c.server.AddPath(ctx, &api.AddPathRequest{Path: path}); err != nil {
		return fmt.Errorf("route to %s: %w", prefix, err)
	}
	return nil
}

// close ends the session, after all that was told: with a Cease, Administrative Shutdown
// (RFC 4486), if it is Established.
func (c *session) close(ctx context.Context, why string) error {
	c.bid(ctx, why)
	c.unwatch()
	c.server.session.Store(nil)
	if err := c.server.StopBgp(ctx, &api.StopBgpRequest{}); err != nil {
		return fmt.Errorf("close the session with %s: %w", c.addr, err)
	}
	return nil
}

// bid says goodbye to a peer that listens, and waits for a moment until that is said. StopBgp
// would do it by itself, but at once, and in the way of what the session still reads.
func (c *session) bid(ctx context.Context, why string) {
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	over := make(chan struct{}, 1)
	c.mu.Lock()
	established := c.seen.phase == Established
	c.wake = func() {
		if c.look().phase != Established {
			notice(over)
		}
	}
	c.mu.Unlock()
	if !established || c.server.DisablePeer(ctx, &api.DisablePeerRequest{Address: c.addr.String(), Communication: why}) != nil {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// look is what is known now.
func (c *session) look() seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// observe takes an event of gobgp.
func (c *session) observe(r *api.WatchEventResponse) {
	state := r.GetPeer().GetPeer().GetState()
	if state == nil {
		return
	}
	local, _ := netip.ParseAddr(r.GetPeer().GetPeer().GetTransport().GetLocalAddress())
	now, next := time.Now(), phase(state.SessionState)
	c.mu.Lock()
	if c.seen.phase != next {
		if c.seen.phase == Established {
			c.seen.lasted = max(now.Sub(c.seen.since), 1)
		}
		c.seen.phase, c.seen.since = next, now
	}
	c.seen.asn, c.seen.local = 0, netip.Addr{}
	if next == OpenConfirm || next == Established {
		c.seen.asn = state.PeerAsn
	}
	if next == Established {
		c.seen.local = local.Unmap()
	}
	wake := c.wake
	c.mu.Unlock()
	wake()
}

// failed notes an error. It may be called from gobgp's log, so it waits for nothing.
func (c *session) failed(text string) {
	c.mu.Lock()
	c.seen.err = failure{text, time.Now()}
	wake := c.wake
	c.mu.Unlock()
	wake()
}

// notified notes the detail of an error to come.
func (c *session) notified(text string) {
	c.mu.Lock()
	c.seen.detail = text
	c.mu.Unlock()
}

// ended notes why a session, or an attempt at one, ended.
func (c *session) ended(text string) {
	c.mu.Lock()
	if c.seen.detail != "" {
		text, c.seen.detail = c.seen.detail, ""
	}
	c.mu.Unlock()
	c.failed(text)
}
