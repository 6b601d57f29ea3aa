// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/preview"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// drainOptions are the options of commands drain and undrain.
type drainOptions struct {
	connection
	output
	reason  string
	dryRun  bool
	force   bool
	wait    bool
	timeout time.Duration
}

// Validate returns the first problem with the options, with its flag and value.
func (o *drainOptions) Validate() error {
	if o.timeout < 0 {
		return fmt.Errorf("--timeout %s: is negative", o.timeout)
	}
	return o.validate()
}

func drainCommand() *cli.Command {
	var o drainOptions
	return &cli.Command{
		Name:      "drain",
		Usage:     "move the shards of a node to other gateways, and withdraw its BGP routes",
		ArgsUsage: "NODE",
		Description: `Sets the annotation ` + v1alpha1.AnnotationDrain + ` on the Node, which affects only this product:
the label node.kubernetes.io/exclude-from-external-load-balancers has the same effect here, and others besides. Shows
which Services move and where to (-o wide: all of them), and waits until they have. Pods stay; kubectl drain moves them.
Refuses if Services would no longer be announced, because no other node advertises them by BGP, or would stay on the
node, because it is the last gateway of their L2Domain, or if you must not read what shows that; --force drains all the
same.

Examples:
  kubectl slb drain n1 --dry-run
  kubectl slb drain n1 --reason 'new kernel'`,
		Flags: append(append(o.clusterFlags(), o.output.flags(formatWide)...),
			&cli.StringFlag{Name: "reason", Destination: &o.reason, Value: "kubectl slb drain",
				Usage: "`TEXT` for other administrators"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dryRun, Usage: "show what would move, and change nothing"},
			&cli.BoolFlag{Name: "force", Destination: &o.force,
				Usage: "drain although Services have no other node: routes are withdrawn, and shards stay"},
			&cli.BoolFlag{Name: "wait", Destination: &o.wait, Value: true,
				Usage: "wait until the node is active for no shard and advertises no route by BGP"},
			&cli.DurationFlag{Name: "timeout", Destination: &o.timeout, Value: 2 * time.Minute, Usage: "`DURATION` to wait at most"}),
		Action: withArgument("NODE", o.Validate, o.drain),
	}
}

func undrainCommand() *cli.Command {
	var o drainOptions
	return &cli.Command{
		Name:      "undrain",
		Usage:     "let a node carry shards and advertise routes again",
		ArgsUsage: "NODE",
		Description: `Removes the annotation ` + v1alpha1.AnnotationDrain + ` from the Node. Shards that have moved stay
where they are, unless the L2Domain sets preempt. Names other signals that still drain the node.

Examples:
  kubectl slb undrain n1`,
		Flags: append(append(o.clusterFlags(), o.output.flags(formatWide)...),
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dryRun, Usage: "show what would move, and change nothing"}),
		Action: withArgument("NODE", o.Validate, o.undrain),
	}
}

// needs returns the resources without which the command can't do what it is asked for.
func (o *drainOptions) needs(cluster *objects.Objects) []string {
	switch {
	case o.dryRun:
		return decisive()
	case o.wait:
		return append(carrying(cluster), "nodes")
	}
	return []string{"nodes"}
}

// change shows what an edit of the annotation of a node moves, and makes it. A nil value removes the annotation. It
// returns the node as it was before.
func (o *drainOptions) change(c *cli.Context, name string, value *string) (*clients, *corev1.Node, error) {
	clients, err := o.connect(c.Context)
	if err != nil {
		return nil, nil, err
	}
	before, err := clients.load(c.Context, nil)
	if err == nil {
		err = requireRead(before, o.needs(before)...)
	}
	if err != nil {
		return nil, nil, err
	}
	n := objects.Named(before.Nodes, name)
	if n == nil {
		return nil, nil, fmt.Errorf("node %q: not found", name)
	}
	edited := n.DeepCopy()
	if edited.Annotations == nil {
		edited.Annotations = map[string]string{}
	}
	delete(edited.Annotations, v1alpha1.AnnotationDrain)
	if value != nil {
		edited.Annotations[v1alpha1.AnnotationDrain] = *value
	}
	var refused error
	if err := requireRead(before, decisive()...); err != nil && !o.force {
		refused = fmt.Errorf("node %s is not drained: what moves is not known: %w; --force drains it all the same", name, err)
	} else if err != nil {
		fmt.Fprintf(c.App.Writer, "What moves is not known: %v\n", err)
	} else {
		after := before.Clone()
		after.Nodes[slices.Index(before.Nodes, n)] = edited
		refused = o.show(c, before, after, name)
	}
	if o.dryRun {
		fmt.Fprintln(c.App.Writer, "dry run: nothing was changed")
		return clients, n, refused
	}
	if refused != nil {
		return nil, nil, refused
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{v1alpha1.AnnotationDrain: value}}})
	if err != nil {
		return nil, nil, fmt.Errorf("encode the annotation: %w", err)
	}
	_, err = clients.core.CoreV1().Nodes().Patch(c.Context, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("set annotation %s of node %s: %w", v1alpha1.AnnotationDrain, name, err)
	}
	return clients, n, nil
}

// show shows what an edit of the annotation of a node moves. It returns why a node is not drained, nil if it is.
func (o *drainOptions) show(c *cli.Context, before, after *objects.Objects, node string) error {
	now := time.Now()
	changes := preview.Compare(before, after, now)
	moves := changes.Moves()
	text := shownChanges(moves.Text(o.format == formatWide), painter(c.App.Writer), columns())
	fmt.Fprint(c.App.Writer, cmp.Or(text, "Nothing moves.\n"))
	if outdated := explain.ControllerSilent(before, now); outdated != "" {
		fmt.Fprintln(c.App.Writer, explain.Wrap(explain.LeaseName(before.Leader)+": "+outdated, 0, columns()))
	}
	closes := func(s preview.SessionChange) bool { return slices.Contains(s.Closed, node) }
	if slices.ContainsFunc(moves.Sessions, closes) {
		fmt.Fprintln(c.App.Writer, explain.Wrap("Established connections that routers send to node "+node+" are reset, "+
			"because other nodes do not know them, unless the BGPAdvertisement has nextHop: Gateway.", 0, columns()))
	}
	if n := objects.Named(before.Nodes, node); n != nil && n.Annotations[v1alpha1.AnnotationDrain] == "" {
		if stays := throughHost(before, n); stays != "" {
			fmt.Fprintln(c.App.Writer, explain.Wrap(stays, 0, columns()))
		}
	}
	if o.force {
		return nil
	}
	most := maxRefused
	if o.format == formatWide {
		most = math.MaxInt
	}
	return refusal(node, changes.Losing(), preview.Staying(after, node, now), most)
}

func (o *drainOptions) drain(c *cli.Context, name string) error {
	clients, _, err := o.change(c, name, &o.reason)
	if err != nil || o.dryRun {
		return err
	}
	fmt.Fprintf(c.App.Writer, "node %s drains\n", name)
	if !o.wait {
		return nil
	}
	left, stays := "its state is not known yet", false
	err = wait.PollUntilContextTimeout(c.Context, time.Second, o.timeout, true, func(ctx context.Context) (bool, error) {
		cluster, err := clients.loadNode(ctx, name)
		if err == nil {
			err = requireRead(cluster, carrying(cluster)...)
		}
		if err != nil {
			return false, err
		}
		left, stays = remaining(cluster, name, time.Now())
		return left == "" || stays, nil
	})
	switch {
	case err == nil && stays:
		return fmt.Errorf("node %s drains, and keeps what has no other gateway: %s; the drain ends when another gateway can "+
			"take over (kubectl slb undrain NODE)", name, left)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("node %s has not drained within %s (--timeout): %s", name, o.timeout, left)
	case err != nil:
		return fmt.Errorf("wait until node %s has drained: %w", name, err)
	}
	fmt.Fprintf(c.App.Writer, "node %s has drained: it is active for no shard and advertises no route by BGP\n", name)
	return nil
}

// carrying returns the resources that show what a node carries.
func carrying(cluster *objects.Objects) []string {
	list := []string{"l2domains", "bgpnodestatuses", "bgppeers"}
	if slices.ContainsFunc(cluster.Domains, servedByZones) {
		list = append(list, "leases")
	}
	if cluster.UsesFRR() {
		list = append(list, frr.Configurations, frr.NodeStates, frr.SessionStates)
	}
	return list
}

func servedByZones(d *v1alpha1.L2Domain) bool { return d.Status.Mode == string(world.ServedByZones) }

// remaining returns what a draining node still carries; empty if there is nothing. stays means that none of it moves
// until something else changes: all gateways of these L2Domains drain. What is left stays for another reason while no
// controller works. In central mode, then, a status does not show which gateway OVN has chosen since.
func remaining(cluster *objects.Objects, name string, now time.Time) (left string, stays bool) {
	var parts []string
	stays = true
	agent := aliveAgent(cluster, name, now)
	onShards, outdated := false, explain.ControllerSilent(cluster, now)
	for _, d := range cluster.Domains {
		ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		allDrain := ready != nil && ready.Reason == v1alpha1.ReasonGatewaysDraining
		for _, s := range d.Status.Shards {
			if s.Active != name {
				if text := unreleased(d, s.Index, agent); text != "" {
					stays, onShards = false, true
					parts = append(parts, fmt.Sprintf("%s, of which %s is the active gateway now", text, cmp.Or(s.Active, "none")))
				} else if why, known := activeIsKnown(ready, outdated); !known && !servedByZones(d) &&
					slices.Contains(s.Gateways, name) {
					stays = false
					parts = append(parts, fmt.Sprintf("shard %s/%d, whose active gateway is not known now%s", d.Name, s.Index, why))
				}
				continue
			}
			onShards = true
			text := fmt.Sprintf("shard %s/%d with %s", d.Name, s.Index, world.Count(s.Addresses, "address"))
			switch {
			case allDrain:
				text += ", all of whose gateways drain"
			case len(s.Gateways) == 1:
				text += ", which has no other gateway"
			}
			stays = stays && allDrain
			parts = append(parts, text)
		}
	}
	if status := objects.Named(cluster.NodeStatuses, name); status != nil {
		for _, s := range status.Status.Sessions {
			if s.State == v1alpha1.BGPEstablished {
				stays = false
				parts = append(parts, "the session with BGPPeer "+s.Peer)
			}
		}
	}
	if routes := routesInFRR(cluster, name, now); len(routes) > 0 {
		stays = false
		parts = append(parts, routes...)
	}
	if left = strings.Join(parts, ", "); left == "" {
		return "", false
	}
	if onShards && agent != nil && agent.Silent {
		left += fmt.Sprintf("; the agent of node %s does not report (ovnkube-slb node --enable-l2), so its zone does not "+
			"learn that a shard moves, and may go on answering: restart the agent, or stop OVN there", name)
	}
	if outdated != "" {
		left += "; " + explain.LeaseName(cluster.Leader) + ": " + outdated
	}
	return left, stays
}

// activeIsKnown reports whether the status of an L2Domain, in central mode, shows which gateway OVN has chosen, and why
// if that is not outdated, which is why no controller observes it.
func activeIsKnown(ready *metav1.Condition, outdated string) (why string, known bool) {
	switch {
	case outdated != "":
		return "", false
	case ready != nil && ready.Status == metav1.ConditionUnknown:
		return " (" + ready.Reason + ")", false
	}
	return "", true
}

// aliveAgent returns what the agent of a node has reported, nil if there is none, or if the node is lost.
func aliveAgent(cluster *objects.Objects, name string, now time.Time) *world.ZoneAgent {
	n := objects.Named(cluster.Nodes, name)
	if n == nil {
		return nil
	}
	if is := cluster.Node(n, now); !is.Unreachable {
		return is.Agent
	}
	return nil
}

// unreleased describes a shard that a node has not released according to the last report of its agent, although it is
// not the active gateway; empty if it has.
func unreleased(d *v1alpha1.L2Domain, index int32, agent *world.ZoneAgent) string {
	id := world.ShardID{Domain: d.Name, Index: int(index)}
	if !servedByZones(d) || agent == nil || agent.Claims[id].IsZero() {
		return ""
	}
	return fmt.Sprintf("shard %s, which its agent has not reported as released", id.Name())
}

// routesInFRR returns what FRR on a node advertises for us, by peer, or that this is not known.
func routesInFRR(cluster *objects.Objects, node string, now time.Time) []string {
	if !cluster.UsesFRR() {
		return nil
	}
	w := cluster.Snapshot(now)
	var parts []string
	for _, peer := range frrk8s.Advertised(w, node) {
		parts = append(parts, "routes of FRR to BGPPeer "+peer)
	}
	for peer, s := range w.Sessions[node] {
		if s.ByFRR && s.Unknown {
			parts = append(parts, "routes of FRR to BGPPeer "+peer+", if any: "+s.Problem)
		}
	}
	slices.Sort(parts)
	return parts
}

func (o *drainOptions) undrain(c *cli.Context, name string) error {
	o.force = true // Nothing is lost.
	_, n, err := o.change(c, name, nil)
	if err != nil || o.dryRun {
		return err
	}
	_, had := n.Annotations[v1alpha1.AnnotationDrain]
	delete(n.Annotations, v1alpha1.AnnotationDrain)
	other := convert.Node(n, convert.Options{DrainTaints: convert.DefaultDrainTaints()}).Draining
	switch {
	case other != "":
		fmt.Fprintf(c.App.Writer, "node %s still drains: %s\n", name, other)
	case !had:
		fmt.Fprintf(c.App.Writer, "node %s does not drain: it had no annotation %s\n", name, v1alpha1.AnnotationDrain)
	default:
		fmt.Fprintf(c.App.Writer, "node %s no longer drains; shards that have left it return only if "+
			"their L2Domain sets failover.preempt\n", name)
	}
	return nil
}
