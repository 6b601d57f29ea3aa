// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// product returns the commands that install ovnkube-slb in the lab from its manifests.
func product() []*cli.Command {
	return []*cli.Command{
		{
			Name: "install", Usage: "apply a kustomization and start the controller with the rights in it",
			ArgsUsage:       "KUSTOMIZATION PROGRAM [FLAGS...]",
			SkipFlagParsing: true,
			Action: onLab(func(c *cli.Context, l *lab.Lab) error {
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
			Action: onLab(func(c *cli.Context, l *lab.Lab) error {
				if c.NArg() < 1 {
					return errors.New("start-controller: want the program ovnkube-slb")
				}
				program, err := filepath.Abs(c.Args().First())
				if err != nil {
					return err
				}
				return l.StartController(c.Context, program, c.Args().Tail()...)
			}),
		},
	}
}
