// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// helpOr returns the action of a command that passes its flags to a program and is not asked for its own help.
func helpOr(do func(c *cli.Context, l *lab.Lab) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if first := c.Args().First(); first == "--help" || first == "-h" {
			return cli.ShowSubcommandHelp(c)
		}
		return onLab(do)(c)
	}
}

// product returns the commands that install ovnkube-slb in the lab from its manifests.
func product() []*cli.Command {
	return []*cli.Command{
		{
			Name: "install", Usage: "apply a kustomization and start the controller with the rights in it",
			ArgsUsage: "KUSTOMIZATION PROGRAM [FLAGS...]",
			Description: "FLAGS are those of ovnkube-slb controller, besides the ones that the lab needs. Arguments in the " +
				"kustomization are for Pods, which the lab does not start: repeat those that matter as FLAGS, such as " +
				"--load-balancer-class, also of start-guards.",
			SkipFlagParsing: true,
			Action: helpOr(func(c *cli.Context, l *lab.Lab) error {
				args := c.Args().Slice()
				if len(args) < 2 {
					return errors.New("install: want a kustomization, as dist/manifests/base, and the program ovnkube-slb")
				}
				program, err := filepath.Abs(args[1])
				if err != nil {
					return err
				}
				if err := l.Install(c.Context, args[0], program, args[2:]...); err != nil {
					return err
				}
				fmt.Fprintln(c.App.Writer, "the controller is ready")
				return nil
			}),
		},
		{
			Name: "stop-controller", Usage: "end the controller by SIGTERM",
			Action: onLab(func(c *cli.Context, l *lab.Lab) error { return l.StopController(c.Context) }),
		},
		{
			Name: "start-controller", Usage: "start the controller again", ArgsUsage: "PROGRAM [FLAGS...]",
			SkipFlagParsing: true,
			Action: helpOr(func(c *cli.Context, l *lab.Lab) error {
				if c.NArg() < 1 {
					return errors.New("start-controller: want PROGRAM, such as _output/bin/ovnkube-slb")
				}
				program, err := filepath.Abs(c.Args().First())
				if err != nil {
					return err
				}
				return l.StartController(c.Context, program, c.Args().Tail()...)
			}),
		},
		{
			Name: "start-guards", Usage: "start ovnkube-slb node on all nodes, as the DaemonSet does",
			ArgsUsage: "PROGRAM [FLAGS...]",
			Description: "FLAGS are those of ovnkube-slb node, as --enable-bgp. --enable-l2 and the databases are set with " +
				"interconnect.",
			SkipFlagParsing: true,
			Action: helpOr(func(c *cli.Context, l *lab.Lab) error {
				if c.NArg() < 1 {
					return errors.New("start-guards: want PROGRAM, such as _output/bin/ovnkube-slb")
				}
				program, err := filepath.Abs(c.Args().First())
				if err != nil {
					return err
				}
				if err := l.StartGuards(c.Context, program, c.Args().Tail()...); err != nil {
					return err
				}
				fmt.Fprintf(c.App.Writer, "ovnkube-slb node %s runs on %d nodes\n", strings.Join(c.Args().Tail(), " "),
					len(l.Nodes))
				return nil
			}),
		},
		{
			Name: "stop-guards", Usage: "end ovnkube-slb node on all nodes by SIGTERM",
			Action: onLab(func(c *cli.Context, l *lab.Lab) error {
				for _, n := range l.Nodes {
					if err := l.StopGuard(c.Context, n.Name); err != nil {
						return err
					}
				}
				return nil
			}),
		},
	}
}
