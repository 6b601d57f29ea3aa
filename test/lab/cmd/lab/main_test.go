// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// Commands that pass their flags to a program show their own help, without a lab.
func TestHelpWithoutLab(t *testing.T) {
	for _, name := range []string{"install", "start-controller", "start-guards"} {
		var out bytes.Buffer
		a := app()
		a.Writer = &out
		if err := a.Run([]string{"lab", "--dir", t.TempDir(), name, "--help"}); err != nil {
			t.Errorf("lab %s --help: %v", name, err)
		}
		if !strings.Contains(out.String(), "PROGRAM [FLAGS...]") {
			t.Errorf("lab %s --help does not show its arguments:\n%s", name, &out)
		}
	}
}
