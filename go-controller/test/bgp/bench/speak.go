// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// speaking is the initial configuration of a speaker process. The process then reads numbers of routes, one per line,
// and writes the number of its Established sessions whenever that changes.
type speaking struct {
	Sources []netip.Addr
	Routes  int
	// Hold is the hold time, 0 for 90 s. GracefulRestart and BFD are as in bgp.Session.
	Hold            time.Duration
	GracefulRestart bool
	BFD             *bgp.BFD
}

func (r *speaking) run(ctx context.Context, in io.Reader, out io.Writer) error {
	var s *speaker.Speaker
	paths := watch.New(func(peer string, _ watch.Session) { s.Changed(peer) })
	events := make(chan struct{}, 1)
	s = speaker.New(speaker.Options{BFD: agent.Paths{Watcher: paths}, Notify: func() {
		select {
		case events <- struct{}{}:
		default:
		}
	}})
	s.Set(r.sessions(r.Routes))
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.Go(func() { report(ctx, s, events, out) })
	wait.Go(func() {
		defer cancel()
		if err := paths.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err) //nolint:errcheck // the error cannot be reported elsewhere
		}
	})
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var n int
			if _, err := fmt.Sscan(lines.Text(), &n); err != nil {
				return
			}
			s.Set(r.sessions(n))
		}
	}()
	return s.Run(ctx)
}

func report(ctx context.Context, s *speaker.Speaker, events <-chan struct{}, out io.Writer) {
	last := -1
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
		}
		established := 0
		for _, state := range s.States() {
			if state.Phase == speaker.Established {
				established++
			}
		}
		if established != last {
			last = established
			fmt.Fprintln(out, established)
		}
	}
}

func (r *speaking) sessions(routes int) []bgp.Session {
	hold := cmp.Or(r.Hold, 90*time.Second)
	all := make([]bgp.Session, 0, len(r.Sources))
	for _, source := range r.Sources {
		c := bgp.Session{Peer: source.String(), BFD: r.BFD, Routes: make(map[netip.Prefix]bgp.Attributes, routes)}
		c.Neighbor = bgp.Neighbor{
			MyASN: nodeASN, PeerASN: routerASN, Addr: routerAddr(), Source: source, Port: 179, RouterID: source,
			Hold: hold, Keepalive: hold / 3, Connect: 2 * time.Second, IPv4: true, GracefulRestart: r.GracefulRestart,
		}
		for i := range routes {
			c.Routes[prefix(i)] = bgp.Attributes{NextHop: source}
		}
		all = append(all, c)
	}
	return all
}

// prefix returns the i-th advertised prefix of 100.64.0.0/10 (RFC 6598).
func prefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(64 + i>>16), byte(i >> 8), byte(i)}), 32)
}
