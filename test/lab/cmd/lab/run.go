// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/responder"
)

// through returns a command that runs another program with the standard streams of this process.
func through(name, usage, args string, command func(c *cli.Context, l *lab.Lab) (*exec.Cmd, error)) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, ArgsUsage: args, SkipFlagParsing: true,
		Action: onLab(func(c *cli.Context, l *lab.Lab) error {
			cmd, err := command(c, l)
			if err != nil {
				return err
			}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			return attached(cmd)
		})}
}

// commandError reports that a command with the standard streams of this process failed. The command has already printed
// the reason, and lab exits with its status.
type commandError struct{ ended *exec.ExitError }

func (e *commandError) Error() string { return e.ended.Error() }

// attached runs a command that has the standard streams of this process.
func attached(cmd *exec.Cmd) error {
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return &commandError{ended}
	}
	return err
}

func execIn() *cli.Command {
	return through("exec", "run a command in a namespace: n1, client, remote, router, cen, sw, pod-<namespace>-<pod>",
		"NAMESPACE -- COMMAND...",
		func(c *cli.Context, l *lab.Lab) (*exec.Cmd, error) {
			args := c.Args().Slice()
			if len(args) > 1 && args[1] == "--" {
				args = append(args[:1:1], args[2:]...)
			}
			if len(args) < 2 {
				return nil, errors.New("exec: want a namespace, --, and a command")
			}
			cmd := l.Command(c.Context, args[0], args[1:]...)
			cmd.Env = append(os.Environ(), l.ToolEnv(args[0])...)
			return cmd, nil
		})
}

func kubectl() *cli.Command {
	return through("kubectl", "kubectl as administrator", "ARGUMENTS...",
		func(c *cli.Context, l *lab.Lab) (*exec.Cmd, error) {
			return l.KubectlCommand(c.Context, c.Args().Slice()...)
		})
}

func nbctl() *cli.Command {
	return onDatabase("nbctl", "ovn-nbctl", "northbound", (*lab.Lab).NBSocket)
}

func sbctl() *cli.Command {
	return onDatabase("sbctl", "ovn-sbctl", "southbound", (*lab.Lab).SBSocket)
}

// onDatabase returns a command that runs a program on a database of central mode.
func onDatabase(name, program, database string, socket func(*lab.Lab) string) *cli.Command {
	return through(name, program+" on the lab's "+database+" database (central mode)", "ARGUMENTS...",
		func(c *cli.Context, l *lab.Lab) (*exec.Cmd, error) {
			if l.Network().Zones() {
				return nil, fmt.Errorf("%s: with interconnect each node has its own: lab exec %s -- %s %s", name, l.Nodes[0].Name,
					program, strings.Join(c.Args().Slice(), " "))
			}
			return exec.CommandContext(c.Context, program, append([]string{"--db=" + socket(l)}, c.Args().Slice()...)...), nil
		})
}

func vtysh() *cli.Command {
	return through("vtysh", "vtysh on the router", "ARGUMENTS...",
		func(c *cli.Context, l *lab.Lab) (*exec.Cmd, error) {
			return l.Router().Vtysh(c.Context, c.Args().Slice()...), nil
		})
}

// probeFrom returns the command that probes from the current namespace, or from one of the lab's with --from.
func probeFrom() *cli.Command {
	return &cli.Command{
		Name: "probe", Usage: "ask Services and measure gaps, losses and broken connections",
		ArgsUsage: "KIND://ADDRESS:PORT...",
		Description: "KIND is udp-flow, udp-new, tcp-new or tcp-long; all://ADDRESS:PORT is one of each. *COUNT behind it " +
			"is the number of flows, /INTERVAL the time between questions.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "namespace of the lab to ask from, as client or remote; default: the one " +
				"that lab runs in"},
			&cli.DurationFlag{Name: "duration", Value: 10 * time.Second, Usage: "how long"},
			&cli.DurationFlag{Name: "confirm", Usage: "how long a flow may take to be answered once more after that"},
			&cli.BoolFlag{Name: "json", Usage: "write a line \"answered\" when every stream was, \"complete\" when every flow " +
				"was, and the results as JSON at the end"},
		},
		Action: func(c *cli.Context) error {
			if from := c.String("from"); from != "" {
				return probeInside(c, from)
			}
			var specs []probe.Spec
			for _, text := range c.Args().Slice() {
				more, err := probe.ParseSpecs(text)
				if err != nil {
					return err
				}
				specs = append(specs, more...)
			}
			ctx, cancel := context.WithTimeout(c.Context, c.Duration("duration"))
			defer cancel()
			return measure(ctx, c, specs)
		},
	}
}

// probeInside runs this program again in the namespace.
func probeInside(c *cli.Context, from string) error {
	l, err := lab.Open(config(c))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{self, "probe", "--duration", c.Duration("duration").String(),
		"--confirm", c.Duration("confirm").String(), fmt.Sprintf("--json=%t", c.Bool("json"))}
	// The command receives an interrupt itself.
	cmd := l.Command(context.WithoutCancel(c.Context), from, append(args, c.Args().Slice()...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return attached(cmd)
}

func measure(ctx context.Context, c *cli.Context, specs []probe.Spec) error {
	o := probe.Options{Confirm: c.Duration("confirm")}
	if c.Bool("json") {
		o.Answered = func() { fmt.Fprintln(c.App.Writer, probe.AnsweredLine) }
		o.Complete = func() { fmt.Fprintln(c.App.Writer, probe.CompleteLine) }
	}
	results, err := probe.Run(ctx, specs, o)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(c.App.Writer).Encode(results)
	}
	for _, r := range results {
		fmt.Fprintln(c.App.Writer, r)
	}
	return nil
}

// binaries returns the command that builds, without root, the programs that the lab needs.
func binaries() *cli.Command {
	return &cli.Command{
		Name: "binaries", Usage: "build the control plane's programs into the cache, if they are not there",
		Action: func(c *cli.Context) error {
			_, err := controlplane.Binaries(c.Context, c.App.Writer)
			return err
		},
	}
}

// internal returns the commands that the lab itself starts.
func internal() []*cli.Command {
	return []*cli.Command{
		{Name: "agent", Hidden: true, Usage: "serve the pods of all nodes",
			Action: onLab(func(c *cli.Context, l *lab.Lab) error {
				return l.RunAgent(c.Context)
			})},
		{Name: "control-plane", Hidden: true, Usage: "start the control plane from the programs in a directory",
			ArgsUsage: "DIRECTORY", Action: onLab(func(c *cli.Context, l *lab.Lab) error {
				return l.StartControlPlane(c.Context, c.Args().First())
			})},
		{Name: "responder", Hidden: true, Usage: "answer for a pod", SkipFlagParsing: true,
			Action: func(c *cli.Context) error {
				return responder.Main(c.Context, c.Args().Slice())
			}},
		loadTargets(), flood(),
		{Name: "ask", Hidden: true, Usage: "ask once", ArgsUsage: "tcp|udp ADDRESS:PORT",
			Flags: []cli.Flag{&cli.UintFlag{Name: "source-port"}}, Action: func(c *cli.Context) error {
				target, err := netip.ParseAddrPort(c.Args().Get(1))
				if err != nil {
					return fmt.Errorf("ask: %w", err)
				}
				answer, err := probe.Ask(c.Context, c.Args().First(), uint16(c.Uint("source-port")), target)
				fmt.Fprint(c.App.Writer, answer)
				return err
			}},
	}
}
