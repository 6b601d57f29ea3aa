// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// watched is BFD that notes which paths it watches.
type watched struct{ paths []Path }

func (w *watched) Watch(_ string, p Path) { w.paths = append(w.paths, p) }
func (*watched) Leave(string)             {}
func (*watched) Session(string) Liveness  { return Liveness{} }

// Without a session, BFD starts only after a peer has been dialed without success for some time, at the same address.
func TestBFDStartsLateWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		p := newPeer("tor", New(Options{BFD: w}))
		p.log = testLog(t)
		to := target{neighbor: victim(), addr: netip.MustParseAddr("192.0.2.2")}
		to.neighbor.Source = netip.MustParseAddr("192.0.2.1")
		want := &bgp.Session{Peer: "tor", Neighbor: to.neighbor, BFD: &bgp.BFD{Transmit: time.Second}}
		expect := func(when string, wait time.Duration, paths ...Path) {
			t.Helper()
			if got := p.startBFD(want, to); got != wait || !slices.Equal(w.paths, paths) {
				t.Errorf("%s: due in %s, want %s; paths %v, want %v", when, got, wait, w.paths, paths)
			}
		}
		expect("before the first attempt", 0)
		p.failedDial = failedDial{to: netip.MustParseAddr("192.0.2.3"), since: time.Now()}
		<-time.After(bfdFirstAfter)
		expect("after attempts at another address", 0)
		p.failedDial = failedDial{to: to.addr, since: time.Now()}
		expect("after a failure", bfdFirstAfter)
		<-time.After(bfdFirstAfter - 1)
		expect("just before it starts", 1)
		<-time.After(1)
		path := Path{Local: to.neighbor.Source, Peer: to.addr, BFD: *want.BFD}
		expect("when it starts", 0, path)
		expect("after it has started", 0, path)
	})
}
