// SPDX-License-Identifier: Apache-2.0

// Command bench measures the interruption that a client observes with OpenShift SDN when a node that holds addresses
// is lost, when it is drained, and when the leading controller is killed at the moment a node is lost. Everything
// runs in network namespaces.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/sdn/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
)

// result is the output of one run of the command.
type result struct {
	CPUs  int `json:"cpus"`
	Nodes int `json:"nodes"`
	// Addresses is the number of addresses of both families, held by all nodes together.
	Addresses int `json:"addresses"`
	// Lost is a node that loses its links, Drained a node for which a planned outage is announced, and Beheaded a
	// node that loses its links while the leader of two controllers is killed.
	Lost     figure `json:"node_lost_ms,omitzero"`
	Drained  figure `json:"node_drained_ms,omitzero"`
	Beheaded figure `json:"node_lost_and_leader_killed_ms,omitzero"`
}

// figure contains the gaps of a client, in each case the longest gap of its streams (new TCP connections and new UDP
// flows, IPv4 and IPv6).
type figure struct {
	Median int   `json:"median"`
	Max    int   `json:"max"`
	Gaps   []int `json:"gaps"`
}

// patience limits the whole run.
const patience = time.Hour

func main() {
	os.Exit(site.Nest(func(dir string) int {
		return subject.Main("sdn", func(ctx context.Context, args []string, out, progress io.Writer) error {
			return benchmark(ctx, dir, args, out, progress)
		})
	}))
}

func benchmark(ctx context.Context, dir string, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("sdn", flag.ContinueOnError)
	program := flags.String("controller", "_output/bin/ovnkube-slb", "`PATH` of the program")
	repeats := flags.Int("repeats", 20, "how often a node is lost, and drains, 1 to 100")
	beheadings := flags.Int("beheadings", 5, "how often the leader is killed, too, 0 to 100")
	services := flags.Int("services", 100, "Services of both families, 1 to 120")
	nodes := flags.Int("nodes", 4, "nodes, 3 to 8")
	file := flags.String("out", "_output/bench/sdn.json", "where the figures go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, bound := range []struct {
		name             string
		value, low, high int
	}{{"repeats", *repeats, 1, 100}, {"beheadings", *beheadings, 0, 100}, {"services", *services, 1, 120},
		{"nodes", *nodes, 3, 8}} {
		if bound.value < bound.low || bound.value > bound.high {
			return fmt.Errorf("--%s %d: want %d to %d", bound.name, bound.value, bound.low, bound.high)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b := &bench{addresses: 2 * *services, nodes: *nodes, progress: progress}
	r := result{CPUs: runtime.NumCPU(), Nodes: *nodes, Addresses: b.addresses}
	figures, err := subject.Keep(*file, &r)
	if err != nil {
		return err
	}
	if err := b.build(ctx, dir, *program, *services); err != nil {
		return err
	}
	for _, event := range []struct {
		name    string
		times   int
		measure func(ctx context.Context, i int) (time.Duration, error)
		into    *figure
	}{
		{"node lost", *repeats, b.lose, &r.Lost},
		{"node drained", *repeats, b.drain, &r.Drained},
		{"node lost and leader killed", *beheadings, b.behead, &r.Beheaded},
	} {
		for i := range event.times {
			gap, err := event.measure(ctx, i)
			if err != nil {
				return fmt.Errorf("%s, number %d: %w", event.name, i+1, err)
			}
			fmt.Fprintf(progress, "%s: gap %d ms\n", event.name, gap.Milliseconds()) //nolint:errcheck // progress output
			event.into.add(gap)
			if err := figures.Save(); err != nil {
				return err
			}
		}
	}
	text, err := figures.Complete()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func (f *figure) add(gap time.Duration) {
	f.Gaps = append(f.Gaps, int(gap.Milliseconds()))
	sorted := slices.Sorted(slices.Values(f.Gaps))
	f.Median, f.Max = sorted[len(sorted)/2], sorted[len(sorted)-1]
}
