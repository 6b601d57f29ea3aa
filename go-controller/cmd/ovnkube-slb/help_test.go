// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// Each command describes itself and has examples, each flag has a category and each value of a flag a name of its own.
func TestHelpIsComplete(t *testing.T) {
	app := newApp()
	if len(app.Commands) == 0 {
		t.Fatal("no command")
	}
	for _, c := range app.Commands {
		_, examples, _ := strings.Cut(c.Description, "\n\nExamples:\n")
		if c.Usage == "" || !regexp.MustCompile(`^  `+regexp.QuoteMeta(app.Name)+` `+c.Name+` `).MatchString(examples) {
			t.Errorf("%s: usage %q, examples %q: want both", c.Name, c.Usage, examples)
		}
		for _, f := range c.Flags {
			name, documented := f.Names()[0], f.(cli.DocGenerationFlag)
			if documented.TakesValue() && !regexp.MustCompile("`[^`]+`").MatchString(documented.GetUsage()) {
				t.Errorf("%s --%s: the value has no name: %q", c.Name, name, documented.GetUsage())
			}
			if f.(cli.CategorizableFlag).GetCategory() == "" && name != flagConfigFile {
				t.Errorf("%s --%s has no category", c.Name, name)
			}
		}
	}
}
