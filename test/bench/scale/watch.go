// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// watch monitors the load balancers of the northbound database.
type watch struct {
	mu      sync.Mutex
	want    string
	at      time.Time // when the wanted text was observed
	changed chan struct{}
}

// startWatch watches until ctx is done.
func startWatch(ctx context.Context, nb string) (*watch, error) {
	cmd := exec.CommandContext(ctx, "ovsdb-client", "--format=csv", "monitor", nb, "OVN_Northbound", "Load_Balancer",
		"vips")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &watch{changed: make(chan struct{})}
	go func() {
		w.read(out)
		_ = cmd.Wait() // The process ends with ctx; otherwise waiters time out.
	}()
	return w, nil
}

func (w *watch) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		now := time.Now()
		w.mu.Lock()
		if w.want != "" && strings.Contains(line, w.want) && !strings.Contains(line, "old,") {
			w.at, w.want = now, ""
		}
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
}

// expect starts to wait for a row that contains text. The returned function blocks until the row is observed and
// returns that time.
func (w *watch) expect(text string) func(context.Context) (time.Time, error) {
	w.mu.Lock()
	w.want, w.at = text, time.Time{}
	w.mu.Unlock()
	return func(ctx context.Context) (at time.Time, err error) {
		err = w.until(ctx, "a row with "+text, func() bool {
			at = w.at
			return !at.IsZero()
		})
		return at, err
	}
}

// until waits until met returns true. It calls met with the lock held.
func (w *watch) until(ctx context.Context, what string, met func() bool) error {
	for {
		w.mu.Lock()
		done, changed := met(), w.changed
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s in the northbound database: %w", what, ctx.Err())
		case <-changed:
		}
	}
}
