// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// Each command describes itself and has examples, and each value of a flag a name of its own.
func TestHelpIsComplete(t *testing.T) {
	app := newApp()
	if len(app.Commands) == 0 {
		t.Fatal("no command")
	}
	for _, c := range app.VisibleCommands() {
		_, examples, _ := strings.Cut(c.Description, "\n\nExamples:\n")
		if c.Usage == "" || !regexp.MustCompile(`^  `+regexp.QuoteMeta(app.Name)+` `+c.Name+`\b`).MatchString(examples) {
			t.Errorf("%s: usage %q, examples %q: want both", c.Name, c.Usage, examples)
		}
		for _, f := range c.Flags {
			name, documented := f.Names()[0], f.(cli.DocGenerationFlag)
			if documented.TakesValue() && !regexp.MustCompile("`[^`]+`").MatchString(documented.GetUsage()) {
				t.Errorf("%s --%s: the value has no name: %q", c.Name, name, documented.GetUsage())
			}
		}
	}
}

// --help may follow the arguments of a command, and shows the help of that command.
func TestHelpAfterArguments(t *testing.T) {
	for args, want := range map[string]string{
		"import metallb --help": "kubectl slb import - ", "drain n1 -h": "kubectl slb drain - ",
		"--help drain": "kubectl slb drain - ", "move -n shop --help": "kubectl slb move - ",
	} {
		app, out := newApp(), &bytes.Buffer{}
		app.Writer = out
		if err := app.Run(arranged(app, append([]string{"kubectl-slb"}, strings.Fields(args)...))); err != nil ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}

// A misspelt command or flag leads to the right one.
func TestNearestNameIsSuggested(t *testing.T) {
	for args, want := range map[string]string{
		"stauts": `unknown command "stauts". Did you mean "status"? `, "zap": `unknown command "zap". kubectl slb --help`,
		"drain --dryrun n1": `Did you mean "--dry-run"?`,
	} {
		app, out := newApp(), &bytes.Buffer{}
		app.Writer, app.ErrWriter = out, out
		err := app.Run(arranged(app, append([]string{"kubectl-slb"}, strings.Fields(args)...)))
		if err == nil || !strings.Contains(err.Error()+out.String(), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
