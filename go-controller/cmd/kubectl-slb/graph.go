// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/graph"
)

// graphOptions are the options of command graph.
type graphOptions struct {
	connection
	file string
}

func graphCommand() *cli.Command {
	var o graphOptions
	return &cli.Command{
		Name:  "graph",
		Usage: "draw L2Domains, gateways, addresses and BGP as SVG",
		Description: `Green lines lead from each shard to its active gateway, dashed ones to the next. With BGP, green lines lead
from nodes to the peers to which they advertise, red ones to those without a session.

Examples:
  kubectl slb graph --file slb.svg`,
		Flags: append(o.clusterFlags(), &cli.StringFlag{Name: "file", Destination: &o.file, Category: categoryOutput,
			Usage: "`FILE` to write; if empty, standard output"}),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			clients, err := o.connect(c.Context)
			if err != nil {
				return err
			}
			cluster, err := clients.load(c.Context, nil)
			if err == nil {
				err = requireRead(cluster, "l2domains", "ipaddresspools", "services")
			}
			if err != nil {
				return err
			}
			if missing := requireRead(cluster, decisive()...); missing != nil {
				fmt.Fprintf(c.App.ErrWriter, "note: BGP is not drawn, or not all of it: %v\n", missing)
			}
			picture := graph.Render(cluster, time.Now())
			if o.file == "" {
				fmt.Fprint(c.App.Writer, picture)
				return nil
			}
			if err := os.WriteFile(o.file, []byte(picture), 0o644); err != nil { //nolint:gosec // a picture for others
				return fmt.Errorf("--file: %w", err)
			}
			return nil
		},
	}
}
