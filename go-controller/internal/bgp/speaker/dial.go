// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// dialTimeout limits an attempt. A router that has not answered the fourth SYN will not answer.
	dialTimeout = 16 * time.Second
	// maxRetryAfterBFD is the longest interval between two attempts after BFD detected that the path failed.
	maxRetryAfterBFD = time.Second
	// networkControl is the traffic class CS6 (RFC 4271 appendix E, RFC 4594 section 3.1).
	networkControl = 48 << 2
	// closed is the reason if a router closes a new connection, for example because it does not have this node as a
	// neighbor.
	closed = "the peer closed the connection before the session was opened: check that this node is configured as a " +
		"neighbor"
)

// target is the endpoint of a session.
type target struct {
	neighbor bgp.Neighbor
	// addr is the address to dial. It has a zone if it is link-local.
	addr netip.Addr
	// local is our link-local address where the peer is unnumbered.
	local netip.Addr
}

// sameSession reports whether a session with t can continue as one with o.
func (t target) sameSession(o target) bool {
	return t.addr == o.addr && t.local == o.local && t.neighbor.SameSession(o.neighbor)
}

// retryInterval returns the interval between two attempts. It is random, so that the nodes do not dial the same router
// all at once.
func retryInterval(most time.Duration) time.Duration { return most - rand.N(max(most/2, 1)) }

// pace returns the interval until the next attempt.
func (p *peer) pace(n bgp.Neighbor) time.Duration { return retryInterval(p.connectTime(n)) }

// connectTime returns the longest interval between two attempts: a short one for a peer whose path failed according to
// BFD, so that it is dialed soon after the path is back.
func (p *peer) connectTime(n bgp.Neighbor) time.Duration {
	if p.pathFailed {
		return min(n.Connect, maxRetryAfterBFD)
	}
	return n.Connect
}

// attempt is a connection being established.
type attempt struct {
	target target
	cancel context.CancelFunc
	// result receives the outcome.
	result chan outcome
}

type outcome struct {
	conn *net.TCPConn
	// ending are connections of other processes that had not ended before.
	ending []uint64
	err    error
}

// startDial dials the target with a time limit, unless another speaker of the node has a session with it or gets one.
func (p *peer) startDial(ctx context.Context, t target, most time.Duration) *attempt {
	ctx, cancel := context.WithTimeout(ctx, min(most, dialTimeout))
	a := &attempt{target: t, cancel: cancel, result: make(chan outcome, 1)}
	known, gaveWay := &p.speaker.sockets, p.gaveWay
	go func() {
		defer cancel()
		var o outcome
		if o.ending, o.err = collision(t, known); o.err == nil && gaveWay.over(source(t), t) {
			o.err = errCollision{gaveWay.local, t.addr, true}
		}
		if o.err == nil {
			o.conn, o.err = dial(ctx, t, known)
		}
		a.result <- o
		signal(p.wake)
	}()
	return a
}

// abandon cancels an attempt and discards its outcome.
func (a *attempt) abandon() {
	a.cancel()
	go func() {
		if o := <-a.result; o.conn != nil {
			_ = o.conn.Close() // Nothing was sent on it.
		}
	}()
}

// connect starts the session when the peer has accepted the connection. It dials the peer when an attempt is due, the
// first time at once. It returns the time until the next attempt.
func (p *peer) connect(ctx context.Context, to target, routes map[netip.Prefix]bgp.Attributes) time.Duration {
	if p.attempt == nil {
		if wait := max(time.Until(p.retry), time.Until(p.notBefore)); wait > 0 {
			return wait
		}
		wait := p.pace(to.neighbor)
		p.retry = time.Now().Add(wait)
		if p.failedDial.to != to.addr {
			p.failedDial = failedDial{to.addr, time.Now()}
		}
		p.attempt = p.startDial(ctx, to, wait)
		return 0
	}
	select {
	case o := <-p.attempt.result:
		p.attempt = nil
		if o.err == nil {
			p.ending = o.ending
			p.setSession(newSession(to, o.conn, localOf(o.conn, to.addr.Zone()), routes, func() { signal(p.wake) }))
			go p.session.run(to.neighbor, hostname())
			return 0
		}
		if c := (errCollision{}); errors.As(o.err, &c) && !c.wants {
			p.gaveWay = contention{}
		}
		p.recordLoss(dialReason(o.err))
		return max(time.Until(p.retry), 1)
	default:
		return 0
	}
}

// cancelAttempt cancels the current attempt to connect.
func (p *peer) cancelAttempt() {
	if p.attempt != nil {
		p.attempt.abandon()
		p.attempt = nil
	}
}

// dial connects to a router.
func dial(ctx context.Context, t target, known *sockets) (*net.TCPConn, error) {
	n := t.neighbor
	var cookie uint64 // of the last socket: net may try several
	failedToConnect := func() { known.ended(cookie, time.Now()) }
	d := net.Dialer{ControlContext: func(_ context.Context, _, _ string, c syscall.RawConn) error {
		failedToConnect()
		var err error
		if failed := c.Control(func(fd uintptr) {
			var unknown error
			cookie, unknown = known.add(int(fd))
			err = errors.Join(options(int(fd), t), unknown)
		}); failed != nil {
			return failed
		}
		return err
	}}
	addr, err := withInterfaceIndex(t.addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if n.Source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(zoned(n.Source, addr.Zone()), 0))
	}
	conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, n.Port).String())
	if err != nil {
		failedToConnect()
	}
	if errors.Is(err, unix.ECONNRESET) { // The peer had accepted the connection.
		return nil, errClosed{}
	}
	if err != nil {
		text, about := hint(t, err)
		return nil, &dialError{fmt.Errorf("connect: %w%s", named(err, t.addr.Zone()), text), about}
	}
	tcp := conn.(*net.TCPConn)
	if err := limitUnacknowledged(tcp, n.Hold); err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	return tcp, nil
}

// limitUnacknowledged lets the kernel end a connection whose peer accepts no data for the configured hold time (RFC
// 5482), if that is not 0. The kernel takes our writes long after the peer has stopped reading, so that their deadline
// does not expire. The limit is set on an established connection, because it would also limit the time to connect.
func limitUnacknowledged(conn *net.TCPConn, hold time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(hold.Milliseconds()))
	}); failed != nil {
		return failed
	}
	return os.NewSyscallError("setsockopt TCP_USER_TIMEOUT", err)
}

// errClosed is the error of a connection that the router closed at once.
type errClosed struct{}

func (errClosed) Error() string { return closed }

// dialError is why a router was not connected.
type dialError struct {
	error
	about v1alpha1.BGPErrorReason
}

// dialReason returns the reason why a router was not connected.
func dialReason(err error) reason {
	if errors.As(err, &errClosed{}) {
		return reason{text: closed, kind: unexplained}
	}
	if errors.As(err, &errCollision{}) {
		return reason{text: err.Error(), kind: detected}
	}
	why := reason{text: err.Error(), kind: unreachable}
	if d := (*dialError)(nil); errors.As(err, &d) {
		why.about = d.about
	}
	return why
}

// noPassword is a hint for a peer that has a password although we do not: it ignores what is not signed (RFC 2385).
const noPassword = ", and that the peer has no password (TCP MD5) for this node: it would not answer without it"

// hint returns a possible reason why a peer does not answer, and what the error is about.
func hint(t target, err error) (string, v1alpha1.BGPErrorReason) {
	n := t.neighbor
	if hop := offLinkNextHop(t); hop.IsValid() {
		return fmt.Sprintf(": peerAddress %s is not on a link of this node, which has a route to it by way of %s: an "+
			"external peer "+
			"beyond the link needs ebgpMultiHop or multihopTTL", t.addr, hop), v1alpha1.BGPErrorNotOnLink
	}
	if errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return "", v1alpha1.BGPErrorUnreachable
	}
	var slow net.Error
	if !errors.As(err, &slow) || !slow.Timeout() {
		return "", ""
	}
	const about = v1alpha1.BGPErrorNoAnswer
	switch {
	case n.Password != "":
		// The kernel ignores an unsigned RST, so that a router without BGP does not refuse the connection either.
		return ": check that both sides use the same password, and that the peer runs BGP", about
	case n.SecurityHops > 0:
		return ": check that the peer has TTL security enabled and is within " + world.Count(n.SecurityHops, "hop") +
			noPassword, about
	}
	return ": check the address, firewalls on the way" + noPassword, about
}

// offLinkNextHop returns the next hop to a peer that is configured as on the link but is not. It returns the zero Addr
// if there is none.
func offLinkNextHop(t target) netip.Addr {
	if ttl(t.neighbor) != 1 || t.addr.Zone() != "" {
		return netip.Addr{}
	}
	routes, err := netlink.RouteGet(t.addr.AsSlice())
	if err != nil || len(routes) == 0 { // The attempt reports the same error.
		return netip.Addr{}
	}
	hop, _ := netip.AddrFromSlice(routes[0].Gw)
	return hop.Unmap()
}

// options sets the options of a socket before it connects.
func options(fd int, t target) error {
	level, class, hops, least := unix.IPPROTO_IP, unix.IP_TOS, unix.IP_TTL, unix.IP_MINTTL
	if t.addr.Is6() {
		level, class, hops, least = unix.IPPROTO_IPV6, unix.IPV6_TCLASS, unix.IPV6_UNICAST_HOPS, unix.IPV6_MINHOPCOUNT
	}
	if err := unix.SetsockoptInt(fd, level, class, networkControl); err != nil {
		return fmt.Errorf("send with traffic class %#x: %w", networkControl, err)
	}
	n := t.neighbor
	if ttl := ttl(n); ttl != 0 {
		if err := unix.SetsockoptInt(fd, level, hops, ttl); err != nil {
			return fmt.Errorf("send with TTL %d: %w", ttl, err)
		}
	}
	if n.SecurityHops > 0 {
		if err := unix.SetsockoptInt(fd, level, least, maxTTL+1-int(n.SecurityHops)); err != nil {
			return fmt.Errorf("set the minimum TTL for %s: %w", world.Count(n.SecurityHops, "hop"), err)
		}
	}
	if n.Password != "" {
		if err := unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, signature(t.addr, n.Password)); err != nil {
			return fmt.Errorf("sign with the password: %w", err)
		}
	}
	return nil
}

// ttl returns the TTL of the packets we send, 0 for the kernel's default. By default, an external peer is on the link.
func ttl(n bgp.Neighbor) int {
	switch {
	case n.SecurityHops > 0:
		return maxTTL
	case internal(n):
		return 0
	case n.TTL > 0:
		return int(n.TTL)
	default:
		return 1
	}
}

// signature returns a key of TCP MD5 (RFC 2385) in the kernel's format. The address is at the same offset as in a
// sockaddr.
func signature(a netip.Addr, password string) *unix.TCPMD5Sig {
	s := &unix.TCPMD5Sig{Keylen: uint16(len(password))}
	if a.Is4() {
		s.Addr.Family = unix.AF_INET
		copy(s.Addr.Data[2:], a.AsSlice())
	} else {
		s.Addr.Family = unix.AF_INET6
		copy(s.Addr.Data[6:], a.AsSlice())
	}
	copy(s.Key[:], password)
	return s
}
