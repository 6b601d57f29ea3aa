// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

func up() *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "build the lab",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "nodes", Value: lab.DefaultNodes, Usage: "number of nodes"},
			&cli.StringFlag{Name: "network", Value: lab.Model, Usage: "what connects nodes and pods: " + lab.Model + ", or " +
				lab.OVNKube + " (OVN-Kubernetes itself: $" + lab.OVNKubeVariable + " and $" + lab.OVNKubeCRDsVariable +
				" say where it is)"},
			&cli.StringFlag{Name: "mode", Value: lab.Central, Usage: "of OVN-Kubernetes: " + lab.Central + " or " +
				lab.Interconnect},
			&cli.StringFlag{Name: "gateway", Value: lab.SharedGateway, Usage: "mode of OVN-Kubernetes' gateways: " +
				lab.SharedGateway + " or, not in the model, " + lab.LocalGateway},
			&cli.StringFlag{Name: "segment", Value: lab.OnProvider, Usage: "of the client: " + lab.OnProvider +
				", behind a bridge of its own on each node, or, not in the model, " + lab.OnLAN +
				", the nodes' own network behind br-ex"},
			&cli.BoolFlag{Name: "no-kube", Usage: "omit etcd, the API server and the nodes' agent"},
		},
		Action: func(c *cli.Context) error {
			cfg := config(c)
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			cfg.Network = lab.Network{Kind: c.String("network"), Mode: c.String("mode"), Gateway: c.String("gateway"),
				Segment: c.String("segment")}
			cfg.Nodes, cfg.NoKube, cfg.Progress, cfg.Binary = c.Int("nodes"), c.Bool("no-kube"), c.App.Writer, binary
			_, err = lab.Up(c.Context, cfg)
			return err
		},
	}
}

func down() *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "remove the lab, also one that crashed; nothing is left",
		Action: func(c *cli.Context) error {
			start := time.Now()
			if err := lab.Down(c.Context, config(c)); err != nil {
				return err
			}
			fmt.Fprintf(c.App.Writer, "lab %s is gone (%.1fs)\n", c.String("name"), time.Since(start).Seconds())
			return nil
		},
	}
}

func status() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "what runs, and where to look",
		Action: onLab(func(c *cli.Context, l *lab.Lab) error { return printStatus(c.Context, c, l) }),
	}
}

// printSegment prints what an L2Domain, a BGPPeer and the clients of a lab need to know.
func printSegment(w io.Writer, l *lab.Lab) {
	network := l.Network()
	fmt.Fprintf(w, "  client %v on physical network %s, subnets %v\n", l.ClientAddresses(), network.PhysicalNetwork(),
		network.Served().Subnets)
	fmt.Fprintf(w, "  router %v on that segment, AS %d\n  remote %v, a client behind the router\n",
		network.Served().Router(), lab.RouterASN, lab.RemoteAddresses())
}

func printStatus(ctx context.Context, c *cli.Context, l *lab.Lab) error {
	w := c.App.Writer
	ready, created := l.Ready()
	state := "up"
	if !ready {
		state = "not complete (it comes up, or its start was interrupted: then `lab down`)"
	}
	fmt.Fprintf(w, "lab %s: %s, since %s\n  network %s\n  files  %s\n", l.Name, state, created.Format(time.DateTime),
		l.Network(), l.Dir)
	printSegment(w, l)
	if !l.Network().Zones() {
		fmt.Fprintf(w, "  NB     %s\n", l.NBSocket())
	}
	for _, n := range l.Nodes {
		alive := "runs"
		if l.Ended(n.Name) != "" {
			alive = "DEAD (lab restore " + n.Name + ")"
		}
		fmt.Fprintf(w, "  node   %s  LAN %v  pods %v  %s\n", n.Name, n.LAN, n.PodSubnets, alive)
	}
	ports, err := l.GatewayPorts(ctx)
	if err != nil {
		return err
	}
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		fmt.Fprintf(w, "  port   %s is on %s\n", port, ports[port])
	}
	names, err := l.Namespaces()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  lab exec NAMESPACE -- COMMAND, with one of: %v\n", names)
	return nil
}
