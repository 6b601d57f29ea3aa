// SPDX-License-Identifier: Apache-2.0

// Command lab builds, inspects, breaks and removes a cluster on this machine. See package lab.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
)

func main() { os.Exit(execute(os.Args)) }

func execute(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := app().RunContext(ctx, args)
	if exit := (*commandError)(nil); errors.As(err, &exit) {
		return exit.ended.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return 0
}

func app() *cli.App {
	return &cli.App{
		Name:  "lab",
		Usage: "a cluster from real parts on this machine: etcd, API server, OVN, nodes, router, clients",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Value: lab.DefaultName, EnvVars: []string{"LAB_NAME"},
				Usage: "which lab; labs of different names run side by side"},
			&cli.StringFlag{Name: "dir", Value: lab.DefaultDir, EnvVars: []string{"LAB_DIR"},
				Usage: "where labs keep their files"},
		},
		Commands: append([]*cli.Command{
			up(), down(), status(), binaries(), execIn(), kubectl(), nbctl(), sbctl(), vtysh(), probeFrom(),
			onNode("kill", "end a node's switch and ovn-controller by SIGKILL",
				func(_ context.Context, l *lab.Lab, n string) error {
					return l.Kill(n)
				}),
			onNode("restore", "undo kill", func(ctx context.Context, l *lab.Lab, n string) error { return l.Restore(ctx, n) }),
			onNode("drain", "label a node "+drainLabel, func(ctx context.Context, l *lab.Lab, n string) error {
				return l.Drain(ctx, n)
			}),
			onNode("undrain", "undo drain", func(ctx context.Context, l *lab.Lab, n string) error { return l.Undrain(ctx, n) }),
			onNode("link-down", "take all links of a node down; not-ready makes it dead for Kubernetes, too",
				func(ctx context.Context, l *lab.Lab, n string) error {
					return l.LinkDown(ctx, n)
				}),
			onNode("underlay-down", "take only the tunnel link of a node down",
				func(ctx context.Context, l *lab.Lab, n string) error {
					return l.UnderlayDown(ctx, n)
				}),
			onNode("uplink-down", "take only the provider link of a node down",
				func(ctx context.Context, l *lab.Lab, n string) error {
					return l.UplinkDown(ctx, n)
				}),
			onNode("link-up", "take all links of a node up", func(ctx context.Context, l *lab.Lab, n string) error {
				return l.LinkUp(ctx, n)
			}),
			onNode("not-ready", "set the condition Ready of a Node to Unknown, as 40 s after its kubelet has died",
				setReady(false)),
			onNode("ready", "undo not-ready", setReady(true)),
		}, append(product(), internal()...)...),
	}
}

const drainLabel = "node.kubernetes.io/exclude-from-external-load-balancers"

// setReady returns what sets the condition Ready of a Node, which is not that of a kubelet with heartbeats here.
func setReady(ready bool) func(context.Context, *lab.Lab, string) error {
	return func(ctx context.Context, l *lab.Lab, n string) error {
		client, err := l.Client()
		if err != nil {
			return err
		}
		return kubelet.SetNodeReady(ctx, client, n, ready)
	}
}

func config(c *cli.Context) lab.Config {
	return lab.Config{Name: c.String("name"), Dir: c.String("dir")}
}

// onLab returns an action that opens the lab named by the flags and calls do.
func onLab(do func(c *cli.Context, l *lab.Lab) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		l, err := lab.Open(config(c))
		if err != nil {
			return err
		}
		l.Notes = c.App.ErrWriter
		return do(c, l)
	}
}

func onNode(name, usage string, do func(ctx context.Context, l *lab.Lab, node string) error) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, ArgsUsage: "NODE", Action: onLab(func(c *cli.Context, l *lab.Lab) error {
		if c.NArg() != 1 {
			return fmt.Errorf("%s: %d arguments: want one node, as n1", name, c.NArg())
		}
		return do(c.Context, l, c.Args().First())
	})}
}
