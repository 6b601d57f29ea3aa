// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

// beside are the sessions of a node on which both FRR's bfdd and a Watcher run, by name: the number of the address that
// the Watcher's session has, that of bfdd's, and whether they are multihop.
func beside() map[string]struct {
	format       string
	ours, theirs int
	settings     bfd.Settings
} {
	far := every(interval)
	far.Multihop, far.MinimumTTL = true, 250
	return map[string]struct {
		format       string
		ours, theirs int
		settings     bfd.Settings
	}{
		"IPv4":          {lan4, 1, 2, every(interval)},
		"IPv6":          {lan6, 1, 2, every(interval)},
		"multihop IPv4": {lan4, 3, 4, far},
		"multihop IPv6": {lan6, 3, 4, far},
	}
}

// bfddPeerOf is bfdd's configuration of a session between two addresses.
func bfddPeerOf(peer, local string, multihop bool) string {
	if multihop {
		peer += " multihop"
	}
	return peer + " local-address " + local
}

// A bfdd on the node and our sessions get their packets, whichever starts first, and bfdd starts again when it was
// killed, with each FRR of this machine. The peers of both are those of one router.
func TestBesideFRROfTheNode(t *testing.T) {
	t.Parallel()
	for _, prefix := range frr.Prefixes() {
		for name, first := range map[string]bool{"bfdd first": true, "bfdd second": false} {
			t.Run(prefix+" "+name, func(t *testing.T) {
				t.Parallel()
				testBeside(t, prefix, first)
			})
		}
	}
}

func testBeside(t *testing.T, prefix string, first bool) {
	t.Helper()
	n := newSite(t)
	router, w := startBFDD(t, n.router, prefix), n.run(t, n.node)
	for _, s := range beside() {
		for _, number := range []int{s.ours, s.theirs} {
			router.configure(t, bfddPeerOf(fmt.Sprintf(s.format, number), fmt.Sprintf(s.format, 100+number),
				s.settings.Multihop), timers(interval)...)
		}
	}
	ours := func() {
		t.Helper()
		for name, s := range beside() {
			target, _ := onLAN(s.format, s.ours, s.settings)
			w.Watch(name, target)
		}
	}
	var node bfdd
	if first {
		node = startBFDD(t, n.node, prefix)
		ours()
	} else {
		ours()
		besideUp(t, w)
		node = startBFDD(t, n.node, prefix)
	}
	node.watchTheirs(t)
	node.awaitTheirs(t)
	besideUp(t, w)

	if err := node.Kill(frr.BFDD); err != nil {
		t.Fatal(err)
	}
	for _, s := range beside() {
		router.await(t, fmt.Sprintf(s.format, s.theirs), "down, as its peer is dead", func(p bfddPeer) bool {
			return p.Status == "down"
		})
	}
	besideUp(t, w)
	if err := node.StartDaemon(context.WithoutCancel(t.Context()), frr.BFDD); err != nil {
		t.Fatal(err)
	}
	node.watchTheirs(t)
	node.awaitTheirs(t)
	besideUp(t, w)
}

func besideUp(t *testing.T, w watcher) {
	t.Helper()
	for name := range beside() {
		w.await(t, name, "up", func(s Session) bool { return s.State == bfd.Up && s.Err == nil })
	}
}

// watchTheirs configures the sessions of the bfdd on the node.
func (b bfdd) watchTheirs(t *testing.T) {
	t.Helper()
	for _, s := range beside() {
		b.configure(t, bfddPeerOf(fmt.Sprintf(s.format, 100+s.theirs), fmt.Sprintf(s.format, s.theirs),
			s.settings.Multihop), timers(interval)...)
	}
}

// awaitTheirs waits until the sessions of the bfdd on the node are up, which takes packets in both directions.
func (b bfdd) awaitTheirs(t *testing.T) {
	t.Helper()
	for _, s := range beside() {
		b.await(t, fmt.Sprintf(s.format, 100+s.theirs), "up", func(p bfddPeer) bool {
			return p.Status == "up" && p.RemoteTransmit == interval.Milliseconds()
		})
	}
}

// The node answers the peers of established sessions with no ICMP port unreachable, although no socket takes the port.
func TestPeerGetsNoPortUnreachable(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	node, router := n.run(t, n.node), n.run(t, n.router)
	for name, format := range map[string]string{"IPv4": lan4, "IPv6": lan6} {
		target, _ := onLAN(format, 1, every(50*time.Millisecond))
		node.Watch(name, target)
		target.Peer, target.Local = target.Local, target.Peer
		router.Watch(name, target)
	}
	for _, name := range []string{"IPv4", "IPv6"} {
		node.awaitState(t, name, bfd.Up)
	}
	for _, udp := range []string{"Udp", "Udp6"} {
		refused, dropped := n.counter(t, udp+"NoPorts"), n.counter(t, udp+"RcvbufErrors")
		await.True(t, udp+": packets at the sink", func() bool {
			return n.counter(t, udp+"RcvbufErrors") >= dropped+5
		})
		if now := n.counter(t, udp+"NoPorts"); now != refused {
			t.Errorf("%s: %d packets without a socket", udp, now-refused)
		}
	}
}

// counter returns a counter of the node's kernel (nstat(8)).
func (s site) counter(t *testing.T, name string) int {
	t.Helper()
	fields := strings.Fields(run(t, "ip", "netns", "exec", s.node, "nstat", "-asz", name))
	at := slices.Index(fields, name)
	if at < 0 || at+1 >= len(fields) {
		t.Fatalf("nstat %s: %v", name, fields)
	}
	value, err := strconv.Atoi(fields[at+1])
	if err != nil {
		t.Fatal(err)
	}
	return value
}
