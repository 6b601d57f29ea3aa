// SPDX-License-Identifier: Apache-2.0

package unnumbered

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const (
	// silence is how long a host must have been silent to be gone. It is also how long a host is the peer before another
	// one replaces it, although it is not silent, unless there is a session with it.
	silence = 3 * seldom
	// patience is how long the router of the last session is the peer before another host replaces it, although it is
	// not silent.
	patience = 10 * silence
	// maxSenders limits the hosts that are remembered. An advertisement every second from a new address each removes none
	// that sends one every minute.
	maxSenders = 64
)

// Link is a link between two routers: their link-local addresses, with the name of the interface as zone.
type Link struct{ Local, Peer netip.Addr }

// peer is the router on a link. Any host on the link can send advertisements, from any number of addresses. Therefore
// the senders take turns until there is a session with one of them, and the router of the last session has every other
// turn. In a session the router stays the peer, however long it sends no advertisements: the session ends by its hold
// timer, or without one by TCP (internal/bgp/speaker). It has no clock and does no I/O.
type peer struct {
	Link
	// since is when it became the peer, or when there was last a session with it. heard is when its last advertisement
	// was received.
	since, heard time.Time
	// proven is the router with which there was a session last.
	proven  netip.Addr
	senders []sender
}

// sender is a host that sends advertisements.
type sender struct {
	addr  netip.Addr
	heard time.Time
	// waits is since when it has not been the peer. repeated means that it has sent more than one advertisement.
	waits    time.Time
	repeated bool
}

// reopened forgets the peer, but not the senders and the router of the last session, because the interface was opened
// again.
func (p *peer) reopened() { p.Link = Link{} }

// silent reports whether the peer is to be asked for an advertisement.
func (p *peer) silent(now time.Time) bool { return !p.Peer.IsValid() || now.Sub(p.heard) > silence }

// receive records an advertisement, and reports whether the peer changes. session is the router with which
// there is a session; the zero Addr if there is none.
func (p *peer) receive(local, from netip.Addr, now time.Time, session netip.Addr) bool {
	if session.IsValid() {
		p.proven = session
	}
	if session == p.Peer {
		p.since = now
	}
	if from == p.Peer {
		p.heard = now
	}
	p.record(from, now)
	next := p.next(now)
	switch {
	case !p.Peer.IsValid() && session.IsValid():
		// A session that works is kept. If its router was not heard for long, that is noticed now.
		p.Link, p.since = Link{Local: local, Peer: session}, now
		return true
	case next == nil, session.IsValid() && session == p.Peer, p.Peer.IsValid() && !p.replaceable(now):
		return false
	}
	if i := p.find(p.Peer); i >= 0 {
		p.senders[i].waits = now
	}
	p.Link, p.since, p.heard = Link{Local: local, Peer: next.addr}, now, next.heard
	return true
}

// replaceable reports whether another host may replace the peer.
func (p *peer) replaceable(now time.Time) bool {
	turn := silence
	if p.Peer == p.proven && !p.silent(now) {
		turn = patience
	}
	return now.Sub(p.since) > turn
}

func (p *peer) find(a netip.Addr) int {
	return slices.IndexFunc(p.senders, func(s sender) bool { return s.addr == a })
}

// record records the sender of an advertisement. If there is no room, it replaces another one: that was heard only
// once, if there is any, and the longest ago.
func (p *peer) record(from netip.Addr, now time.Time) {
	if i := p.find(from); i >= 0 {
		p.senders[i].heard, p.senders[i].repeated = now, true
		return
	}
	s := sender{addr: from, heard: now, waits: now}
	if len(p.senders) < maxSenders {
		p.senders = append(p.senders, s)
		return
	}
	least := -1
	for i, o := range p.senders {
		if o.addr != p.Peer && o.addr != p.proven && (least < 0 || o.before(p.senders[least])) {
			least = i
		}
	}
	p.senders[least] = s
}

// before reports whether a sender is forgotten before another one.
func (s sender) before(o sender) bool {
	if s.repeated != o.repeated {
		return !s.repeated
	}
	return s.heard.Before(o.heard)
}

// next returns the sender whose turn comes after that of the peer, nil if the others are silent: the router of the last
// session, those heard more than once, the others, and among equals that which waits longest.
func (p *peer) next(now time.Time) (next *sender) {
	for i := range p.senders {
		s := &p.senders[i]
		if s.addr != p.Peer && now.Sub(s.heard) <= silence && (next == nil || p.compare(*s, *next) < 0) {
			next = s
		}
	}
	return next
}

func (p *peer) compare(a, b sender) int {
	rank := func(s sender) int {
		switch {
		case s.addr == p.proven:
			return 0
		case s.repeated:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.waits.Compare(b.waits))
}
