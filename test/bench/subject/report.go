// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Benchmark measures as its arguments say; figures go to out, what it does to progress.
type Benchmark func(ctx context.Context, args []string, out, progress io.Writer) error

// Main runs a benchmark until it ends or is interrupted, and returns the exit status of its program.
func Main(name string, benchmark Benchmark) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := benchmark(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err) //nolint:errcheck // there is nobody else to tell
		return 1
	}
	return 0
}

// Write stores figures as JSON in a file, whose folder it makes, and returns the text.
func Write(figures any, file string) ([]byte, error) {
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return text, os.WriteFile(file, text, 0o644)
}
