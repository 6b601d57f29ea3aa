// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

// rounds measures the times of a figure in the given number of runs.
func rounds(ctx context.Context, k *kernel, runs, prefixes int, set func(n int) error) (figure, error) {
	var apply, withdraw []time.Duration
	once := func(n int) (time.Duration, error) {
		began := time.Now()
		if err := set(n); err != nil {
			return 0, err
		}
		at, err := k.reach(ctx, n)
		return at.Sub(began), err
	}
	for range runs {
		there, err := once(prefixes)
		if err != nil {
			return figure{}, err
		}
		gone, err := once(0)
		if err != nil {
			return figure{}, err
		}
		apply, withdraw = append(apply, there), append(withdraw, gone)
	}
	return figure{Prefixes: prefixes, Apply: summary(apply), Withdraw: summary(withdraw)}, nil
}

func summary(all []time.Duration) seconds {
	slices.Sort(all)
	return seconds{Median: all[len(all)/2].Seconds(), Max: all[len(all)-1].Seconds()}
}

func (s *site) measure(ctx context.Context, r *result, sessions int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k, err := s.watch(ctx)
	if err != nil {
		return err
	}
	for _, prefixes := range []int{1_000, 10_000} {
		f, err := s.speaker(ctx, k, r.Runs, prefixes)
		if err != nil {
			return err
		}
		s.logf("speaker, %d prefixes: applied in %.3f s, withdrawn in %.3f s, %.0f MB", prefixes, f.Apply.Median,
			f.Withdraw.Median, f.RSS)
		r.Speaker = append(r.Speaker, f)
		if err := s.save(); err != nil {
			return err
		}
	}
	for _, prefixes := range []int{1_000, 10_000} {
		f, err := s.frr(ctx, k, r.Runs, prefixes)
		if err != nil {
			return err
		}
		s.logf("FRR as the speaker, %d prefixes: applied in %.3f s, withdrawn in %.3f s", prefixes, f.Apply.Median,
			f.Withdraw.Median)
		r.FRR = append(r.FRR, f)
		if err := s.save(); err != nil {
			return err
		}
	}
	if r.Crowd, err = s.crowd(ctx, sessions, 1_000); err != nil {
		return err
	}
	s.logf("%d sessions with %d prefixes: in the kernel %.1f s after the start, %.0f MB", sessions, r.Crowd.Prefixes,
		r.Crowd.Seconds, r.Crowd.RSS)
	return s.save()
}

func (s *site) speaker(ctx context.Context, k *kernel, runs, prefixes int) (f figure, err error) {
	p, err := start(ctx, s.node(), role{Speaker: &speaking{Sources: []netip.Addr{source(0)}}})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.says("1"); err != nil {
		return f, err
	}
	set := func(n int) error { _, err := fmt.Fprintln(p.in, n); return err }
	if f, err = rounds(ctx, k, runs, prefixes, set); err != nil {
		return f, err
	}
	// Apply the routes once more to measure the memory that holding them needs.
	if err := set(prefixes); err != nil {
		return f, err
	}
	if _, err := k.reach(ctx, prefixes); err != nil {
		return f, err
	}
	if f.RSS, f.RSSPeak, err = p.memory(); err != nil {
		return f, err
	}
	if err := set(0); err != nil {
		return f, err
	}
	_, err = k.reach(ctx, 0)
	return f, err
}

// frr measures FRR on the node in place of the speaker.
func (s *site) frr(ctx context.Context, k *kernel, runs, prefixes int) (f figure, err error) {
	node := frr.Router{Name: s.node(), Dir: filepath.Join(s.dir, fmt.Sprint("node-", prefixes)), Netns: s.node()}
	if err := node.Start(ctx); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, node.Kill()) }()
	head := []string{fmt.Sprintf("router bgp %d", nodeASN)}
	if err := node.Configure(ctx, append(head, " no bgp ebgp-requires-policy", " no bgp network import-check",
		" bgp router-id "+source(0).String(),
		fmt.Sprintf(" neighbor %s remote-as %d", routerAddr(), routerASN),
		fmt.Sprintf(" neighbor %s update-source %s", routerAddr(), source(0)),
		fmt.Sprintf(" neighbor %s timers connect 1", routerAddr()))...); err != nil {
		return f, err
	}
	if err := s.established(ctx); err != nil {
		return f, err
	}
	return rounds(ctx, k, runs, prefixes, func(n int) error {
		word, lines := "  network ", append(slices.Clone(head), " address-family ipv4 unicast")
		if n == 0 {
			word = "  no network "
		}
		for i := range prefixes {
			lines = append(lines, word+prefix(i).String())
		}
		return node.Configure(ctx, lines...)
	})
}

// established waits until the router's session with FRR on the node is established.
func (s *site) established(ctx context.Context) error {
	return await(ctx, 100*time.Millisecond, func() error {
		var all map[string]struct{ BGPState string }
		if err := s.router.Show(ctx, "show bgp neighbors "+source(0).String()+" json", &all); err != nil {
			return err
		}
		if state := all[source(0).String()].BGPState; state != "Established" {
			return fmt.Errorf("session of FRR is %s", state)
		}
		return nil
	})
}

func (s *site) crowd(ctx context.Context, sessions, prefixes int) (c crowd, err error) {
	c = crowd{Sessions: sessions, Prefixes: prefixes}
	r := speaking{Routes: prefixes}
	for i := range sessions {
		r.Sources = append(r.Sources, source(i))
	}
	began := time.Now()
	p, err := start(ctx, s.node(), role{Speaker: &r})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := await(ctx, 100*time.Millisecond, func() error {
		out, err := exec.CommandContext(ctx, "ip", "-n", s.router.Netns, "-4", "-o", "route", "show", "root",
			"100.64.0.0/10").Output()
		if err != nil {
			return err
		}
		hops := strings.Count(string(out), "nexthop via")
		if want := sessions * prefixes; hops != want {
			return fmt.Errorf("%d next hops in the router's kernel, want %d", hops, want)
		}
		return nil
	}); err != nil {
		return c, err
	}
	c.Seconds = time.Since(began).Seconds()
	c.RSS, _, err = p.memory()
	return c, err
}
