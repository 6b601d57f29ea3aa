// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// watching returns a watch whose refreshes have these results, and then end it. A text that begins with ! is an error.
func watching(cancel context.CancelFunc, results ...string) (w *watch, out, problems *bytes.Buffer) {
	out, problems = &bytes.Buffer{}, &bytes.Buffer{}
	return &watch{timeout: time.Minute, out: out, err: problems,
		load: func(context.Context) (string, error) {
			if len(results) == 0 {
				cancel()
				return "", context.Canceled
			}
			text := results[0]
			if results = results[1:]; text[0] == '!' {
				return "", errors.New(text[1:])
			}
			return text, nil
		}}, out, problems
}

func TestWatchShowsOnlyTexts(t *testing.T) {
	synctest.Test(t, testWatchShowsOnlyTexts)
}

func testWatchShowsOnlyTexts(t *testing.T) {
	const cleared = "\x1b[2J\x1b[H"
	for name, c := range map[string]struct {
		loaded    []string
		screen    bool
		separator string
		out, err  string
		fails     bool
	}{
		"changes":         {loaded: []string{"a\n", "a\n", "b\n"}, out: "a\nb\n"},
		"changes in YAML": {loaded: []string{"a\n", "b\n"}, separator: "---\n", out: "a\n---\nb\n"},
		"an outage": {loaded: []string{"a\n", "!x", "!x", "a\n", "b\n"}, out: "a\nb\n",
			err: "not refreshed: x\nrefreshed again\n"},
		"different errors": {loaded: []string{"a\n", "!x", "!y"}, out: "a\n",
			err: "not refreshed: x\nnot refreshed: y\n"},
		"on a screen": {loaded: []string{"a\n", "!x", "a\n"}, screen: true, out: cleared + "a\n" + cleared + "a\n",
			err: "not refreshed: x\n"},
		"no first text": {loaded: []string{"!x"}, fails: true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		w, out, problems := watching(cancel, c.loaded...)
		w.screen, w.separator = c.screen, c.separator
		err := w.run(ctx)
		cancel()
		if out.String() != c.out || problems.String() != c.err || (err != nil) != c.fails {
			t.Errorf("%s: %q, want %q; on standard error %q, want %q; error %v", name, out, c.out, problems, c.err, err)
		}
	}
}

// Refreshes of a large cluster keep the API server busy for a tenth of the time, and come once in a minute or two all
// the same. The clock is virtual.
func TestWatchRestsBetweenRefreshes(t *testing.T) {
	for takes, want := range map[time.Duration]int{0: 301, time.Second: 61, 5 * time.Second: 13, 20 * time.Second: 8} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
			defer cancel()
			refreshes := 0
			w := &watch{timeout: time.Minute, out: &bytes.Buffer{}, err: &bytes.Buffer{},
				load: func(ctx context.Context) (string, error) {
					refreshes++
					select {
					case <-time.After(takes):
					case <-ctx.Done():
					}
					return "a\n", nil
				}}
			if err := w.run(ctx); err != nil || refreshes != want {
				t.Errorf("refreshes that take %s: error %v, %d of them, want %d", takes, err, refreshes, want)
			}
		})
	}
}

// A refresh that gets no answer is given up.
func TestRefreshHasATimeout(t *testing.T) {
	w := &watch{timeout: time.Nanosecond, load: func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}}
	if err := w.run(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
}
