// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// dialLongest bounds an attempt: who has not answered the fourth SYN does not answer.
	dialLongest = 16 * time.Second
	// cutPace is the longest time between two attempts after BFD saw the path fail.
	cutPace = time.Second
	// settling is how long a router has to close the connection again, or to say something: one that does
	// not know us closes at once, and is not worth a BGP server.
	settling = 200 * time.Millisecond
	// closed is what it then is.
	closed = "the peer closed the connection instead of opening the session: it may not know this node as a neighbor"
)

// target is whom a session is with.
type target struct {
	neighbor bgp.Neighbor
	// addr is dialled. It has a zone if it is link-local.
	addr netip.Addr
	// local is our link-local address where the peer is unnumbered.
	local netip.Addr
}

// alike reports whether a session with t can go on as one with o.
func (t target) alike(o target) bool {
	return t.addr == o.addr && t.local == o.local && t.neighbor.Alike(o.neighbor)
}

// pace is the time between two attempts: other nodes dial the same router, and not all at once.
func pace(most time.Duration) time.Duration { return most - rand.N(max(most/2, 1)) }

// pace of a peer whose path BFD saw failing is quick: it is dialled as soon as the path is back.
func (p *peer) pace(n bgp.Neighbor) time.Duration {
	if p.cut {
		return pace(min(n.Connect, cutPace))
	}
	return pace(n.Connect)
}

// attempt is a connection in the making.
type attempt struct {
	target target
	cancel context.CancelFunc
	// came has the outcome when there is one.
	came chan outcome
}

type outcome struct {
	conn *net.TCPConn
	err  error
}

// try dials for at most a time, and wakes when there is an outcome.
func try(ctx context.Context, t target, most time.Duration, wake func()) *attempt {
	ctx, cancel := context.WithTimeout(ctx, min(most, dialLongest))
	a := &attempt{target: t, cancel: cancel, came: make(chan outcome, 1)}
	go func() {
		defer cancel()
		conn, err := dial(ctx, t)
		a.came <- outcome{conn, err}
		wake()
	}()
	return a
}

// abandon ends an attempt whose outcome nobody wants.
func (a *attempt) abandon() {
	a.cancel()
	go func() {
		if o := <-a.came; o.conn != nil {
			_ = o.conn.Close() // Nothing was said on it.
		}
	}()
}

// connect attaches the connection to the session when the peer has taken it, and dials the peer when it is
// time to: the first time at once.
func (p *peer) connect(ctx context.Context, to target) time.Duration {
	if p.attempt == nil {
		if wait := time.Until(p.retry); wait > 0 {
			return wait
		}
		wait := p.pace(to.neighbor)
		p.retry = time.Now().Add(wait)
		if p.vain.to != to.addr {
			p.vain = vain{to.addr, time.Now()}
		}
		p.attempt = try(ctx, to, wait, func() { notice(p.wake) })
		return 0
	}
	select {
	case o := <-p.attempt.came:
		p.attempt = nil
		if o.err == nil {
			p.session.line.attach(o.conn)
			return 0
		}
		p.lost(o.err.Error())
		return max(time.Until(p.retry), 1)
	default:
		return 0
	}
}

// abandon ends an attempt to connect.
func (p *peer) abandon() {
	if p.attempt != nil {
		p.attempt.abandon()
		p.attempt = nil
	}
}

func dial(ctx context.Context, t target) (*net.TCPConn, error) {
	n := t.neighbor
	d := net.Dialer{ControlContext: func(_ context.Context, _, _ string, c syscall.RawConn) error {
		var err error
		if failed := c.Control(func(fd uintptr) { err = options(int(fd), t) }); failed != nil {
			return failed
		}
		return err
	}}
	if n.Source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(zoned(n.Source, t.addr.Zone()), 0))
	}
	conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(t.addr, n.Port).String())
	if errors.Is(err, unix.ECONNRESET) { // It took the connection before.
		return nil, errors.New(closed)
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w%s", err, hint(t, err))
	}
	if err := settle(conn.(*net.TCPConn)); err != nil {
		_ = conn.Close() // Nothing was said on it.
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// settle waits for what a router does first, and reads nothing of it.
func settle(conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(settling)); err != nil {
		return err
	}
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, _, failed = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	if err == nil && (n == 0 || failed != nil) {
		return errors.New(closed)
	}
	return conn.SetReadDeadline(time.Time{}) // An error is that it was silent.
}

// hint is what may be the reason that a peer does not answer.
func hint(t target, err error) string {
	n := t.neighbor
	if hop := beyond(t); hop.IsValid() {
		return fmt.Sprintf(": peerAddress %s is not on a link of this node, which has a route to it by way of %s: an external peer "+
			"beyond the link needs ebgpMultiHop or multihopTTL", t.addr, hop)
	}
	var slow net.Error
	if !errors.As(err, &slow) || !slow.Timeout() {
		return ""
	}
	switch {
	case n.Password != "":
		return ": do both sides have the same password?"
	case n.SecurityHops > 0:
		return fmt.Sprintf(": does the peer have TTL security too, and is it within %d hops?", n.SecurityHops)
	}
	return ""
}

// beyond is the next hop to a peer that is to be on the link and is not, the zero Addr if there is none.
func beyond(t target) netip.Addr {
	if ttl(t.neighbor) != 1 || t.addr.Zone() != "" {
		return netip.Addr{}
	}
	routes, err := netlink.RouteGet(t.addr.AsSlice())
	if err != nil || len(routes) == 0 { // The error of the attempt says as much.
		return netip.Addr{}
	}
	hop, _ := netip.AddrFromSlice(routes[0].Gw)
	return hop.Unmap()
}

// options sets those of a socket before it connects.
func options(fd int, t target) error {
	level, hops, least := unix.IPPROTO_IP, unix.IP_TTL, unix.IP_MINTTL
	if t.addr.Is6() {
		level, hops, least = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, unix.IPV6_MINHOPCOUNT
	}
	n := t.neighbor
	if ttl := ttl(n); ttl != 0 {
		if err := unix.SetsockoptInt(fd, level, hops, ttl); err != nil {
			return fmt.Errorf("send with TTL %d: %w", ttl, err)
		}
	}
	if n.SecurityHops > 0 {
		if err := unix.SetsockoptInt(fd, level, least, maxTTL+1-int(n.SecurityHops)); err != nil {
			return fmt.Errorf("take nothing from beyond %d hops: %w", n.SecurityHops, err)
		}
	}
	if n.Password != "" {
		if err := unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, signature(t.addr, n.Password)); err != nil {
			return fmt.Errorf("sign with the password: %w", err)
		}
	}
	return nil
}

// ttl is that of what we send, 0 for the kernel's: an external peer is on the link if nothing else is said.
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

// signature is a key of TCP MD5 (RFC 2385) as the kernel takes it: the address lies where a sockaddr has it.
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
