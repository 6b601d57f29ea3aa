// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
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

// session is a server at work for a line.
type session struct {
	target
	server *server
	line   *line
	// told is what gobgp took. It may be what the peer was wanted to be told: read only.
	told map[netip.Prefix]bgp.Attributes
	// updates are the routes that were told and withdrawn since the peer hears: all of them at first.
	updates uint64
	hears   bool
	// untold is the error of routes that could not be told at the start.
	untold error
	opened time.Time
}

// failure is an error and when it came up.
type failure struct {
	text string
	at   time.Time
}

// open starts a session whose line the connection with a router is attached to later, in the order that keeps
// routes through a restart: the peer hears all routes before the End-of-RIB. wake is called, without blocking,
// when there is news of the line.
func (s *server) open(ctx context.Context, t target, routes map[netip.Prefix]bgp.Attributes, wake func()) (*session, error) {
	l, err := newLine(t.neighbor, wake)
	if err != nil {
		return nil, err
	}
	c := &session{target: t, server: s, line: l, opened: time.Now()}
	s.session.Store(c)
	if err := c.start(ctx, routes); err != nil {
		l.close()
		return nil, errors.Join(fmt.Errorf("open a session with %s: %w", t.addr, err), c.stop(ctx))
	}
	go l.run(t.neighbor)
	return c, nil
}

// waits reports whether the router has not taken a connection yet.
func (c *session) waits() bool { return c.line.look().local == netip.Addr{} }

// stale reports whether a session has waited for so long that gobgp is about to give up.
func (c *session) stale() bool { return c.waits() && time.Since(c.opened) >= warmest }

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
	c.untold = c.tell(ctx, routes) // Of single routes, and the others are in.
	return s.AddPeer(ctx, &api.AddPeerRequest{Peer: neighbor(c.neighbor, c.line.door.port())})
}

// tell makes routes what the peer is told: an UPDATE a route that differs, and none if none does.
// A route that can't be told is left out, and the error names it. What failed is tried again by the next call.
func (c *session) tell(ctx context.Context, routes map[netip.Prefix]bgp.Attributes) error {
	if !c.hears && c.line.look().phase == Established {
		c.hears, c.updates = true, uint64(len(c.told))
	}
	var errs []error
	failed := map[netip.Prefix]bool{}
	did := func(prefix netip.Prefix, err error) {
		if err != nil {
			errs, failed[prefix] = append(errs, err), true
		} else if c.hears {
			c.updates++
		}
	}
	for prefix := range c.told {
		if _, ok := routes[prefix]; !ok {
			did(prefix, c.withdraw(ctx, prefix))
		}
	}
	for prefix, a := range routes {
		if old, ok := c.told[prefix]; !ok || !old.Equal(a) {
			did(prefix, c.add(ctx, prefix, a))
		}
	}
	c.told = result(c.told, routes, failed)
	return errors.Join(errs...)
}

// result is what a peer is told after a change from was to want of which some prefixes failed.
func result(was, want map[netip.Prefix]bgp.Attributes, failed map[netip.Prefix]bool) map[netip.Prefix]bgp.Attributes {
	if len(failed) == 0 {
		return want
	}
	is := make(map[netip.Prefix]bgp.Attributes, len(want)+len(failed))
	maps.Copy(is, want)
	for prefix := range failed {
		if old, ok := was[prefix]; ok {
			is[prefix] = old
		} else {
			delete(is, prefix)
		}
	}
	return is
}

func (c *session) withdraw(ctx context.Context, prefix netip.Prefix) error {
	path, err := withdrawal(prefix)
	if err != nil {
		return err
	}
	if err := c.server.DeletePath(ctx, &api.DeletePathRequest{Path: path}); err != nil {
		return fmt.Errorf("withdraw the route to %s: %w", prefix, err)
	}
	return nil
}

func (c *session) add(ctx context.Context, prefix netip.Prefix, a bgp.Attributes) error {
	if !a.NextHop.IsValid() {
		a.NextHop = c.local
	}
	path, err := route(c.neighbor, prefix, a)
	if _, there := c.told[prefix]; err != nil && there {
		// What the peer has is not wanted any more either.
		if gone := c.withdraw(ctx, prefix); gone != nil {
			return errors.Join(err, gone)
		}
		c.told = maps.Clone(c.told)
		delete(c.told, prefix)
	}
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
	err := c.stop(ctx)
	c.line.end(goodbye)
	return err
}

func (c *session) stop(ctx context.Context) error {
	defer c.server.session.Store(nil)
	if err := c.server.StopBgp(ctx, &api.StopBgpRequest{}); err != nil {
		return fmt.Errorf("close the session with %s: %w", c.addr, err)
	}
	return nil
}

// bid says goodbye to a peer that listens, and waits for a moment until that is said. StopBgp
// would do it by itself, but at once, and in the way of what the session still reads.
func (c *session) bid(ctx context.Context, why string) {
	if c.line.look().phase != Established || c.server.DisablePeer(ctx, &api.DisablePeerRequest{Address: inside().String(), Communication: why}) != nil {
		return
	}
	timer := time.NewTimer(goodbye)
	defer timer.Stop()
	select {
	case <-c.line.done:
	case <-timer.C:
	}
}
