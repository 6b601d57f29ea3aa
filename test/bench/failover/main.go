// SPDX-License-Identifier: Apache-2.0

// Command failover measures the traffic loss of clients when a gateway is lost or leaves. It runs in the lab, with the
// real OVN, over IPv4 and IPv6: 24 UDP flows and 24 TCP connections to six pods that do not run on gateways. It needs
// root, and builds and removes its own lab.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// report holds the figures of one run of the command.
type report struct {
	// Repeats is the number of repeats of each event per family. Events that take long have half as many.
	Repeats int `json:"repeats"`
	Nodes   int `json:"nodes"`
	// Network is the cluster's network, OVN the version of OVN in it.
	Network string `json:"network,omitzero"`
	OVN     string `json:"ovn,omitzero"`
	// DetectMS is spec.failover.detectInterval of the domain, in milliseconds.
	DetectMS int64 `json:"detect_interval_ms"`
	// Figures are those measured so far. The last one may be incomplete: it has as many repeats as gaps.
	Figures []figure `json:"figures"`
}

func main() { os.Exit(subject.Main("failover", benchmark)) }

func benchmark(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("failover", flag.ContinueOnError)
	repeats := flags.Int("repeats", 20, "how often each event happens over each family, 2 to 1000")
	only := flags.String("events", strings.Join(names(), ","), "which events, comma-separated")
	counts := flags.String("vips", "1,100,3000",
		"with how many Services, of an address and a port each, gateways are killed, comma-separated, 1 to 4000; the other "+
			"events have one")
	nodes := flags.Int("nodes", 4, "how many nodes share this machine, 4 to 9; three are gateways, and each has to "+
		"compute the flows of all addresses")
	detect := flags.Duration("detect-interval", 200*time.Millisecond, "spec.failover.detectInterval of the domain")
	var network lab.Network
	network.AddFlags(flags)
	var build lab.Build
	build.AddFlags(flags)
	file := flags.String("out", "_output/bench/failover.json", "file for the figures; the chart is next to it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *repeats < 2 || *repeats > 1000 {
		return fmt.Errorf("--repeats %d: want 2 to 1000", *repeats)
	}
	if *nodes <= gateways || *nodes > 9 {
		return fmt.Errorf("--nodes %d: want %d to 9", *nodes, gateways+1)
	}
	vips, err := numbers(*counts)
	if err != nil {
		return fmt.Errorf("--vips: %w", err)
	}
	events := slices.DeleteFunc(events(), func(e event) bool {
		return !slices.Contains(strings.Split(*only, ","), e.name)
	})
	if len(events) == 0 {
		return fmt.Errorf("--events %q: want some of %s", *only, strings.Join(names(), ","))
	}
	if err := build.Resolve(); err != nil {
		return err
	}
	r := report{Repeats: *repeats, Nodes: *nodes, DetectMS: detect.Milliseconds()}
	results, err := subject.Keep(*file, &r)
	if err != nil {
		return err
	}
	s, err := start(ctx, site{build: build, nodes: *nodes, network: network, detect: *detect,
		progress: progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.lab.Down(context.WithoutCancel(ctx))) }()
	r.Network = s.lab.Network().String()
	if r.OVN, err = ovnprefix.Version(); err != nil {
		return err
	}

	for _, e := range events {
		for _, n := range vips {
			if n > 1 && !e.many {
				continue
			}
			if err := s.serve(ctx, n); err != nil {
				return fmt.Errorf("%d addresses: %w", n, err)
			}
			if err := s.measure(ctx, e, *repeats, &r, results.Save); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	if _, err := results.Complete(); err != nil {
		return err
	}
	return show(r, *file, out)
}

func numbers(list string) ([]int, error) {
	var out []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > mostAddresses {
			return nil, fmt.Errorf("%q: want 1 to %d", word, mostAddresses)
		}
		out = append(out, n)
	}
	return slices.Sorted(slices.Values(out)), nil
}

// show writes the chart to the directory of the figures, and prints the figures.
func show(r report, file string, out io.Writer) error {
	if err := os.WriteFile(strings.TrimSuffix(file, ".json")+".svg", []byte(chart(r.Figures)), 0o644); err != nil {
		return err
	}
	for _, f := range r.Figures {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	return nil
}
