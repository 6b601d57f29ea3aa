// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
)

// statusOptions are the options of command status.
type statusOptions struct {
	connection
	output
	watch bool
}

// Validate returns the first problem with the options, with its flag and value.
func (o *statusOptions) Validate() error {
	return o.validate()
}

func statusCommand() *cli.Command {
	var o statusOptions
	return &cli.Command{
		Name:  "status",
		Usage: "show L2Domains, pools, BGP sessions, and what is wrong",
		Description: `Shows each L2Domain with the active gateways of its shards, how full the pools are, the sessions of each
BGPPeer, and everything that is wrong, with commands that fix it. -o wide adds the order of the gateways.

Examples:
  kubectl slb status -o wide
  kubectl slb status --watch`,
		Flags: append(append(o.clusterFlags(), o.output.flags(formatJSON, formatYAML, formatWide)...),
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Destination: &o.watch,
				Usage: "show the status again whenever it changes, until interrupted"}),
		Action: func(c *cli.Context) error {
			if err := cmp.Or(o.Validate(), noArguments(c)); err != nil {
				return err
			}
			return o.run(c)
		},
	}
}

func (o *statusOptions) run(c *cli.Context) error {
	clients, err := o.connect(c.Context)
	if err != nil {
		return err
	}
	load := func(ctx context.Context) (string, error) { return o.text(ctx, clients, painter(c.App.Writer)) }
	if o.watch {
		w := &watch{load: load, timeout: refreshTimeout, screen: colours(c.App.Writer), out: c.App.Writer,
			err: c.App.ErrWriter}
		if o.format == formatYAML {
			w.separator = "---\n"
		}
		return w.run(c.Context)
	}
	text, err := load(c.Context)
	if err == nil {
		fmt.Fprint(c.App.Writer, text)
	}
	return err
}

func (o *statusOptions) text(ctx context.Context, clients *clients, paint explain.Paint) (string, error) {
	cluster, err := clients.load(ctx, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	overview := explain.Summarize(cluster, time.Now())
	if done, err := o.printAs(&b, overview); done || err != nil {
		return b.String(), err
	}
	printOverview(&b, overview, paint, o.format == formatWide, columns())
	return b.String(), nil
}

// table returns a writer of columns. Cells that are painted must be in the last column.
func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// printOverview prints an overview. Texts are wrapped at a width; 0 wraps none.
func printOverview(w io.Writer, v *explain.Overview, paint explain.Paint, wide bool, width int) {
	printDomains(w, v.Domains, paint, wide)
	if len(v.Pools) > 0 {
		t := table(w)
		fmt.Fprintln(t, "POOL\tIPv4\tIPv6\tSTATE")
		for _, p := range v.Pools {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, usage(p.External, p.IPv4), usage(p.External, p.IPv6),
				stateText(paint, p.State, p.Reason))
		}
		flush(t, w)
	}
	if len(v.Peers) > 0 {
		t := table(w)
		fmt.Fprintln(t, "BGP PEER\tADDRESS\tASN\tSESSIONS\tSTATE")
		for _, p := range v.Peers {
			state := stateText(paint, p.State, p.Reason)
			if p.Message != "" {
				state += ": " + p.Message
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%d of %d\t%s\n", p.Name, p.Address, p.ASN, p.Established, p.Sessions, state)
		}
		flush(t, w)
	}
	if slices.Contains(v.Unread, "services") {
		fmt.Fprintln(w, "Services: not read")
	} else {
		fmt.Fprintf(w, "Services: %d of %d announced\n", v.Announced, v.Services)
	}
	switch {
	case len(v.Findings) > 0:
		fmt.Fprintln(w, "\nWhat is wrong:")
	case len(v.Domains)+len(v.Pools)+len(v.Peers) == 0:
		fmt.Fprintln(w, "Nothing is configured: begin with an IPAddressPool, and with an L2Domain or a BGPPeer "+
			"(docs/getting-started.md).")
	default:
		fmt.Fprintln(w, paint(explain.OK, "Nothing is wrong, as far as the cluster shows."))
	}
	const indent = 10
	for _, f := range v.Findings {
		text := fmt.Sprintf("%s: %s: %s", f.Object, f.Reason, f.Message)
		fmt.Fprintf(w, "  %s %s\n", paint(f.State, fmt.Sprintf("%-7s", f.State)), explain.Wrap(text, indent, width))
		if f.Command != "" {
			fmt.Fprintf(w, "%*s%s\n", indent, "", f.Command)
		}
	}
	for _, note := range v.Notes {
		fmt.Fprintf(w, "\n%s\n", explain.Wrap("note: "+note, 0, width))
	}
}

func printDomains(w io.Writer, domains []explain.DomainOverview, paint explain.Paint, wide bool) {
	if len(domains) == 0 {
		return
	}
	t := table(w)
	head := "L2DOMAIN\tNETWORK\tNODES\tSHARDS: ACTIVE GATEWAY (ADDRESSES)\tSTATE"
	if wide {
		head = "L2DOMAIN\tNETWORK\tNODES\tSHARDS: GATEWAYS IN ORDER, *ACTIVE (ADDRESSES)\tSTATE"
	}
	fmt.Fprintln(t, head)
	for _, d := range domains {
		network := d.PhysicalNetwork
		if d.VLAN != 0 {
			network += fmt.Sprintf(" vlan %d", d.VLAN)
		}
		texts := shards(&d, wide)
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", d.Name, network, d.EligibleNodes, texts[0],
			stateText(paint, d.State, d.Reason))
		for _, text := range texts[1:] {
			fmt.Fprintf(t, "\t\t\t%s\t\n", text)
		}
	}
	flush(t, w)
}

// shards returns lines about the shards of a domain, at least one: one per active gateway or, if wide, one per shard.
func shards(d *explain.DomainOverview, wide bool) []string {
	if len(d.Shards) == 0 {
		return []string{"none in use"}
	}
	var lines, active []string
	indexes, addresses := map[string][]string{}, map[string]int32{}
	for _, s := range d.Shards {
		var gateways []string
		for _, name := range s.Gateways {
			if name == s.Active {
				name = "*" + name
			}
			gateways = append(gateways, name)
		}
		lines = append(lines, fmt.Sprintf("%d: %s (%d)", s.Index, strings.Join(gateways, " "), s.Addresses))
		name := cmp.Or(s.Active, "none")
		indexes[name] = append(indexes[name], fmt.Sprint(s.Index))
		addresses[name] += s.Addresses
		active = append(active, name)
	}
	if wide {
		return lines
	}
	slices.Sort(active)
	lines = nil
	for _, name := range slices.Compact(active) {
		lines = append(lines, fmt.Sprintf("%s: %s (%d)", strings.Join(indexes[name], " "), name, addresses[name]))
	}
	return lines
}

func flush(t *tabwriter.Writer, w io.Writer) {
	t.Flush()
	fmt.Fprintln(w)
}

func stateText(paint explain.Paint, s explain.State, reason string) string {
	if reason == "" {
		return paint(s, string(s))
	}
	return paint(s, string(s)) + " " + reason
}

// usage returns the usage of a family by a pool. Of a provider's pool only the addresses in use are known.
func usage(external bool, u explain.Usage) string {
	if external && u.Assigned > 0 {
		return fmt.Sprintf("%d in use", u.Assigned)
	}
	return bar(u)
}

// bar returns a picture of how many addresses are in use: from 0 to all. A mark is full (#) or in use for a part (:):
// a bar is empty only if no address is in use, and full only if none is available.
func bar(u explain.Usage) string {
	const width = 10
	used, available := uint64(u.Assigned)+uint64(u.CoolingDown), uint64(u.Available) //nolint:gosec // never negative
	all := used + available
	if all == 0 {
		return "-"
	}
	marks := float64(used) / float64(all) * width
	full := int(marks)
	partly := min(int(math.Ceil(marks)), width) - full
	text := fmt.Sprintf("[%s%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(":", partly),
		strings.Repeat(".", width-full-partly), u.Assigned, all)
	if u.CoolingDown > 0 {
		text += fmt.Sprintf(" (%d cooling down)", u.CoolingDown)
	}
	return text
}
