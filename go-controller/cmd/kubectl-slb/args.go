// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arranged returns arguments in the order that the parser needs: command, flags, other arguments. Users of kubectl
// write flags anywhere. All arguments after "--" stay as they are.
func arranged(app *cli.App, args []string) []string {
	flags := map[string]cli.Flag{}
	for _, c := range app.Commands {
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				flags[name] = f
			}
		}
	}
	var given, others []string
	rest := args[1:]
	for len(rest) > 0 && rest[0] != "--" {
		word := rest[0]
		rest = rest[1:]
		if !strings.HasPrefix(word, "-") || word == "-" {
			others = append(others, word)
			continue
		}
		given = append(given, word)
		_, boolean := flags[strings.TrimLeft(word, "-")].(*cli.BoolFlag)
		known := flags[strings.TrimLeft(word, "-")] != nil
		if known && !boolean && len(rest) > 0 {
			given, rest = append(given, rest[0]), rest[1:]
		}
	}
	if len(others) == 0 || others[0] == completeName {
		return args
	}
	if slices.Contains(given, "--help") || slices.Contains(given, "-h") {
		return []string{args[0], others[0], "--help"} // The parser takes an argument beside it for a topic.
	}
	return slices.Concat(args[:1], others[:1], given, others[1:], rest)
}
