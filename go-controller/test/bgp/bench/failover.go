// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/routes"
)

const (
	// flows is the number of flows, each of which sends a request every 10 ms.
	flows = 30
	// hold is the hold time of the sessions without BFD, which is the minimum (RFC 4271 section 4.2).
	hold = 3 * time.Second
	// settle is how long traffic runs before and after an event.
	settle = 500 * time.Millisecond
	// away is how long a killed daemon stays down: longer than BFD needs to detect it.
	away = time.Second
)

// failover is what clients behind the router observe when a node's link is lost, and when a node's daemon is killed
// and restarted. Gaps are the longest time without an answer in any of the UDP flows, for each repeat.
type failover struct {
	Repeats int `json:"failover_repeats,omitzero"`
	// BFD are the gaps with BFD, 3 x 100 ms, and a hold time of 90 s.
	BFD       []float64 `json:"failover_bfd_ms,omitzero"`
	BFDMedian float64   `json:"failover_bfd_ms_median,omitzero"`
	BFDP95    float64   `json:"failover_bfd_ms_p95,omitzero"`
	BFDMax    float64   `json:"failover_bfd_ms_max,omitzero"`
	// Hold are the gaps without BFD.
	HoldSeconds float64   `json:"failover_hold_s,omitzero"`
	Hold        []float64 `json:"failover_hold_ms,omitzero"`
	HoldMedian  float64   `json:"failover_hold_ms_median,omitzero"`
	HoldP95     float64   `json:"failover_hold_ms_p95,omitzero"`
	HoldMax     float64   `json:"failover_hold_ms_max,omitzero"`
	// Sent and Lost are the totals over all repeats in which a daemon with graceful restart and BFD was killed by
	// SIGKILL and restarted.
	Sent int  `json:"killed_probes_sent,omitzero"`
	Lost *int `json:"killed_probes_lost,omitzero"`
	// Routes counts how often a route, or a next hop of a route, was removed from the router's kernel.
	Routes *int64 `json:"killed_routes_lost,omitzero"`
}

// failovers runs the measurements in namespaces of its own.
func (s *site) failovers(ctx context.Context, f *failover, repeats int) (err error) {
	*f = failover{Repeats: repeats, HoldSeconds: hold.Seconds()}
	t := &trio{site: s}
	defer func() { err = errors.Join(err, t.remove(context.WithoutCancel(ctx))) }()
	if err := t.build(ctx); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := t.losses(watching); err != nil {
		return err
	}
	fast := speaking{GracefulRestart: true, BFD: &bgp.BFD{Receive: 100 * time.Millisecond,
		Transmit: 100 * time.Millisecond, Multiplier: 3}}
	if f.BFD, err = t.links(ctx, repeats, fast); err != nil {
		return err
	}
	f.BFDMedian, f.BFDP95, f.BFDMax = quantile(f.BFD, 0.5), quantile(f.BFD, 0.95), quantile(f.BFD, 1)
	if t.lost.Load() < int64(repeats)*shared {
		return fmt.Errorf("next hops were lost %d times while %d links of %d routes each were: what is counted means nothing",
			t.lost.Load(), repeats, shared)
	}
	if err := s.save(); err != nil {
		return err
	}
	s.logf("link lost, BFD 3 x 100 ms: gap median %.0f p95 %.0f max %.0f ms", f.BFDMedian, f.BFDP95, f.BFDMax)
	if f.Hold, err = t.links(ctx, repeats, speaking{GracefulRestart: true, Hold: hold}); err != nil {
		return err
	}
	f.HoldMedian, f.HoldP95, f.HoldMax = quantile(f.Hold, 0.5), quantile(f.Hold, 0.95), quantile(f.Hold, 1)
	if err := s.save(); err != nil {
		return err
	}
	s.logf("link lost, hold time %s: gap median %.0f p95 %.0f max %.0f ms", hold, f.HoldMedian, f.HoldP95, f.HoldMax)
	if err := t.kills(ctx, f, fast); err != nil {
		return err
	}
	s.logf("killed %d times: %d of %d probes lost, %d routes or next hops lost", repeats, *f.Lost, f.Sent, *f.Routes)
	return s.save()
}

// links disables the link of one node after the other, and restores it.
func (t *trio) links(ctx context.Context, repeats int, s speaking) (gaps []float64, err error) {
	if err := t.set(ctx, s); err != nil {
		return nil, err
	}
	for i := range repeats {
		turn := func(way string) error {
			return ip.Batch(ctx, t.netns("switch"), fmt.Sprintf("link set %s %s", port(i%nodes), way))
		}
		saw, err := t.during(ctx, func() error { return errors.Join(turn("down"), t.hops(ctx, nodes-1)) })
		if err != nil {
			return nil, err
		}
		gap := time.Duration(0)
		for _, f := range saw.Flows {
			gap = max(gap, f.Gap)
		}
		gaps = append(gaps, math.Round(gap.Seconds()*1e4)/10)
		if err := turn("up"); err != nil {
			return nil, err
		}
	}
	return gaps, t.unset(ctx)
}

// kills kills one daemon after the other, and restarts it.
func (t *trio) kills(ctx context.Context, f *failover, s speaking) error {
	if err := t.set(ctx, s); err != nil {
		return err
	}
	if err := t.ready(ctx); err != nil {
		return err
	}
	before := t.lost.Load()
	f.Lost, f.Routes = new(int), new(int64)
	for i := range f.Repeats {
		saw, err := t.during(ctx, func() error {
			p := t.speakers[i%nodes]
			if err := p.cmd.Process.Kill(); err != nil {
				return err
			}
			_ = p.cmd.Wait() // ended because it was killed
			t.speakers[i%nodes] = nil
			stay(ctx, away)
			return errors.Join(t.speak(ctx, i%nodes), t.speakers[i%nodes].says("1"), t.ready(ctx))
		})
		if err != nil {
			return err
		}
		f.Sent, *f.Lost, *f.Routes = f.Sent+saw.Sent, *f.Lost+saw.Lost, t.lost.Load()-before
		if err := t.save(); err != nil {
			return err
		}
	}
	*f.Routes = t.lost.Load() - before
	if t.missed.Load() {
		return errors.New("changes of the router's routes were missed: what is counted means nothing")
	}
	return t.unset(ctx)
}

// during runs clients while something happens.
func (t *trio) during(ctx context.Context, happen func() error) (saw probe.Result, err error) {
	if err := t.ready(ctx); err != nil {
		return saw, err
	}
	spec := probe.Spec{Kind: probe.UDPFlow, Target: netip.AddrPortFrom(vip(), echoPort), Count: flows}
	p, err := start(ctx, t.netns("client"), role{Probe: &spec})
	if err != nil {
		return saw, err
	}
	if err := p.says(probe.AnsweredLine); err != nil {
		return saw, errors.Join(err, p.end())
	}
	stay(ctx, settle)
	if err := happen(); err != nil {
		return saw, errors.Join(err, p.end())
	}
	stay(ctx, settle)
	if err := p.in.Close(); err != nil {
		return saw, err
	}
	if p.out.Scan() {
		err = json.Unmarshal(p.out.Bytes(), &saw)
	}
	if err := errors.Join(err, p.out.Err(), p.cmd.Wait()); err != nil {
		return saw, err
	}
	if len(saw.Backends) != nodes {
		return saw, fmt.Errorf("answers came from %v, want all of %d nodes", saw.Backends, nodes)
	}
	return saw, nil
}

// losses counts routes that the router's kernel deletes, or replaces by routes with fewer than all next hops, until
// the context ends.
func (t *trio) losses(ctx context.Context) error {
	return routes.Watch(ctx, t.router.Netns, func(c routes.Change, err error) {
		if err != nil {
			t.missed.Store(true)
		} else if strings.HasPrefix(c.Prefix.String(), "100.") && (c.Deleted || c.NextHops < nodes) {
			t.lost.Add(1)
		}
	})
}

// quantile returns the smallest value such that at least a fraction p of the values does not exceed it.
func quantile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// stay lets traffic run for a while.
func stay(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
