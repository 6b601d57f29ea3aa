// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/unnumbered"
)

// The router of a session is known to its discovery from the moment in which the session is Established. Its state is
// published later, when routes have been sent, and another host would be the peer meanwhile.
func TestDiscoveryKnowsTheRouterOfASessionAtOnce(t *testing.T) {
	p := newPeer("tor", nil)
	router := target{neighbor: bgp.Neighbor{Interface: "eth1"}, addr: netip.MustParseAddr("fe80::1%eth1")}
	s := newSession(router, nil, netip.Addr{}, nil, func() {})
	p.setSession(s)
	if got := p.router(); got.IsValid() {
		t.Errorf("router %s of a session that is not Established", got)
	}
	s.change(func() { s.openSent, s.keepaliveSent, s.keepaliveReceived = true, true, true })
	if got := p.router(); got != router.addr {
		t.Errorf("router %s, want %s; the published state is %s", got, router.addr, p.State().Phase)
	}
	s.change(func() { s.ends = true })
	if got := p.router(); got.IsValid() {
		t.Errorf("router %s of a session that ends", got)
	}
}

// ending is a context that has not ended yet. check is called when it is asked.
type ending struct {
	context.Context
	check func()
}

func (e ending) Err() error {
	e.check()
	return nil
}

// The result of a discovery that has been replaced meanwhile is discarded: it is of another interface.
func TestReplacedDiscoveryReportsNothing(t *testing.T) {
	p := newPeer("tor", nil)
	ended, end := context.WithCancel(t.Context())
	end()
	p.setDiscovered(ended, found{link: unnumbered.Link{Peer: netip.MustParseAddr("fe80::1%eth1")}})
	if p.found.link.Peer.IsValid() {
		t.Errorf("found %s after the end", p.found.link.Peer)
	}
	p.setDiscovered(ending{t.Context(), func() {
		if p.mu.TryLock() {
			p.mu.Unlock()
			t.Error("the discovery may be replaced before its result is recorded")
		}
	}}, found{})
}
