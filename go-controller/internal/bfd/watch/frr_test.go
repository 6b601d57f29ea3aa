// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

// bfdd is an FRR.
type bfdd struct{ frr.Router }

func (s site) startBFDD(t *testing.T) bfdd { t.Helper(); return startBFDD(t, s.router, "") }

// startBFDD starts the FRR in a directory, by default that of frr.Prefix, in a namespace.
func startBFDD(t *testing.T, netns, prefix string) bfdd {
	t.Helper()
	contract.TestAsRoot(t)
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the user frr needs access
		t.Fatal(err)
	}
	d := bfdd{frr.Router{Name: netns, Dir: dir, Netns: netns, Prefix: prefix}}
	t.Cleanup(func() {
		if err := d.Kill(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// configure configures bfdd's end of a session.
func (b bfdd) configure(t *testing.T, peer string, lines ...string) {
	t.Helper()
	if err := b.Configure(t.Context(), append([]string{"bfd", " peer " + peer}, lines...)...); err != nil {
		t.Fatal(err)
	}
}

// timers returns the configuration of an interval for both directions.
func timers(interval time.Duration) []string {
	ms := strconv.FormatInt(interval.Milliseconds(), 10)
	return []string{"  receive-interval " + ms, "  transmit-interval " + ms, "  detect-multiplier 3"}
}

// bfddPeer is a session in the output of bfdd. Intervals are in milliseconds.
type bfddPeer struct {
	Peer           string
	Status         string
	Diagnostic     string
	RemoteTransmit int64 `json:"remote-transmit-interval"`
	RemoteReceive  int64 `json:"remote-receive-interval"`
}

// await waits until bfdd's end of a session is as wanted.
func (b bfdd) await(t *testing.T, peer, what string, wanted func(bfddPeer) bool) {
	t.Helper()
	await.NoError(t, fmt.Sprintf("bfdd's peer %s is %s", peer, what), func(ctx context.Context) error {
		var all []bfddPeer
		if err := b.Show(ctx, "show bfd peers json", &all); err != nil {
			return err
		}
		for _, p := range all {
			if p.Peer == peer && wanted(p) {
				return nil
			}
		}
		return fmt.Errorf("bfdd has %+v", all)
	})
}

const interval = 300 * time.Millisecond

// paths are the ways in which a BGP peer can be reached, each with bfdd's configuration of the peer.
func paths() map[string]struct {
	target Target
	bfdd   string
} {
	passive, far := every(interval), every(interval)
	passive.Passive, far.Multihop, far.MinimumTTL = true, true, 254
	link := netip.MustParseAddr("fe80::2%lan")
	return map[string]struct {
		target Target
		bfdd   string
	}{
		"IPv4":          {target("10.66.0.1", "10.66.0.101", every(interval)), "10.66.0.1 local-address 10.66.0.101"},
		"IPv6":          {target("fd66::1", "fd66::101", every(interval)), "fd66::1 local-address fd66::101"},
		"multihop IPv4": {target("10.67.0.1", "10.67.0.2", far), "10.67.0.1 multihop local-address 10.67.0.2"},
		"multihop IPv6": {target("fd67::1", "fd67::2", far), "fd67::1 multihop local-address fd67::2"},
		"link-local": {Target{Peer: link, Settings: every(interval)},
			"fe80::1 local-address fe80::2 interface lan"},
		"passive": {Target{Peer: netip.MustParseAddr("10.66.0.101"), Local: netip.MustParseAddr("10.66.0.6"),
			Interface: "lan", Settings: passive}, "10.66.0.6 interface lan"},
	}
}

// Sessions with bfdd come up on each path, and return after the segment was cut. Both ends detect that.
func TestSessionsWithFRR(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	d, w := n.startBFDD(t), n.run(t, n.node)
	for name, p := range paths() {
		d.configure(t, p.bfdd, timers(interval)...)
		w.Watch(name, p.target)
	}
	up := func() {
		t.Helper()
		for name, p := range paths() {
			w.await(t, name, "up with bfdd's intervals", func(s Session) bool {
				return s.State == bfd.Up && s.Err == nil && s.Interval == interval && s.Detection == 3*interval
			})
			peer, _, _ := strings.Cut(p.bfdd, " ")
			d.await(t, peer, "up with our interval", func(p bfddPeer) bool {
				return p.Status == "up" && p.RemoteTransmit == interval.Milliseconds()
			})
		}
	}
	up()
	n.cut(t)
	for name, p := range paths() {
		if p.target.Settings.Multihop {
			continue // the way by the hop is not cut
		}
		w.awaitState(t, name, bfd.Down)
		peer, _, _ := strings.Cut(p.bfdd, " ")
		d.await(t, peer, "down", func(p bfddPeer) bool { return p.Status == "down" })
	}
	n.restore(t)
	up()
}

// bfdd takes part in the poll sequences of both ends, and our end follows.
func TestFRRFollowsTimers(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	d, w := n.startBFDD(t), n.run(t, n.node)
	target, peer := onLAN(lan4, 2, every(interval))
	const configured = "10.66.0.2 local-address 10.66.0.102"
	d.configure(t, configured, timers(interval)...)
	w.Watch("peer", target)
	for _, ours := range []time.Duration{interval, 50 * time.Millisecond, time.Second} {
		target.Settings = every(ours)
		w.Watch("peer", target)
		d.await(t, peer, "up with our interval", func(p bfddPeer) bool {
			return p.Status == "up" && p.RemoteTransmit == ours.Milliseconds() && p.RemoteReceive == ours.Milliseconds()
		})
		want := max(ours, interval)
		w.await(t, "peer", "after the poll sequence", func(s Session) bool {
			return s.State == bfd.Up && s.Interval == want && s.Detection == 3*want
		})
	}
	d.configure(t, configured, timers(2*time.Second)...)
	w.await(t, "peer", "after bfdd's poll sequence", func(s Session) bool {
		return s.State == bfd.Up && s.Interval == 2*time.Second && s.Detection == 6*time.Second
	})
}

// Each end knows that the other has ended the session on purpose.
func TestFRRAndWeLeave(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	d, w := n.startBFDD(t), n.run(t, n.node)
	// The detection time is far longer than a busy machine stalls: a session that was down before does not say why it is.
	const patient = 100
	settings := every(interval)
	settings.Multiplier = patient
	target, peer := onLAN(lan6, 3, settings)
	const configured = "fd66::3 local-address fd66::103"
	d.configure(t, configured, append(timers(interval), fmt.Sprintf("  detect-multiplier %d", patient))...)
	w.Watch("peer", target)
	w.awaitState(t, "peer", bfd.Up)
	d.await(t, peer, "up", func(p bfddPeer) bool { return p.Status == "up" })

	w.Leave("peer")
	d.await(t, peer, "down because we reported it", func(p bfddPeer) bool {
		return p.Status == "down" && p.Diagnostic == "neighbor signaled session down"
	})
	w.awaitGone(t, "peer")
	w.Watch("peer", target)
	w.awaitState(t, "peer", bfd.Up)

	d.configure(t, configured, "  shutdown")
	w.await(t, "peer", "down because bfdd reported it", func(s Session) bool {
		return s.State == bfd.Down && s.Diagnostic == bfd.NeighborSignaledDown
	})
	d.configure(t, configured, "  no shutdown")
	w.awaitState(t, "peer", bfd.Up)
}
