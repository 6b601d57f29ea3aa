// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
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
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// painter returns the Paint for a writer.
func painter(w io.Writer) explain.Paint {
	if !colours(w) {
		return explain.Plain
	}
	return func(s explain.State, text string) string {
		const reset = "\x1b[0m"
		switch s {
		case explain.OK:
			return "\x1b[32m" + text + reset
		case explain.Warning:
			return "\x1b[33m" + text + reset
		case explain.Broken:
			return "\x1b[31m" + text + reset
		case explain.Unknown:
			return "\x1b[35m" + text + reset
		case explain.Unused:
			return "\x1b[2m" + text + reset
		}
		return text
	}
}
