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
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	sparing()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := &cli.App{
		Name:    "ovnkube-slb",
		Usage:   "Service load balancers native to OVN-Kubernetes",
		Version: version,
		Commands: []*cli.Command{
			controllerCommand(),
			nodeCommand(),
		},
	}
	if err := app.RunContext(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "ovnkube-slb:", err)
		return 1
	}
	return 0
}
