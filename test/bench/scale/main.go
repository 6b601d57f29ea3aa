// SPDX-License-Identifier: Apache-2.0

// Command scale measures the real controller beside a large cluster: thousands of nodes (objects, and rows in OVN's databases, without
// anything that runs there), ten thousand Services with twenty endpoints each, the real kube-apiserver, ovsdb-server and ovn-northd.
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

// result is what is written: one run of the command. Times are in milliseconds where they say so, else in seconds.
// What is not measured yet is zero or nil.
type result struct {
	CPUs      int `json:"cpus"`
	Nodes     int `json:"nodes"`
	Services  int `json:"services"`
	Endpoints int `json:"endpoints_a_service"`
	// The controller starts beside an empty database: until every Service has its rows, and what that took of a processor.
	FillSeconds float64 `json:"fill_s,omitzero"`
	FillCPU     float64 `json:"fill_cpu_s,omitzero"`
	// Then ovn-northd is asked for everything.
	NorthdSeconds float64 `json:"northd_fill_s,omitzero"`
	// An endpoint of one Service changes: from the write to the API server until the northbound database has it.
	CommitMedian float64 `json:"endpoint_to_nb_p50_ms,omitzero"`
	CommitP99    float64 `json:"endpoint_to_nb_p99_ms,omitzero"`
	// Until ovn-northd has made it the southbound database's.
	SouthMedian float64 `json:"endpoint_to_sb_p50_ms,omitzero"`
	// The controller starts beside all this: until a change made meanwhile is in the northbound database, at the slowest of some starts.
	RestartSeconds      float64 `json:"restart_in_sync_s,omitzero"`
	RestartCPU          float64 `json:"restart_cpu_s,omitzero"`
	RestartTransactions *int    `json:"restart_nb_transactions,omitzero"`
	// Resident memory of one that was started so: at rest, and the most that it ever had.
	RSS     float64 `json:"controller_rss_mb,omitzero"`
	PeakRSS float64 `json:"controller_peak_rss_mb,omitzero"`
	// What is to be reached with the numbers that are the flags' defaults, by the names of the figures.
	Limits map[string]float64 `json:"limits"`
}

func limits() map[string]float64 {
	return map[string]float64{"endpoint_to_nb_p99_ms": 50, "restart_in_sync_s": 5, "restart_nb_transactions": 0, "controller_rss_mb": 300}
}

// patience is how long the whole may take.
const patience = time.Hour

func main() { os.Exit(subject.Main("scale", benchmark)) }

func benchmark(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	nodes := flags.Int("nodes", 2000, "how many nodes there are, 20 to 4000")
	services := flags.Int("services", 10_000, "how many Services there are, 1 to 60000")
	endpoints := flags.Int("endpoints", 20, "how many endpoints each has, 1 to 200")
	program := flags.String("controller", "_output/bin/ovnkube-slb", "the program to measure")
	profiles := flags.String("profiles", "", "where profiles of the controller go; empty for nowhere")
	file := flags.String("out", "_output/bench/scale.json", "where the figures go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, f := range []struct {
		name             string
		value, low, high int
	}{{"nodes", *nodes, 20, 4000}, {"services", *services, 1, 60_000}, {"endpoints", *endpoints, 1, 200}} {
		if f.value < f.low || f.value > f.high {
			return fmt.Errorf("--%s %d: want %d to %d", f.name, f.value, f.low, f.high)
		}
	}
	controller, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "scale")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := site{dir: dir, profiles: *profiles, progress: progress, began: time.Now(), moved: map[int]int{}, result: result{
		CPUs: runtime.NumCPU(), Nodes: *nodes, Services: *services, Endpoints: *endpoints, Limits: limits(),
	}}
	if *profiles != "" {
		if err := os.MkdirAll(*profiles, 0o755); err != nil {
			return err
		}
	}
	figures, err := subject.Keep(*file, &s.result)
	if err != nil {
		return err
	}
	s.save = figures.Save
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	if err := s.measure(ctx, controller); err != nil {
		return err
	}
	text, err := figures.Complete()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
