// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// event is something that happens to the gateway that hosts the addresses.
type event struct {
	name string
	// Events with long set are repeated half as often. Events with many set are also measured with more addresses.
	long, many bool
	// before prepares the event.
	before func(context.Context, *site) error
	happen func(context.Context, *lab.Lab, string) error
	undo   func(context.Context, *lab.Lab, string) error
}

func events() []event {
	return []event{
		{
			name: "kill", many: true,
			happen: func(_ context.Context, l *lab.Lab, node string) error { return l.Kill(node) },
			undo:   func(ctx context.Context, l *lab.Lab, node string) error { return l.Restore(ctx, node) },
		},
		{name: "links", happen: lift((*lab.Lab).LinkDown), undo: lift((*lab.Lab).LinkUp)},
		{name: "planned", before: func(ctx context.Context, s *site) error {
			return s.replacePod(ctx)
		}, happen: lift((*lab.Lab).Drain), undo: lift((*lab.Lab).Undrain)},
		{name: "underlay", long: true, happen: lift((*lab.Lab).UnderlayDown), undo: lift((*lab.Lab).LinkUp)},
		{name: "uplink", long: true, happen: lift((*lab.Lab).UplinkDown), undo: lift((*lab.Lab).LinkUp)},
	}
}

// lift reorders the arguments of a method of the lab.
func lift(f func(*lab.Lab, context.Context, string) error) func(context.Context, *lab.Lab, string) error {
	return func(ctx context.Context, l *lab.Lab, node string) error { return f(l, ctx, node) }
}

func names() []string {
	var out []string
	for _, e := range events() {
		out = append(out, e.name)
	}
	return out
}

const (
	// flows is the number of UDP flows, and of TCP connections.
	flows = 24
	// lead is how long traffic runs before an event. tail is how long it runs at least after another gateway has taken
	// over the address.
	lead, tail = 500 * time.Millisecond, time.Second
	// backoff is the factor of the time that traffic continues after an event: a connection without an answer for a
	// time t retransmits after another t at the latest, and backoff is twice that.
	backoff = 2
	// firstSource and lastSource bound the source ports of clients. The kernel assigns ephemeral ports above them.
	firstSource, lastSource = 1024, 32767 - flows
)

// measure repeats an event over each family. It saves the report after each repeat.
func (s *site) measure(ctx context.Context, e event, repeats int, r *report, save func() error) error {
	if e.long {
		repeats /= 2
	}
	for i, family := range []string{"IPv4", "IPv6"} {
		f := figure{Event: e.name, Family: family, VIPs: s.vips}
		at := len(r.Figures)
		for n := range repeats {
			results, err := s.once(ctx, e, s.web[i])
			if err != nil {
				return fmt.Errorf("repeat %d over %s: %w", n+1, family, err)
			}
			f.add(results)
			r.Figures = append(r.Figures[:at], f)
			if err := save(); err != nil {
				return err
			}
		}
		fmt.Fprintln(s.progress, f) //nolint:errcheck // the error cannot be reported elsewhere
	}
	return nil
}

// once triggers an event while clients send traffic, and reverts it.
func (s *site) once(ctx context.Context, e event, vip netip.Addr) (_ []probe.Result, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if e.before != nil {
		if err := e.before(ctx, s); err != nil {
			return nil, err
		}
	}
	// The first packet over each tunnel is lost. Send traffic over all of them once.
	if _, err := s.lab.Probe(ctx, "client", lead, s.streams(vip)...); err != nil {
		return nil, err
	}
	port, node, err := s.activeGateway(ctx)
	if err != nil || node == "" {
		return nil, fmt.Errorf("no gateway has port %q: %w", port, err)
	}
	p, err := s.lab.StartProbe(ctx, "client", s.streams(vip)...)
	if err != nil {
		return nil, err
	}
	stay(ctx, lead)
	happened := time.Now()
	if err := e.happen(ctx, s.lab, node); err != nil {
		return nil, err
	}
	await := s.eventually(ctx, "another gateway than "+node, func(ctx context.Context) (bool, error) {
		now, err := s.lab.ActiveNode(ctx, port)
		return now != "" && now != node, err
	})
	stay(ctx, max(tail, backoff*time.Since(happened)))
	results, err := p.Finish()
	if await != nil {
		return nil, await
	}
	if err != nil {
		return nil, err
	}
	return results, e.undo(ctx, s.lab, node)
}

// streams returns the flows and connections to an address. Their source ports were not used recently: a flow from a
// port used a minute ago still goes to the pod of that time, which may have been replaced.
func (s *site) streams(vip netip.Addr) []probe.Spec {
	if s.source < firstSource || s.source > lastSource {
		s.source = firstSource
	}
	from := s.source
	s.source += flows
	return []probe.Spec{
		{Kind: probe.UDPFlow, Target: netip.AddrPortFrom(vip, echoPort), Count: flows, From: from},
		{Kind: probe.TCPLong, Target: netip.AddrPortFrom(vip, httpPort), Count: flows, From: from},
	}
}

// stay lets traffic continue for the time d.
func stay(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
