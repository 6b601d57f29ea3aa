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

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	api "github.com/osrg/gobgp/v3/api"
	gobgp "github.com/osrg/gobgp/v3/pkg/server"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// settleInterval is how often it is checked whether gobgp's state machine is idle.
const settleInterval = 5 * time.Millisecond

// server is a gobgp server. It has one session, or is idle until the next one.
type server struct {
	*gobgp.BgpServer
	startupLock *startupLock
	// session is the one that log messages refer to.
	session atomic.Pointer[session]
}

func newServer(g *startupLock, log klog.Logger) *server {
	s := &server{startupLock: g}
	s.BgpServer = gobgp.NewBgpServer(gobgp.LoggerOption(&logger{log, s}), gobgp.TimingHookOption(timingHook{s}))
	g.register(s)
	go s.Serve()
	return s
}

// session is a started server and its connection.
type session struct {
	target
	server     *server
	connection *connection
	// advertised contains the routes that gobgp accepted. It sends those of the families of the session. This may be the
	// map of wanted routes and must not be modified.
	advertised map[netip.Prefix]bgp.Attributes
	// updates counts the routes that were sent and withdrawn since the session was Established, beginning with all
	// routes. wasEstablished means that it was Established.
	updates        uint64
	wasEstablished bool
	// missing is the number of wanted routes that are not advertised as they are wanted.
	missing int
	// pending is the error of routes that could not be advertised at the start.
	pending error
	opened  time.Time
}

// open starts a session. The connection to a router is attached to it later. Routes are added before the peer, so that
// the peer receives all of them before the End-of-RIB and keeps them through a restart. wake is called, and must not
// block, when the state of the connection has changed.
func (s *server) open(ctx context.Context, t target, routes map[netip.Prefix]bgp.Attributes, wake func()) (*session,
	error) {
	l, err := newConnection(t.neighbor, wake)
	if err != nil {
		return nil, err
	}
	c := &session{target: t, server: s, connection: l, opened: time.Now()}
	s.session.Store(c)
	if err := c.start(ctx, routes); err != nil {
		l.close()
		return nil, errors.Join(fmt.Errorf("open a session with %s: %w", t.addr, err), c.stop(ctx))
	}
	go l.run(t.neighbor)
	return c, nil
}

// awaitsRouter reports whether the router has not accepted a connection yet.
func (c *session) awaitsRouter() bool { return c.connection.observed().local == netip.Addr{} }

// stale reports whether a session has waited so long that gobgp is about to give up.
func (c *session) stale() bool { return c.awaitsRouter() && time.Since(c.opened) >= maxSessionWait }

func (c *session) start(ctx context.Context, routes map[netip.Prefix]bgp.Attributes) error {
	s := c.server
	if err := s.startupLock.runExclusive(ctx, s, func() error {
		return s.StartBgp(ctx, &api.StartBgpRequest{Global: global(c.neighbor)})
	}); err != nil {
		return err
	}
	policy, assignment := importPolicy()
	if err := s.AddPolicy(ctx, &api.AddPolicyRequest{Policy: policy}); err != nil {
		return err
	}
	if err := s.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: assignment}); err != nil {
		return err
	}
	c.pending = c.advertise(ctx, routes) // The other routes were added.
	return s.AddPeer(ctx, &api.AddPeerRequest{Peer: neighbor(c.neighbor, c.connection.listener.port())})
}

// advertise updates the advertised routes. It sends one UPDATE per route that differs, and none if there is no
// difference. A route that can't be advertised is omitted, and the error names it. The next call retries what failed.
func (c *session) advertise(ctx context.Context, routes map[netip.Prefix]bgp.Attributes) error {
	saw := c.connection.observed()
	if !c.wasEstablished && saw.phase == Established {
		c.wasEstablished = true
		for prefix := range c.advertised {
			if saw.families.carries(prefix) {
				c.updates++
			}
		}
	}
	var errs []error
	failed := map[netip.Prefix]bool{}
	did := func(prefix netip.Prefix, err error) {
		if err != nil {
			errs, failed[prefix] = append(errs, err), true
		} else if c.wasEstablished && saw.families.carries(prefix) {
			c.updates++
		}
	}
	c.missing = 0
	for prefix := range c.advertised {
		if _, ok := routes[prefix]; !ok {
			did(prefix, c.withdraw(ctx, prefix))
		}
	}
	for prefix, a := range routes {
		if old, ok := c.advertised[prefix]; !ok || !old.Equal(a) {
			err := c.add(ctx, prefix, a)
			if did(prefix, err); err != nil {
				c.missing++
			}
		}
	}
	c.advertised = result(c.advertised, routes, failed)
	return errors.Join(errs...)
}

// result returns the routes that are advertised after a change from was to want in which some prefixes failed.
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
	if _, there := c.advertised[prefix]; err != nil && there {
		// The route that the peer has is not wanted any more either.
		if gone := c.withdraw(ctx, prefix); gone != nil {
			return errors.Join(err, gone)
		}
		c.advertised = maps.Clone(c.advertised)
		delete(c.advertised, prefix)
	}
	if err != nil {
		return err
	}
	if _, err := c.server.AddPath(ctx, &api.AddPathRequest{Path: path}); err != nil {
		return fmt.Errorf("route to %s: %w", prefix, err)
	}
	return nil
}

// close ends the session after all pending updates were sent, or after 4*cease if the router does not accept them. If
// the session is Established, it sends a Cease, Administrative Shutdown (RFC 4486).
func (c *session) close(ctx context.Context, why string) error {
	c.sendCease(ctx, why)
	c.connection.limitWrites(cease)
	err := c.stop(ctx)
	c.connection.end(cease)
	return err
}

func (c *session) stop(ctx context.Context) error {
	defer c.server.session.Store(nil)
	c.settle(ctx)
	if err := c.server.StopBgp(ctx, &api.StopBgpRequest{}); err != nil {
		return fmt.Errorf("close the session with %s: %w", c.addr, err)
	}
	return nil
}

// settle waits until gobgp's state machine is idle and stays so, or for cease. StopBgp resets the configuration from
// which the state machine makes its OPEN, without a lock: it must not do that at the same time.
func (c *session) settle(ctx context.Context) {
	if c.server.DisablePeer(ctx, &api.DisablePeerRequest{Address: loopback().String()}) != nil {
		return // The peer was not added.
	}
	idle := func(ctx context.Context) (bool, error) {
		is := false
		err := c.server.ListPeer(ctx, &api.ListPeerRequest{Address: loopback().String()}, func(p *api.Peer) {
			is = p.State.SessionState == api.PeerState_IDLE && p.State.AdminState == api.PeerState_DOWN
		})
		return is, err
	}
	// What is left after cease ends with StopBgp.
	_ = wait.PollUntilContextTimeout(ctx, settleInterval, cease, true, idle)
}

// sendCease sends a Cease to a peer whose session is Established, and waits a moment until it was sent. StopBgp would
// also send one, but immediately, which interferes with what the session still reads.
func (c *session) sendCease(ctx context.Context, why string) {
	if c.connection.observed().phase != Established || c.server.DisablePeer(ctx,
		&api.DisablePeerRequest{Address: loopback().String(), Communication: why}) != nil {
		return
	}
	timer := time.NewTimer(cease)
	defer timer.Stop()
	select {
	case <-c.connection.done:
	case <-timer.C:
	}
}
