// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// printAs writes a value in a format. It returns false for the formats for readers.
func (o *output) printAs(w io.Writer, v any) (bool, error) {
	switch o.format {
	case formatJSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return true, e.Encode(v)
	case formatYAML:
		text, err := yaml.Marshal(v)
		if err != nil {
			return true, fmt.Errorf("format the output: %w", err)
		}
		_, err = w.Write(text)
		return true, err
	}
	return false, nil
}

// colours reports whether output may have colours: on a terminal, unless NO_COLOR is set (no-color.org).
func colours(w io.Writer) bool {
	if p, ok := w.(*printable.Writer); ok {
		return p.HasSequences()
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// maxColumns is the length of lines on a terminal: longer ones are hard to read.
const maxColumns = 120

// columns returns the width at which text for readers is wrapped: that of the terminal up to 120; 0, for never, if
// standard output is none.
func columns() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd())) //nolint:gosec // a file descriptor fits
	if err != nil {
		return 0
	}
	return min(width, maxColumns)
}

// painter returns the Paint for a writer.
func painter(w io.Writer) explain.Paint {
	p, ok := w.(*printable.Writer)
	if !ok || !p.HasSequences() {
		return explain.Plain
	}
	colour := map[explain.State]string{explain.OK: "[32m", explain.Warning: "[33m", explain.Broken: "[31m",
		explain.Unknown: "[35m", explain.Unused: "[2m"}
	return func(s explain.State, text string) string {
		return p.Sequence(cmp.Or(colour[s], "[0m")) + text + p.Sequence("[0m")
	}
}
