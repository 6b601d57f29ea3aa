// SPDX-License-Identifier: Apache-2.0

// Command scale measures the controller in a large cluster: thousands of nodes (API objects and OVN rows, without
// running kubelets or chassis) and ten thousand Services with twenty endpoints each. kube-apiserver, ovsdb-server and
// ovn-northd are the real programs. With --interconnect, it measures the agents of two zones, one of a gateway and one
// of another node, and what their watches cost the API server.
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

// result holds the figures of one run of the command. Times are in milliseconds if the name ends in ms, otherwise in
// seconds. Unmeasured figures are zero or nil.
type result struct {
	CPUs      int `json:"cpus"`
	Nodes     int `json:"nodes"`
	Services  int `json:"services"`
	Endpoints int `json:"endpoints_a_service"`
	// The controller starts with an empty database: time until every Service has its rows, and the CPU time used.
	FillSeconds float64 `json:"fill_s,omitzero"`
	FillCPU     float64 `json:"fill_cpu_s,omitzero"`
	// Time of ovn-northd to process the filled database.
	NorthdSeconds float64 `json:"northd_fill_s,omitzero"`
	// An endpoint of one Service changes: time from the write to the API server until the change is in the northbound
	// database.
	CommitMedian float64 `json:"endpoint_to_nb_p50_ms,omitzero"`
	CommitP99    float64 `json:"endpoint_to_nb_p99_ms,omitzero"`
	// The same until ovn-northd has updated the southbound database.
	SouthMedian float64 `json:"endpoint_to_sb_p50_ms,omitzero"`
	// The controller restarts with all objects present: time until a change made meanwhile is in the northbound
	// database. The slowest of several restarts counts.
	RestartSeconds      float64 `json:"restart_in_sync_s,omitzero"`
	RestartCPU          float64 `json:"restart_cpu_s,omitzero"`
	RestartTransactions *int    `json:"restart_nb_transactions,omitzero"`
	// Resident memory of a restarted controller: when idle, and its peak.
	RSS     float64 `json:"controller_rss_mb,omitzero"`
	PeakRSS float64 `json:"controller_peak_rss_mb,omitzero"`
	// With interconnect.
	Zones *zoneFigures `json:"interconnect,omitempty"`
	// Limits, by the name of the figure. They apply to the default values of the flags.
	Limits map[string]float64 `json:"limits,omitempty"`
}

func limits() map[string]float64 {
	return map[string]float64{"endpoint_to_nb_p99_ms": 50, "restart_in_sync_s": 5, "restart_nb_transactions": 0,
		"controller_rss_mb": 300}
}

// patience is the timeout of the whole run.
const patience = time.Hour

func main() { os.Exit(subject.Main("scale", benchmark)) }

func benchmark(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	nodes := flags.Int("nodes", 2000, "how many nodes there are, 20 to 4000")
	interconnect := flags.Bool("interconnect", false, "measure agents of zones, instead of a controller with databases")
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
	measure := s.measure
	if *interconnect {
		measure, s.result.Zones, s.result.Limits = s.measureZones, &zoneFigures{}, nil
	}
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
	if err := measure(ctx, controller); err != nil {
		return err
	}
	text, err := figures.Complete()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
