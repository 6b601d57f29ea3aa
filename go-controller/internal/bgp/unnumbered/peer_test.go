// SPDX-License-Identifier: Apache-2.0

package unnumbered

import (
	"net/netip"
	"testing"
	"time"
)

var (
	local  = netip.MustParseAddr("fe80::99")
	router = netip.MustParseAddr("fe80::1")
	none   = netip.Addr{}
	start  = time.Unix(1_700_000_000, 0)
)

// simulate simulates a link for a time: a router that advertises itself every 10 s, and a host that does so at an
// interval, from a new address each time or from several in turn. accepts means that the router accepts sessions. It
// returns how long the router was the peer, and the longest time that it was not.
func simulate(p *peer, lasts, every time.Duration, addresses int, accepts bool) (total, longest time.Duration) {
	const tick = 100 * time.Millisecond
	without := time.Duration(0)
	session := func() netip.Addr {
		if accepts && p.Peer == router {
			return router
		}
		return none
	}
	for at := time.Duration(0); at < lasts; at += tick {
		now := start.Add(at)
		if at%every == 0 {
			n := int(at / every)
			if addresses > 0 {
				n %= addresses
			}
			host := netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: 2, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
			p.receive(local, host, now, session())
		}
		if at%seldom == 7*time.Second {
			p.receive(local, router, now, session())
		}
		if p.Peer == router {
			total, without = total+tick, 0
		} else {
			without += tick
			longest = max(longest, without)
		}
	}
	return total, longest
}

// A host that sends advertisements from ever new addresses does not keep out the router whose session is down.
func TestHostDoesNotTakeTheLinkFromTheRouter(t *testing.T) {
	const lasts = 4 * time.Hour
	for _, every := range []time.Duration{seldom, time.Second, 100 * time.Millisecond} {
		for _, addresses := range []int{0, 1, 5, 1000} {
			p := &peer{}
			p.receive(local, router, start, none)
			p.receive(local, router, start, router)
			total, longest := simulate(p, lasts, every, addresses, false)
			if longest > silence+seldom || total < lasts*7/8 {
				t.Errorf("an advertisement every %s from %d addresses: the router is the peer for %s of %s, and not for %s",
					every, addresses, total, lasts, longest)
			}
		}
	}
}

// The same host was there before the router, with which there has been no session yet. It is tried as well.
func TestRouterIsTriedAmongNewSenders(t *testing.T) {
	for _, addresses := range []int{0, 1, 5} {
		p := &peer{}
		_, longest := simulate(p, time.Hour, time.Second, addresses, true)
		if p.Peer != router || longest > time.Duration(addresses+2)*(silence+seldom) {
			t.Errorf("%d addresses: the router is not the peer for %s", addresses, longest)
		}
	}
}

// A session is not given up because its router is silent, but a router that is gone is replaced.
func TestSilentRouterInASession(t *testing.T) {
	other := netip.MustParseAddr("fe80::2")
	p := &peer{}
	p.receive(local, router, start, none)
	for at := time.Duration(0); at <= 2*patience; at += time.Second {
		if p.receive(local, other, start.Add(at), router) {
			t.Fatalf("the router is replaced after %s", at)
		}
	}
	if !p.silent(start.Add(2 * patience)) {
		t.Error("the router is not asked for an advertisement")
	}
	if !p.receive(local, other, start.Add(2*patience+silence+1), none) {
		t.Error("the router is not replaced")
	}
}

// A router that is replaced by another one, while a third host on the link has advertisements of its own.
func TestRouterThatIsGoneIsReplaced(t *testing.T) {
	other := netip.MustParseAddr("fe80::2")
	p := &peer{}
	p.receive(local, router, start, none)
	p.receive(local, other, start, router)
	if p.receive(local, other, start.Add(silence), none) || !p.receive(local, other, start.Add(silence+1), none) {
		t.Errorf("the peer is %s", p.Peer)
	}
}

// An interface that is opened again does not end a session, and the router is preferred without one.
func TestRouterIsKnownAfterReopening(t *testing.T) {
	other := netip.MustParseAddr("fe80::2")
	for _, session := range []netip.Addr{router, none} {
		p := &peer{}
		p.receive(local, router, start, none)
		p.receive(local, router, start, router)
		p.reopened()
		if now := start.Add(seldom); !p.receive(local, other, now, session) || p.Peer != router || p.Local != local {
			t.Errorf("session with %s: the peer is %+v", session, p.Link)
		}
	}
}

// The session that is about to be closed proves nothing about its successor.
func TestSessionWithAnotherRouterProvesNothing(t *testing.T) {
	other := netip.MustParseAddr("fe80::2")
	p := &peer{}
	p.receive(local, router, start, router)
	p.receive(local, other, start.Add(patience+1), none)
	if p.receive(local, other, start.Add(patience+2), router); p.Peer != other || p.proven != router {
		t.Errorf("the peer is %s, and %s is preferred", p.Peer, p.proven)
	}
}
