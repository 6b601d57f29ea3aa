// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// roleVariable makes a process the speaker that is measured: its value is a role as JSON.
const roleVariable = "SLB_BENCH_BGP_SPEAKER"

// role is what a speaker is told at its start. It then reads numbers of routes, one a line, and writes how many of its
// sessions are Established whenever that changes.
type role struct {
	Sources []netip.Addr
	Routes  int
}

func speak(ctx context.Context, config string, in io.Reader, out io.Writer) error {
	var r role
	if err := json.Unmarshal([]byte(config), &r); err != nil {
		return err
	}
	news := make(chan struct{}, 1)
	s := speaker.New(speaker.Options{Notify: func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}})
	s.Set(r.sessions(r.Routes))
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.Go(func() { report(ctx, s, news, out) })
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

func report(ctx context.Context, s *speaker.Speaker, news <-chan struct{}, out io.Writer) {
	last := -1
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
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

func (r role) sessions(routes int) []bgp.Session {
	all := make([]bgp.Session, 0, len(r.Sources))
	for _, source := range r.Sources {
		c := bgp.Session{Peer: source.String(), Routes: make(map[netip.Prefix]bgp.Attributes, routes)}
		c.Neighbor = bgp.Neighbor{
			MyASN: nodeASN, PeerASN: routerASN, Addr: routerAddr(), Source: source, Port: 179, RouterID: source,
			Hold: 90 * time.Second, Keepalive: 30 * time.Second, Connect: 2 * time.Second, IPv4: true,
		}
		for i := range routes {
			c.Routes[prefix(i)] = bgp.Attributes{NextHop: source}
		}
		all = append(all, c)
	}
	return all
}

// prefix is the i-th that is told, of 100.64.0.0/10 (RFC 6598).
func prefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(64 + i>>16), byte(i >> 8), byte(i)}), 32)
}
