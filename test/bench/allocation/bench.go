// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

const (
	// creators is the number of concurrent Service creations, writers the number of
	// concurrent bare status writes. Higher values do not increase the throughput.
	creators, writers = 16, 16
	// singles is the number of Services created one after the other, churns the number
	// replaced one after the other.
	singles, churns = 200, 50
	// patience is the timeout of each wait.
	patience = 10 * time.Minute
)

// result holds the figures of one mode. All times are from one run on one machine. Unmeasured figures are zero or nil.
type result struct {
	// Bare status writes of all Services, by an informer and 16 writers only.
	Floor float64 `json:"floor_s,omitzero"`
	// The controller starts with all Services pending: time until the last Service has its address.
	Backlog      float64 `json:"backlog_s,omitzero"`
	BacklogRatio float64 `json:"backlog_ratio,omitzero"`
	// CPU time of the controller, and its resident memory once that is stable.
	CPU float64 `json:"controller_cpu_s,omitzero"`
	RSS float64 `json:"controller_rss_mb,omitzero"`
	// Time from the first of 16 concurrent creators until the last Service has its address,
	// with the controller and with bare writes.
	Burst      float64 `json:"burst_s,omitzero"`
	BurstFloor float64 `json:"burst_floor_s,omitzero"`
	BurstRatio float64 `json:"burst_ratio,omitzero"`
	// One Service, from before its creation until its address is observed.
	SingleIdle50 float64 `json:"single_idle_p50_ms,omitzero"`
	SingleIdle99 float64 `json:"single_idle_p99_ms,omitzero"`
	CreateIdle50 float64 `json:"create_idle_p50_ms,omitzero"`
	CreateIdle99 float64 `json:"create_idle_p99_ms,omitzero"`
	// The same with all other Services present. There are 5,000 unless the command line
	// sets another number.
	SingleFull50 float64 `json:"single_at_5000_p50_ms,omitzero"`
	SingleFull99 float64 `json:"single_at_5000_p99_ms,omitzero"`
	CreateFull50 float64 `json:"create_at_5000_p50_ms,omitzero"`
	CreateFull99 float64 `json:"create_at_5000_p99_ms,omitzero"`
	// Controller restart: time until a Service created immediately is served, and the
	// number of status writes of a restart without changes.
	RestartServing float64 `json:"restart_serving_s,omitzero"`
	RestartWrites  *int    `json:"restart_writes,omitzero"`
	// One deletion and one creation, until the new Service has its address: the median, and
	// the status writes of all kinds per pair.
	Churn       float64 `json:"churn_ms,omitzero"`
	ChurnWrites float64 `json:"churn_writes,omitzero"`
	// Start of the BGP speaker of a node with all Services present: time until all are advertised to its peer, and its
	// resident memory once that is stable.
	NodeTold float64 `json:"node_start_to_told_s,omitzero"`
	NodeRSS  float64 `json:"node_rss_mb,omitzero"`
}

// bench measures one mode.
type bench struct {
	services int
	mode     string
	progress io.Writer
	*cluster
	result *result
	save   func() error // stores the results of all modes
}

// run starts all processes, measures, and stops them.
func (b *bench) run(ctx context.Context, program string, apiServerArgs []string) (err error) {
	dir, err := os.MkdirTemp("", "slb-bench-")
	if err != nil {
		return err
	}
	b.cluster, err = startCluster(ctx, dir, program, apiServerArgs, b.progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop(ctx), os.RemoveAll(dir)) }()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"one Service at a time, none else", b.idle},
		{"burst of bare writes", b.burstFloor},
		{"bare writes", b.floor},
		{"backlog", b.backlog},
		{"one Service at a time, with all others present", b.full},
		{"churn", b.churn},
		{"restart", b.restart},
		{"burst", b.burst},
		{"BGP on a node", b.tell},
	} {
		start := time.Now()
		bounded, cancel := context.WithTimeout(ctx, patience)
		err := step.do(bounded)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := b.save(); err != nil {
			return err
		}
		b.logf("%s: %.1f s", step.name, time.Since(start).Seconds())
	}
	return nil
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(b.progress, b.mode+": "+format+"\n", args...) //nolint:errcheck // progress is a courtesy
}

func (b *bench) idle(ctx context.Context) error {
	c, err := b.subject.Start(ctx)
	if err != nil {
		return err
	}
	if err := c.Rest(ctx); err != nil {
		return err
	}
	create, served, err := b.oneByOne(ctx, "idle")
	if err != nil {
		return err
	}
	b.result.CreateIdle50, b.result.CreateIdle99 = percentiles(create)
	b.result.SingleIdle50, b.result.SingleIdle99 = percentiles(served)
	return c.Terminate(ctx)
}

// oneByOne creates Services one after the other and deletes them afterwards. For each Service,
// it returns the duration of the creation and the time until it was served.
func (b *bench) oneByOne(ctx context.Context, prefix string) (create, served []time.Duration, err error) {
	for i := range singles {
		start := time.Now()
		name := fmt.Sprintf("%s-%d", prefix, i)
		if err := b.create(ctx, name); err != nil {
			return nil, nil, err
		}
		created := time.Now()
		at, err := b.seen.served(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		create, served = append(create, created.Sub(start)), append(served, at.Sub(start))
	}
	return create, served, b.deleteAll(ctx, prefix, singles)
}

func (b *bench) burstFloor(ctx context.Context) error {
	stop := b.bareWrites(ctx, true)
	start := time.Now()
	if err := b.createAll(ctx, "web", b.services); err != nil {
		return err
	}
	at, err := b.seen.allServed(ctx, b.services)
	b.result.BurstFloor = at.Sub(start).Seconds()
	return errors.Join(err, stop())
}

// floor starts with Services that already have a status. It removes the status before and
// after the measurement.
func (b *bench) floor(ctx context.Context) error {
	if err := b.takeStatuses(ctx); err != nil {
		return err
	}
	start := time.Now()
	stop := b.bareWrites(ctx, true)
	at, err := b.seen.allServed(ctx, b.services)
	b.result.Floor = at.Sub(start).Seconds()
	return errors.Join(err, stop(), b.takeStatuses(ctx))
}

func (b *bench) takeStatuses(ctx context.Context) error {
	stop := b.bareWrites(ctx, false)
	return errors.Join(b.seen.noneServed(ctx), stop())
}

func (b *bench) backlog(ctx context.Context) error {
	start := time.Now()
	c, err := b.subject.Start(ctx)
	if err != nil {
		return err
	}
	at, err := b.seen.allServed(ctx, b.services)
	if err != nil {
		return err
	}
	b.result.Backlog = at.Sub(start).Seconds()
	b.result.BacklogRatio = b.result.Backlog / b.result.Floor
	if err := c.Rest(ctx); err != nil {
		return err
	}
	b.running = c
	b.result.CPU, b.result.RSS, err = c.Usage()
	return err
}

func (b *bench) full(ctx context.Context) error {
	create, served, err := b.oneByOne(ctx, "more")
	if err != nil {
		return err
	}
	b.result.CreateFull50, b.result.CreateFull99 = percentiles(create)
	b.result.SingleFull50, b.result.SingleFull99 = percentiles(served)
	return b.running.Rest(ctx)
}

func (b *bench) churn(ctx context.Context) error {
	before, err := b.running.Writes(ctx)
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := range churns {
		start := time.Now()
		if err := b.delete(ctx, fmt.Sprintf("web-%d", i)); err != nil {
			return err
		}
		name := fmt.Sprintf("churn-%d", i)
		if err := b.create(ctx, name); err != nil {
			return err
		}
		at, err := b.seen.served(ctx, name)
		if err != nil {
			return err
		}
		took = append(took, at.Sub(start))
	}
	b.result.Churn, _ = percentiles(took)
	if err := b.running.Rest(ctx); err != nil {
		return err
	}
	after, err := b.running.Writes(ctx)
	b.result.ChurnWrites = float64(after-before) / churns
	return err
}

// restart starts the controller twice: once to verify that it writes nothing, and once to measure the time.
func (b *bench) restart(ctx context.Context) error {
	if err := b.running.Settle(ctx); err != nil {
		return err
	}
	if err := b.running.Terminate(ctx); err != nil {
		return err
	}
	c, err := b.subject.Start(ctx)
	if err != nil {
		return err
	}
	if err := c.Settle(ctx); err != nil {
		return err
	}
	writes, err := c.Writes(ctx)
	if err != nil {
		return err
	}
	b.result.RestartWrites = &writes
	if err := c.Terminate(ctx); err != nil {
		return err
	}
	start := time.Now()
	if b.running, err = b.subject.Start(ctx); err != nil {
		return err
	}
	if err := b.create(ctx, "late"); err != nil {
		return err
	}
	at, err := b.seen.served(ctx, "late")
	b.result.RestartServing = at.Sub(start).Seconds()
	return errors.Join(err, b.running.Rest(ctx))
}

func (b *bench) burst(ctx context.Context) error {
	err := errors.Join(
		b.deleteAll(ctx, "web", b.services),
		b.deleteAll(ctx, "churn", churns),
		b.delete(ctx, "late"))
	if err != nil {
		return err
	}
	if err := b.running.Rest(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := b.createAll(ctx, "web", b.services); err != nil {
		return err
	}
	at, err := b.seen.allServed(ctx, b.services)
	b.result.Burst = at.Sub(start).Seconds()
	b.result.BurstRatio = b.result.Burst / b.result.BurstFloor
	return errors.Join(err, b.running.Terminate(ctx))
}

// percentiles returns the 50th and the 99th percentile, in milliseconds.
func percentiles(d []time.Duration) (p50, p99 float64) {
	slices.Sort(d)
	at := func(p int) float64 { return float64(d[(len(d)-1)*p/100].Microseconds()) / 1000 }
	return at(50), at(99)
}
