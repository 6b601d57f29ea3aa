// SPDX-License-Identifier: Apache-2.0

// Command allocation measures how fast Services get their addresses from the real
// controller on a real kube-apiserver, beside what the API server itself needs for as
// many bare status writes: the floor; and, beside all of them, what a node needs that
// tells a router of each. It runs as root or not, and starts and stops everything that
// it needs.
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

// report is what is written: one run of the command, all modes.
type report struct {
	Services int `json:"services"`
	CPUs     int `json:"cpus"`
	// Modes are those that have begun; a step that was not measured has no figures.
	Modes map[string]*result `json:"modes"`
}

// modes are the ways to run the API server, by name. Since Kubernetes 1.33 creating a
// Service takes longer the more there are; fast is without the allocator that does it.
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
