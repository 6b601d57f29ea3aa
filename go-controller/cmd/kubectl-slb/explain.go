// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// explainOptions are the options of command explain.
type explainOptions struct {
	connection
	output
	from  string
	probe bool
}

// Validate returns the first problem with the options, with its flag and value.
func (o *explainOptions) Validate() error {
	if _, err := netip.ParseAddr(o.from); err != nil && o.from != "" {
		return fmt.Errorf("--from %q: not an IP address", o.from)
	}
	return o.validate()
}

func explainCommand() *cli.Command {
	var o explainOptions
	return &cli.Command{
		Name:      "explain",
		Usage:     "show whether a Service is reachable, and the first broken link on the way to it",
		ArgsUsage: "SERVICE | NAMESPACE/SERVICE",
		Description: `Follows the path Service, pool, address, L2Domain, shard, gateway, dataplane, clients, endpoints, BGP.
The first broken link is named first, with its cause and a command that fixes it.

Exit code: 0 reachable, 3 not (known to be) reachable, 1 error.

Examples:
  kubectl slb explain web -n shop
  kubectl slb explain shop/web --from 198.51.100.7
  kubectl slb explain shop/web --probe`,
		Flags: append(append(o.connection.flags(), o.output.flags(formatJSON, formatYAML)...),
			&cli.StringFlag{Name: "from", Destination: &o.from, Usage: "`ADDRESS` of a client: also checks whether it is " +
				"admitted, and answers for its IP family"},
			&cli.BoolFlag{Name: "probe", Destination: &o.probe, Usage: "open a TCP connection from this machine to each " +
				"address and port, and say what was observed"}),
		Action: func(c *cli.Context) error {
			if err := o.Validate(); err != nil {
				return err
			}
			name, err := oneArgument(c, "SERVICE")
			if err != nil {
				return err
			}
			return o.run(c, name)
		},
	}
}

func (o *explainOptions) run(c *cli.Context, name string) error {
	clients, err := o.connect()
	if err != nil {
		return err
	}
	key := serviceKey(name, clients.namespace)
	cluster, err := clients.load(c.Context, &key)
	if err != nil {
		return err
	}
	from, _ := netip.ParseAddr(o.from) // validated
	question := explain.Question{Service: key, From: from}
	if o.probe {
		question.Probes = probe(c.Context, explain.Targets(cluster.Service(key), from))
	}
	question.Now = time.Now()
	result := explain.Explain(cluster, question)
	if done, err := o.printAs(c.App.Writer, result); err != nil {
		return err
	} else if !done {
		fmt.Fprint(c.App.Writer, result.Text(painter(c.App.Writer), columns()))
	}
	if result.Reachable != explain.Yes {
		return errNotReachable
	}
	return nil
}

// serviceKey reads NAMESPACE/NAME or NAME.
func serviceKey(text, namespace string) world.Key {
	if before, name, ok := strings.Cut(text, "/"); ok && before != "service" && before != "svc" && before != "services" {
		return world.Key{Namespace: before, Name: name}
	}
	_, name, ok := strings.Cut(text, "/")
	if !ok {
		name = text
	}
	return world.Key{Namespace: namespace, Name: name}
}
