// SPDX-License-Identifier: Apache-2.0

// Command allocation measures how fast Services get their addresses from the controller on a real kube-apiserver. As
// the floor, it measures the time that the API server needs for as many bare status writes. It also measures the BGP
// speaker of a node that advertises all Services to a router. It works with or without root, and starts and stops
// everything that it needs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
)

// report holds the figures of one run of the command, in all modes.
type report struct {
	Services int `json:"services"`
	CPUs     int `json:"cpus"`
	// Modes are those that have started. Unmeasured steps have no figures.
	Modes map[string]*result `json:"modes"`
}

// modes returns arguments of the API server by mode. Since Kubernetes 1.33, creating a Service takes longer the more
// Services exist; mode fast runs without the allocator that causes this.
func modes() map[string][]string {
	return map[string][]string{
		"fast":    subject.FastAPIServer(),
		"default": nil,
	}
}

func main() { os.Exit(subject.Main("allocation", benchmark)) }

func benchmark(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("allocation", flag.ContinueOnError)
	services := flags.Int("services", 5000, "how many Services there are, 100 to 60000")
	names := flags.String("modes", "fast,default", "how the API server runs, comma-separated: fast, default")
	program := flags.String("controller", "_output/bin/ovnkube-slb", "the program to measure")
	file := flags.String("out", "_output/bench/allocation.json", "where the figures go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *services < churns || *services > 60000 {
		return fmt.Errorf("--services %d: want %d to 60000", *services, churns)
	}
	controller, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	wanted := strings.Split(*names, ",")
	for _, name := range wanted {
		if _, known := modes()[name]; !known {
			return fmt.Errorf("--modes: %q is neither fast nor default", name)
		}
	}
	r := report{Services: *services, CPUs: runtime.NumCPU(), Modes: map[string]*result{}}
	figures, err := subject.Keep(*file, &r)
	if err != nil {
		return err
	}
	for _, name := range wanted {
		r.Modes[name] = &result{}
		b := bench{services: *services, progress: progress, mode: name, result: r.Modes[name], save: figures.Save}
		if err := b.run(ctx, controller, modes()[name]); err != nil {
			return fmt.Errorf("mode %s: %w", name, err)
		}
	}
	text, err := figures.Complete()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
