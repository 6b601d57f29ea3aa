// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completeName is the name of the hidden command that kubectl's completion calls.
const completeName = "__complete"

// noFiles ends a list of candidates: the shell must not add names of files (cobra, ShellCompDirectiveNoFileComp).
const noFiles = ":4"

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:  "completion",
		Usage: "print the script that completes this plugin in all shells that kubectl completes",
		Description: `kubectl completes a plugin by a program kubectl_complete-PLUGIN in the PATH.

Examples:
  kubectl slb completion > ~/bin/kubectl_complete-slb && chmod +x ~/bin/kubectl_complete-slb`,
		Action: func(c *cli.Context) error {
			fmt.Fprintf(c.App.Writer, "#!/bin/sh\nexec kubectl-slb %s \"$@\"\n", completeName)
			return nil
		},
	}
}

func completeCommand() *cli.Command {
	return &cli.Command{
		Name: completeName, Hidden: true, SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			fmt.Fprintln(c.App.Writer, strings.Join(append(candidates(c), noFiles), "\n"))
			return nil
		},
	}
}

// candidates returns the completions of the last argument.
func candidates(c *cli.Context) []string {
	words := c.Args().Slice()
	if len(words) == 0 {
		words = []string{""}
	}
	last, words := words[len(words)-1], words[:len(words)-1]
	given, others, rest := divided(c.App, words)
	var flags []cli.Flag
	if len(others) > 0 {
		if command := c.App.Command(others[0]); command != nil {
			flags = command.VisibleFlags()
		}
	}
	of := "" // the flag whose value is the last argument
	if len(words) > 0 && len(rest) == 0 && strings.HasPrefix(words[len(words)-1], "-") &&
		takesValue(c.App, words[len(words)-1]) {
		of, given = words[len(words)-1], given[:len(given)-1]
	}
	var all []string
	switch {
	case of == "-o" || of == "--output":
		for _, f := range flags {
			if f, ok := f.(*formatFlag); ok {
				all = f.formats
			}
		}
	case of == "--to":
		all = nodeNames(c, given)
	case of != "":
	case len(others) == 0 && len(rest) == 0:
		for _, command := range c.App.VisibleCommands() {
			all = append(all, command.Name+"\t"+command.Usage)
		}
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			all = append(all, "--"+f.Names()[0])
		}
	case len(others) > 0:
		all = names(c, others[0], given)
	}
	var matching []string
	for _, text := range all {
		if strings.HasPrefix(text, last) {
			matching = append(matching, text)
		}
	}
	return matching
}

// names returns the names of the objects that a command accepts, in the cluster and for the user of the flags that are
// given. Without a cluster there are none.
func names(c *cli.Context, command string, given []string) []string {
	var out []string
	switch command {
	case "drain", "undrain":
		return nodeNames(c, given)
	case "explain", "move":
		clients, err := connectAs(c, given)
		if err != nil {
			return nil
		}
		list, err := clients.core.CoreV1().Services(clients.namespace).List(c.Context, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		for i := range list.Items {
			out = append(out, list.Items[i].Name)
		}
	}
	return out
}

func nodeNames(c *cli.Context, given []string) []string {
	clients, err := connectAs(c, given)
	if err != nil {
		return nil
	}
	list, err := clients.core.CoreV1().Nodes().List(c.Context, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}

// connectAs returns the clients that the command with these flags would use. Other flags are skipped: the line is not
// complete, and may be wrong.
func connectAs(c *cli.Context, given []string) (*clients, error) {
	o := &connection{}
	set := flag.NewFlagSet(completeName, flag.ContinueOnError)
	for _, f := range o.flags() {
		if err := f.Apply(set); err != nil {
			return nil, fmt.Errorf("flag --%s: %w", f.Names()[0], err)
		}
	}
	for len(given) > 0 {
		name, value, inline := strings.Cut(strings.TrimLeft(given[0], "-"), "=")
		given = given[1:]
		if !inline && takesValue(c.App, name) && len(given) > 0 {
			value, given = given[0], given[1:]
		}
		if set.Lookup(name) == nil {
			continue
		}
		if err := set.Set(name, value); err != nil {
			return nil, fmt.Errorf("--%s %q: %w", name, value, err)
		}
	}
	return o.connect(c.Context)
}
