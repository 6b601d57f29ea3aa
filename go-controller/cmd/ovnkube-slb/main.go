// SPDX-License-Identifier: Apache-2.0

// Command ovnkube-slb assigns addresses to Services of type LoadBalancer. OVN itself announces the addresses and moves
// them to another gateway on failure.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	setGCPercent()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newApp().RunContext(ctx, os.Args); err != nil {
		fmt.Fprintln(printable.NewWriter(os.Stderr, false), "ovnkube-slb:", err)
		return 1
	}
	return 0
}

func newApp() *cli.App {
	return &cli.App{
		Name:    "ovnkube-slb",
		Usage:   "Service load balancers native to OVN-Kubernetes",
		Version: version,
		Description: "The controller and the processes on nodes, as dist/manifests runs them. Administrators use " +
			"kubectl slb.\n\nExamples:\n  ovnkube-slb controller --help\n  ovnkube-slb node --help",
		Commands: []*cli.Command{
			controllerCommand(),
			nodeCommand(),
		},
	}
}
