// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

const (
	// refreshTimeout is how long a refresh of --watch may take.
	refreshTimeout = 30 * time.Second
	// minRest, maxRest and restFactor limit the time between two refreshes: it is a multiple of what the last one took,
	// so that terminals that watch a large cluster leave the API server to the controllers.
	minRest, maxRest = 2 * time.Second, time.Minute
	restFactor       = 9
)

// watch shows a text again whenever it changes.
type watch struct {
	// load returns the text.
	load    func(context.Context) (string, error)
	timeout time.Duration
	// screen means that out is a terminal, which shows only the latest text. separator is between texts otherwise.
	screen    bool
	separator string
	out, err  io.Writer
}

// run shows the text until the context ends. The error of the first refresh ends it, too. Later ones are written to
// err: the text that was shown last stays.
func (w *watch) run(ctx context.Context) error {
	shown, failure := "", ""
	for first := true; ; first = false {
		start := time.Now()
		text, err := w.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil && err.Error() != failure:
			failure = err.Error()
			fmt.Fprintf(w.err, "not refreshed: %s\n", failure)
		case err != nil:
		default:
			if failure != "" && !w.screen {
				fmt.Fprintln(w.err, "refreshed again")
			}
			if first || text != shown || failure != "" && w.screen {
				w.show(text, first)
			}
			shown, failure = text, ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(max(minRest, restFactor*time.Since(start)), maxRest)):
		}
	}
}

func (w *watch) refresh(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.load(ctx)
}

// clearScreen returns the text for which a terminal is cleared.
func clearScreen(w io.Writer) string {
	if p, ok := w.(*printable.Writer); ok {
		return p.Sequence("[2J") + p.Sequence("[H")
	}
	return "\x1b[2J\x1b[H"
}

func (w *watch) show(text string, first bool) {
	switch {
	case w.screen:
		fmt.Fprint(w.out, clearScreen(w.out))
	case !first:
		fmt.Fprint(w.out, w.separator)
	}
	fmt.Fprint(w.out, text)
}
