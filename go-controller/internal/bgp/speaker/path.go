// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// strictAfter is how long a peer is dialled in vain until BFD begins without a session: the router may hold BGP until BFD is up.
const strictAfter = 5 * time.Second

// follow drops the session when BFD sees its path fail (RFC 5882 section 4.2), and dials at once when BFD is up where
// there is no session.
func (p *peer) follow(ctx context.Context) {
	if p.path == nil {
		return
	}
	was, is := p.heard, p.speaker.options.BFD.Session(p.name)
	p.heard = is
	waits := p.session == nil || p.session.waits()
	if is.Failures > was.Failures && !waits {
		p.cut, p.retry = true, time.Time{}
		p.session.line.cut(bfdDown())
		p.lost(bfdDown().text)
		p.end(ctx, "")
	}
	if is.Up && !was.Up && (p.cut || waits) {
		p.retry = time.Time{}
		p.abandon()
	}
}

// aftermath is how long the peer may still hear BFD of an earlier process of ours that was
// killed. If that ends while the new session is Established, the peer drops it with all its
// routes; before, it only misses one that restarts gracefully. It is the detection time
// (RFC 5880 section 6.8.4) as far as we know it.
func aftermath(want *bgp.Session) time.Duration {
	if want.BFD == nil || !want.Neighbor.GracefulRestart {
		return 0
	}
	return (time.Duration(want.BFD.Multiplier) + 1) * max(want.BFD.Transmit, want.BFD.Receive)
}

func (p *peer) unwatch() {
	if p.path != nil {
		p.path, p.heard, p.cut = nil, Liveness{}, false
		p.speaker.options.BFD.Leave(p.name)
	}
}

// vain is the address that has been dialled without getting a session, and since when.
type vain struct {
	to    netip.Addr
	since time.Time
}

// watch lets BFD watch the peer from when a session is Established, or from strictAfter on, and until the peer is
// another one or none is wanted: only so it sees that a path is back. It returns when it is to be called again
// without news; 0 for never.
func (p *peer) watch(want *bgp.Session, to target) time.Duration {
	if p.speaker.options.BFD == nil {
		return 0
	}
	if want.BFD == nil {
		p.unwatch()
		return 0
	}
	path := Path{Peer: to.addr, Interface: to.addr.Zone(), BFD: *want.BFD}
	if p.session != nil && p.session.line.look().phase == Established {
		p.cut, p.vain = false, vain{}
		path.Local, path.Peer, path.Interface = p.session.line.look().local, p.session.addr, p.session.addr.Zone()
	} else if p.path != nil && p.path.Peer == to.addr {
		path.Local = p.path.Local
	} else {
		if p.vain.to != to.addr {
			return 0
		}
		if wait := time.Until(p.vain.since.Add(strictAfter)); wait > 0 {
			return wait
		}
		if path.Local = source(to); !path.Local.IsValid() {
			return strictAfter
		}
	}
	if p.path == nil || *p.path != path {
		other := p.path == nil || p.path.Local != path.Local || p.path.Peer != path.Peer
		p.path = &path
		p.speaker.options.BFD.Watch(p.name, path)
		if other { // It may be one that was left a moment ago: its old failures are none of this session's.
			p.heard = Liveness{Failures: p.speaker.options.BFD.Session(p.name).Failures}
		}
	}
	return 0
}

// source is our address in a session that is not there yet: the one that is configured, or that the kernel would
// take. It is the zero Addr where the kernel has no route.
func source(to target) netip.Addr {
	if to.neighbor.Source.IsValid() {
		return zoned(to.neighbor.Source, to.addr.Zone())
	}
	// To connect a UDP socket sends nothing.
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.addr, to.neighbor.Port)))
	if err != nil {
		return netip.Addr{}
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}
