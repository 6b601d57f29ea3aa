// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// Benchmark runs a measurement according to its arguments. It writes figures to out and its steps to progress.
type Benchmark func(ctx context.Context, args []string, out, progress io.Writer) error

// Main runs a benchmark until it ends or is interrupted. It returns the exit status of the program.
func Main(name string, benchmark Benchmark) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := ovnprefix.Use(os.Getenv(ovnprefix.Variable))
	if err == nil {
		err = benchmark(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err) //nolint:errcheck // the error cannot be reported elsewhere
		return 1
	}
	return 0
}
