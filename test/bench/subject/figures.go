// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Figures is the JSON file of a benchmark's figures. It contains the figures of one run only, and is valid at any time:
// a run that is interrupted or killed leaves the figures it has saved. Its field "complete" is false until the run
// ends.
type Figures struct {
	file   string
	report any
}

// Keep creates the file's directory and writes the figures of a run from its start, replacing those of an earlier run.
// The report is a pointer to a struct whose fields the benchmark sets as it measures. Fields that are not measured yet
// must be omitted from the JSON, by omitzero.
func Keep(file string, report any) (*Figures, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f := &Figures{file: file, report: report}
	return f, f.Save()
}

// Save writes the figures measured so far.
func (f *Figures) Save() error {
	_, err := f.write(false)
	return err
}

// Complete writes the figures of a finished run and returns the JSON text.
func (f *Figures) Complete() ([]byte, error) { return f.write(true) }

func (f *Figures) write(complete bool) ([]byte, error) {
	fields, err := json.Marshal(f.report)
	if err != nil {
		return nil, fmt.Errorf("figures for %s: %w", f.file, err)
	}
	if len(fields) < len(`{"a":0}`) || fields[0] != '{' {
		return nil, fmt.Errorf("figures for %s: %s: want an object with fields", f.file, fields)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, fmt.Appendf(nil, `{"complete":%t,%s`, complete, fields[1:]), "", "  "); err != nil {
		return nil, err
	}
	text.WriteByte('\n')
	// Rename replaces the file atomically (rename(2)).
	next := f.file + ".tmp"
	if err := os.WriteFile(next, text.Bytes(), 0o644); err != nil {
		return nil, err
	}
	return text.Bytes(), os.Rename(next, f.file)
}
