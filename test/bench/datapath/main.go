// SPDX-License-Identifier: Apache-2.0

// Command datapath measures the path from a client to the pods of a Service: by the address of the Service, by the same
// Service's NodePort on the same node, and by the pods' own addresses. It runs in the lab, with the real OVN, over IPv4
// and IPv6. It prints ratios of one run, and counts of Open vSwitch that do not depend on the machine. It needs root,
// and builds and removes its own lab.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/load"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// report holds the figures of one run of the command. The last figure of a section may be the last of an aborted run.
type report struct {
	CPUs    int    `json:"cpus"`
	Network string `json:"network,omitzero"`
	OVN     string `json:"ovn,omitzero"`
	// Seconds and Rounds are how long, and how often, the load of each rate ran on each path.
	Seconds float64            `json:"seconds"`
	Rounds  int                `json:"rounds"`
	New     []connectionFigure `json:"new_connections,omitzero"`
	Rates   []rateFigure       `json:"rates,omitzero"`
	Floods  []floodFigure      `json:"floods,omitzero"`
}

func main() { os.Exit(subject.Main("datapath", benchmark)) }

func benchmark(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("datapath", flag.ContinueOnError)
	only := flags.String("sections", strings.Join(sectionNames(), ","), "which sections, comma-separated")
	duration := flags.Duration("duration", 300*time.Millisecond, "how long each load runs on each path, in each round")
	rounds := flags.Int("rounds", 7, "how often, in turn with the other paths, 1 to 100")
	syns := flags.Int("flood", 100_000, "SYNs of each flood, each from another address and port")
	perSecond := flags.Int("flood-rate", 10_000, "SYNs per second")
	var network lab.Network
	network.AddFlags(flags)
	var build lab.Build
	build.AddFlags(flags)
	file := flags.String("out", "_output/bench/datapath.json", "file for the figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *duration <= 0 || *rounds < 1 || *rounds > 100 {
		return fmt.Errorf("--duration %s, --rounds %d: want some time, and 1 to 100 rounds", *duration, *rounds)
	}
	if most := load.MostPairs(lab.FloodSources); *syns < 1 || *syns > most || *perSecond < 1 {
		return fmt.Errorf("--flood %d, --flood-rate %d: want 1 to %d SYNs, and some per second", *syns, *perSecond, most)
	}
	chosen := strings.Split(*only, ",")
	for _, name := range chosen {
		if !slices.Contains(sectionNames(), name) {
			return fmt.Errorf("--sections %q: want some of %s", *only, strings.Join(sectionNames(), ","))
		}
	}
	if err := build.Resolve(); err != nil {
		return err
	}
	r := report{CPUs: runtime.NumCPU(), Seconds: duration.Seconds(), Rounds: *rounds}
	results, err := subject.Keep(*file, &r)
	if err != nil {
		return err
	}
	s, err := start(ctx, site{build: build, network: network, progress: progress,
		duration: *duration, rounds: *rounds, floodCount: *syns, floodRate: *perSecond, out: out, report: &r,
		save: results.Save})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.lab.Down(context.WithoutCancel(ctx))) }()
	r.Network = s.lab.Network().String()
	if r.OVN, err = ovnprefix.Version(); err != nil {
		return err
	}
	if err := s.runSections(ctx, chosen); err != nil {
		return err
	}
	_, err = results.Complete()
	return err
}
