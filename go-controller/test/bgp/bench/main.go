// SPDX-License-Identifier: Apache-2.0

// Command bench measures the BGP speaker with FRR as the router, both in network namespaces: how long routes take to
// appear in, and disappear from, the router's kernel, and the resources that the speaker needs. FRR as the speaker
// does the same in the same run. It also measures what a client behind the router observes when one of three nodes
// loses its link or its daemon.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
)

// result is the output of one run of the command.
type result struct {
	CPUs int `json:"cpus"`
	// Runs is how often each of the figures below was measured.
	Runs int `json:"runs"`
	// GOGC is the setting of the speaker's process.
	GOGC    int      `json:"gogc"`
	Speaker []figure `json:"speaker,omitzero"`
	// FRR is FRR as the speaker, with network statements loaded by a single vtysh call.
	FRR []figure `json:"frr_as_speaker,omitzero"`
	// FRRK8s is frr-k8s on the node, with FRRConfigurations as the controller of this project writes them.
	FRRK8s []frrK8sFigure `json:"frr_k8s,omitzero"`
	// Crowd is one process with many sessions to one router, measured from its start until each route in the router's
	// kernel has one next hop per session.
	Crowd crowd `json:"crowd,omitzero"`
	failover
}

// figure is the result of one session with one route per prefix. Times are measured from the command until the
// router's kernel has changed.
type figure struct {
	Prefixes int     `json:"prefixes"`
	Apply    seconds `json:"apply_s"`
	Withdraw seconds `json:"withdraw_s"`
	// RSS is the memory of the process after the last run, RSSPeak its maximum; 0 if not measured.
	RSS     float64 `json:"rss_mb,omitempty"`
	RSSPeak float64 `json:"rss_peak_mb,omitempty"`
}

type seconds struct {
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

type crowd struct {
	Sessions int     `json:"sessions"`
	Prefixes int     `json:"prefixes"`
	Seconds  float64 `json:"start_to_kernel_s"`
	RSS      float64 `json:"rss_mb"`
}

// patience limits the whole run.
const patience = time.Hour

func main() {
	if config := os.Getenv(roleVariable); config != "" {
		os.Exit(subject.Main("bgp", func(ctx context.Context, _ []string, out, _ io.Writer) error {
			return play(ctx, config, os.Stdin, out)
		}))
	}
	os.Exit(subject.Main("bgp", benchmark))
}

func benchmark(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bgp", flag.ContinueOnError)
	runs := flags.Int("runs", 5, "how often each figure of speed is taken, 0 to 100; 0 leaves them out")
	repeats := flags.Int("repeats", 20, "how often a link is lost, and a daemon killed, 0 to 100; 0 leaves that out")
	sessions := flags.Int("sessions", 100, "how many sessions the crowd has, 1 to 200")
	withFRRK8s := flags.Bool("frr-k8s", false, "measure only frr-k8s beside the speaker")
	file := flags.String("out", "_output/bench/bgp.json", "where the figures go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for name, n := range map[string]int{"runs": *runs, "repeats": *repeats} {
		if n < 0 || n > 100 {
			return fmt.Errorf("--%s %d: want 0 to 100", name, n)
		}
	}
	if *sessions < 1 || *sessions > 200 {
		return fmt.Errorf("--sessions %d: want 1 to 200", *sessions)
	}
	r := result{CPUs: runtime.NumCPU(), Runs: *runs, GOGC: collect}
	figures, err := subject.Keep(*file, &r)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "slb-bench-bgp-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for the user frr
		return err
	}
	s := &site{dir: dir, name: filepath.Base(dir), progress: progress, save: figures.Save}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() { err = errors.Join(err, s.remove(context.WithoutCancel(ctx))) }()
	if err := s.build(ctx, *sessions); err != nil {
		return err
	}
	if *withFRRK8s {
		*runs, *repeats = 0, 0
		if err := s.compareFRRK8s(ctx, &r); err != nil {
			return err
		}
	}
	if *runs > 0 {
		if err := s.measure(ctx, &r, *sessions); err != nil {
			return err
		}
	}
	if *repeats > 0 {
		if err := s.failovers(ctx, &r.failover, *repeats); err != nil {
			return err
		}
	}
	text, err := figures.Complete()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
