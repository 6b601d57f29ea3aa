// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
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
		ArgsUsage: "SERVICE | NAMESPACE/SERVICE | ADDRESS",
		Description: `Follows the path Service, pool, address, L2Domain, shard, gateway, dataplane, clients, endpoints, BGP.
The first broken link is named first, with its cause and a command that fixes it. For an IP address, shows which
Services have it, with the path to each, or whether a pool can allocate it.

Exit code: 0 reachable, 3 not (known to be) reachable, 1 error.

Examples:
  kubectl slb explain web -n shop
  kubectl slb explain shop/web --from 198.51.100.7
  kubectl slb explain shop/web --probe
  kubectl slb explain 192.0.2.10`,
		Flags: append(append(o.connection.flags(), o.output.flags(formatJSON, formatYAML)...),
			&cli.StringFlag{Name: "from", Destination: &o.from, Usage: "`ADDRESS` of a client: also checks whether it is " +
				"admitted, and answers for its IP family"},
			&cli.BoolFlag{Name: "probe", Destination: &o.probe, Usage: "open a TCP connection from this machine to each " +
				"address and port, and say what was observed"}),
		Action: withArgument("SERVICE or ADDRESS", o.Validate, func(c *cli.Context, name string) error {
			address, err := addressArgument(name)
			switch {
			case err != nil:
				return err
			case address.IsValid():
				return o.runAddress(c, address)
			}
			return o.run(c, name)
		}),
	}
}

func (o *explainOptions) run(c *cli.Context, name string) error {
	clients, err := o.connect(c.Context)
	if err != nil {
		return err
	}
	key := serviceKey(name, clients.namespace)
	cluster, err := clients.load(c.Context, &key)
	if apierrors.IsNotFound(err) { // only of the Service: load reports other kinds that are absent by its own text
		return clients.notFound(c.Context, key)
	}
	if err != nil {
		return err
	}
	if err := kube.LoadPolicies(c.Context, clients.core, cluster, key.Namespace); err != nil {
		return err
	}
	question := o.question(key)
	if o.probe {
		question.Probes = probe(c.Context, explain.Targets(cluster.Service(key), &question))
	}
	question.Now = time.Now()
	result := explain.Explain(cluster, question)
	return o.print(c, result, result.Reachable == explain.Yes)
}

// runAddress explains an address instead of a Service.
func (o *explainOptions) runAddress(c *cli.Context, address netip.Addr) error {
	clients, err := o.connect(c.Context)
	if err != nil {
		return err
	}
	cluster, err := clients.loadServices(c.Context)
	if err != nil {
		return err
	}
	namespaces := explain.NamespacesOf(cluster, address)
	if err := kube.LoadPolicies(c.Context, clients.core, cluster, namespaces...); err != nil {
		return err
	}
	question := o.question(world.Key{})
	if o.probe {
		question.Probes = probe(c.Context, explain.AddressTargets(cluster, address, question))
	}
	question.Now = time.Now()
	result := explain.Address(cluster, address, question)
	return o.print(c, result, result.Reachable())
}

func (o *explainOptions) question(service world.Key) explain.Question {
	from, _ := netip.ParseAddr(o.from) // validated
	return explain.Question{Service: service, From: from}
}

// answer is what explain prints.
type answer interface {
	Text(paint explain.Paint, width int) string
}

func (o *explainOptions) print(c *cli.Context, result answer, reachable bool) error {
	if done, err := o.printAs(c.App.Writer, result); err != nil {
		return err
	} else if !done {
		fmt.Fprint(c.App.Writer, result.Text(painter(c.App.Writer), columns()))
	}
	if !reachable {
		return errNotReachable
	}
	return nil
}

// addressArgument returns the IP address that an argument is, the zero Addr if it names a Service. Names of Services
// contain neither dots nor colons (RFC 1035 labels).
func addressArgument(text string) (netip.Addr, error) {
	_, name, qualified := strings.Cut(text, "/")
	if !qualified {
		name = text
	}
	if _, err := netip.ParsePrefix(text); err == nil {
		return netip.Addr{}, fmt.Errorf("explain: %q is a subnet: want an IP address without a prefix length", text)
	}
	a, err := netip.ParseAddr(text)
	switch {
	case err == nil && a.Zone() != "":
		return netip.Addr{}, fmt.Errorf("explain: %q has a zone, which no address of a Service has", text)
	case err != nil && strings.ContainsAny(name, ".:"):
		return netip.Addr{}, fmt.Errorf("explain: %q is neither an IP address nor the name of a Service", text)
	}
	return a, nil
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
