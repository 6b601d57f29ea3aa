// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/load"
)

// loadTargets returns the command that sends as much as is answered from the current namespace.
func loadTargets() *cli.Command {
	return &cli.Command{
		Name: "load", Hidden: true, Usage: "send as much as is answered", ArgsUsage: "KIND ADDRESS:PORT...",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "workers", Value: 1}, &cli.IntFlag{Name: "count"},
			&cli.DurationFlag{Name: "duration", Value: time.Second},
		},
		Action: func(c *cli.Context) error {
			s := load.Spec{Kind: load.Kind(c.Args().First()), Workers: c.Int("workers"), Count: c.Int("count"),
				Duration: c.Duration("duration")}
			for _, text := range c.Args().Tail() {
				target, err := netip.ParseAddrPort(text)
				if err != nil {
					return fmt.Errorf("load: %w", err)
				}
				s.Targets = append(s.Targets, target)
			}
			r, err := load.Run(c.Context, s)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.App.Writer).Encode(r)
		},
	}
}

// flood returns the command that sends SYNs from the current namespace.
func flood() *cli.Command {
	return &cli.Command{
		Name: "flood", Hidden: true, Usage: "send SYNs from many ports", ArgsUsage: "TARGET:PORT SOURCE...",
		Flags: []cli.Flag{&cli.IntFlag{Name: "count"}, &cli.IntFlag{Name: "rate"}},
		Action: func(c *cli.Context) error {
			target, err := netip.ParseAddrPort(c.Args().First())
			if err != nil {
				return fmt.Errorf("flood: %w", err)
			}
			f := load.Flood{Target: target, Count: c.Int("count"), Rate: c.Int("rate")}
			for _, text := range c.Args().Tail() {
				source, err := netip.ParseAddr(text)
				if err != nil {
					return fmt.Errorf("flood: %w", err)
				}
				f.Sources = append(f.Sources, source)
			}
			sent, seconds, err := f.Send(c.Context)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.App.Writer).Encode(lab.Flooded{Sent: sent, Seconds: seconds})
		},
	}
}
