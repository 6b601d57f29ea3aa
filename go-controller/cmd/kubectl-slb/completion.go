// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	last := words[len(words)-1]
	var flags []cli.Flag
	if command := c.App.Command(words[0]); command != nil {
		flags = command.VisibleFlags()
	}
	var all []string
	switch {
	case len(words) == 1:
		for _, command := range c.App.VisibleCommands() {
			all = append(all, command.Name+"\t"+command.Usage)
		}
	case words[len(words)-2] == "-o" || words[len(words)-2] == "--output":
		for _, f := range flags {
			if f, ok := f.(*formatFlag); ok {
				all = f.formats
			}
		}
	case words[len(words)-2] == "--to":
		all = nodeNames(c)
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			all = append(all, "--"+f.Names()[0])
		}
	default:
		all = names(c, words[0])
	}
	var matching []string
	for _, text := range all {
		if strings.HasPrefix(text, last) {
			matching = append(matching, text)
		}
	}
	return matching
}

// names returns the names of the objects that a command accepts. Without a cluster there are none.
func names(c *cli.Context, command string) []string {
	var out []string
	switch command {
	case "drain", "undrain":
		return nodeNames(c)
	case "explain", "move":
		clients, err := (&connection{}).connect(c.Context)
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

func nodeNames(c *cli.Context) []string {
	clients, err := (&connection{}).connect(c.Context)
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
