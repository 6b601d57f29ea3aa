// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
)

const (
	// changes is the number of endpoint changes, one at a time. souths is the number of further changes measured up to
	// the southbound database.
	changes, souths = 200, 3
	// quietPeriod is how long the database must not have been written before it counts as idle.
	quietPeriod = 3 * time.Second
	// restarts is the number of timed restarts. rest is the time allowed for a restarted controller to release memory.
	restarts, rest = 3, 10 * time.Second
)

// measure starts all processes and measures.
func (s *site) measure(ctx context.Context, program string) error {
	if err := s.build(ctx, program); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.fill, s.change, s.restart} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill starts the controller with an empty database.
func (s *site) fill(ctx context.Context) (err error) {
	began := time.Now()
	if err := s.start(ctx, "fill"); err != nil {
		return err
	}
	last, err := s.settled(ctx)
	if err != nil {
		return err
	}
	s.result.FillSeconds = seconds(last.Sub(began))
	if s.result.FillCPU, _, err = s.running.Usage(); err != nil {
		return err
	}
	s.logf("the controller has filled the northbound database within %.1f s", s.result.FillSeconds)
	if err := s.save(); err != nil {
		return err
	}
	began = time.Now()
	if err := s.north2south(ctx); err != nil {
		return err
	}
	s.result.NorthdSeconds = seconds(time.Since(began))
	s.logf("ovn-northd has followed after %.1f s more", s.result.NorthdSeconds)
	return s.save()
}

// settled waits until the controller is ready and the database idle. It returns the time of the last write.
func (s *site) settled(ctx context.Context) (last time.Time, err error) {
	if err := s.running.Rest(ctx); err != nil {
		return last, err
	}
	return quiet(ctx, s.dir)
}

// quiet waits until the northbound database of a directory is idle. It returns the time of the last write.
func quiet(ctx context.Context, dir string) (last time.Time, err error) {
	tick := time.NewTicker(quietPeriod / 10)
	defer tick.Stop()
	for {
		file, err := os.Stat(filepath.Join(dir, "nb.db"))
		if err != nil {
			return last, err
		}
		if last = file.ModTime(); time.Since(last) > quietPeriod {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("wait for the northbound database to come to rest: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// north2south waits until ovn-northd has processed the whole northbound database.
func (s *site) north2south(ctx context.Context) error {
	return subject.Fill(ctx, s.subject.NB, "--timeout=600", "--wait=sb", "sync")
}

// move gives an endpoint of a Service an address that was never used. It returns the time of the change and the delay
// until it was in the northbound database.
func (s *site) move(ctx context.Context, i int) (began time.Time, took time.Duration, err error) {
	slice := s.movedSlice(i, 0)
	addr := slice.Endpoints[0].Addresses[0]
	committed := s.north.expect(addr + `:8080"`) // as a backend of the node router
	began = time.Now()
	if _, err := s.client.DiscoveryV1().EndpointSlices(namespace).Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
		return began, 0, err
	}
	at, err := committed(ctx)
	return began, at.Sub(began), err
}

// movedSlice returns the endpoints of a Service, one of them with an address that was never used.
func (s *site) movedSlice(i, endpoint int) *discoveryv1.EndpointSlice {
	slice, node := s.slice(i), (i*s.result.Endpoints+endpoint)%s.result.Nodes
	slice.Endpoints[endpoint].Addresses = []string{fmt.Sprintf("%s%d", pods(node), firstPod+mostPods+s.moved[node])}
	s.moved[node]++
	return slice
}

// change changes endpoints one after the other, each after the previous one is committed. It then measures further
// changes up to the southbound database.
func (s *site) change(ctx context.Context) error {
	go s.profile(ctx, s.running, "profile?seconds=5", "change.cpu")
	var commit, south []time.Duration
	for n := range changes {
		_, took, err := s.move(ctx, n*37%s.result.Services)
		if err != nil {
			return err
		}
		commit = append(commit, took)
	}
	s.result.CommitMedian, s.result.CommitP99 = quantile(commit, 0.5), quantile(commit, 0.99)
	if err := errors.Join(s.save(), s.north2south(ctx)); err != nil {
		return err
	}
	for n := range souths {
		began, _, err := s.move(ctx, (changes+n)*37%s.result.Services)
		if err != nil {
			return err
		}
		if err := s.north2south(ctx); err != nil {
			return err
		}
		south = append(south, time.Since(began))
	}
	s.result.SouthMedian = quantile(south, 0.5)
	s.logf("an endpoint reaches the northbound database within %.0f ms (median; %.0f ms p99), the southbound one within "+
		"%.0f ms",
		s.result.CommitMedian, s.result.CommitP99, s.result.SouthMedian)
	return s.save()
}

// restart starts the controller once to verify that it writes nothing and to measure its memory, and then several times
// to measure the time. ovn-northd is idle meanwhile.
func (s *site) restart(ctx context.Context) error {
	if _, err := s.settled(ctx); err != nil {
		return err
	}
	if err := s.running.Terminate(ctx); err != nil {
		return err
	}
	before, err := s.transactions()
	if err != nil {
		return err
	}
	if err := s.start(ctx, "restart"); err != nil {
		return err
	}
	if _, err := s.settled(ctx); err != nil {
		return err
	}
	after, err := s.transactions()
	if err != nil {
		return err
	}
	written := after - before
	s.result.RestartTransactions = &written
	if err := errors.Join(s.usage(ctx), s.save()); err != nil {
		return err
	}
	if err := s.running.Terminate(ctx); err != nil {
		return err
	}
	for i := range restarts {
		began := time.Now()
		if s.running, err = s.subject.Start(ctx); err != nil {
			return err
		}
		moved, took, err := s.move(ctx, i)
		if err != nil {
			return err
		}
		sync := seconds(moved.Add(took).Sub(began))
		s.result.RestartSeconds = max(s.result.RestartSeconds, sync)
		s.logf("a controller that starts is in sync after %.1f s", sync)
		if err := errors.Join(s.save(), s.north2south(ctx)); err != nil {
			return err
		}
		if err := s.running.Terminate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// usage measures CPU time and memory of an idle controller.
func (s *site) usage(ctx context.Context) (err error) {
	if s.result.RestartCPU, _, err = s.running.Usage(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rest):
	}
	if _, s.result.RSS, err = s.running.Usage(); err != nil {
		return err
	}
	s.result.PeakRSS, err = s.running.Peak()
	s.logf("at rest it has %.0f MB, and never had more than %.0f MB", s.result.RSS, s.result.PeakRSS)
	s.profile(ctx, s.running, "heap", "rest.heap")
	return err
}

// start starts the controller.
func (s *site) start(ctx context.Context, name string) (err error) {
	if s.running, err = s.subject.Start(ctx); err == nil {
		go s.profile(ctx, s.running, "profile?seconds=8", name+".cpu")
	}
	return err
}

// profile stores a profile of the controller if profiles are enabled.
func (s *site) profile(ctx context.Context, of *subject.Controller, path, file string) {
	if s.profiles == "" {
		return
	}
	if err := of.Profile(ctx, path, filepath.Join(s.profiles, file)); err != nil {
		s.logf("no profile %s: %v", file, err)
	}
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e3) / 1e3 }

// quantile returns the smallest value, in milliseconds, that at least the fraction p of the values does not exceed.
func quantile(values []time.Duration, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	i := max(0, int(math.Ceil(p*float64(len(sorted))))-1)
	return math.Round(sorted[i].Seconds()*1e4) / 10
}
