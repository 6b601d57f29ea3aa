// SPDX-License-Identifier: Apache-2.0

// Command ovnkube-slb gives Services of type LoadBalancer addresses that OVN itself
// answers for and fails over.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/urfave/cli/v2"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	if os.Getenv("GOGC") == "" {
		// Half of Go's default: what is remembered is much, and the garbage beside it little.
		debug.SetGCPercent(50)
	}
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
