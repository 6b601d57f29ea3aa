// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arranged returns arguments in the order that the parser needs: command, flags, other arguments. Users of kubectl
// write flags anywhere. All arguments after "--" stay as they are.
func arranged(app *cli.App, args []string) []string {
	given, others, rest := divided(app, args[1:])
	if len(others) == 0 || others[0] == completeName {
		return args
	}
	if slices.Contains(given, "--help") || slices.Contains(given, "-h") {
		return []string{args[0], others[0], "--help"} // The parser takes an argument beside it for a topic.
	}
	return slices.Concat(args[:1], others[:1], given, others[1:], rest)
}

// divided divides words into flags with their values, other arguments, the first of which is the command, and the rest
// from "--" on.
func divided(app *cli.App, words []string) (given, others, rest []string) {
	rest = words
	for len(rest) > 0 && rest[0] != "--" {
		word := rest[0]
		rest = rest[1:]
		if !strings.HasPrefix(word, "-") || word == "-" {
			others = append(others, word)
			continue
		}
		given = append(given, word)
		if takesValue(app, word) && len(rest) > 0 {
			given, rest = append(given, rest[0]), rest[1:]
		}
	}
	return given, others, rest
}

// takesValue reports whether the value of a flag is the next argument. The flags of all commands count: one name has
// the same meaning in each of them.
func takesValue(app *cli.App, word string) bool {
	for _, c := range app.Commands {
		for _, f := range c.Flags {
			if slices.Contains(f.Names(), strings.TrimLeft(word, "-")) {
				_, boolean := f.(*cli.BoolFlag)
				return !boolean
			}
		}
	}
	return false
}

// usageError returns the error of a command whose flags are wrong. For a flag that the command does not have, it names
// the commands that have it, or the nearest one.
func usageError(c *cli.Context, err error, _ bool) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -") // package flag has no type for it
	if !unknown {
		return fmt.Errorf("%s: %w", c.Command.Name, err)
	}
	var owners []string
	for _, command := range c.App.VisibleCommands() {
		if slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
			owners = append(owners, command.Name)
		}
	}
	near := slices.DeleteFunc(slices.Clone(c.Command.Flags), func(f cli.Flag) bool { return f.Names()[0][0] != name[0] })
	suggestion := ""
	switch {
	case len(owners) > 0:
		suggestion = " It is a flag of " + strings.Join(owners, ", ") + "."
	case len(near) > 0:
		suggestion = fmt.Sprintf(" Did you mean %q?", cli.SuggestFlag(near, name, true))
	}
	return fmt.Errorf("%s: unknown flag %q.%s kubectl slb %[1]s --help lists the flags", c.Command.Name,
		"-"+strings.Repeat("-", min(1, len(name)-1))+name, suggestion)
}
