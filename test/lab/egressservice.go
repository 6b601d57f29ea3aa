// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// EgressService makes a node translate the connections that pods open to the outside to the given addresses, one per
// family, as OVN-Kubernetes does for an EgressService with sourceIPBy LoadBalancerIP (pkg/ovn/controller/egressservice,
// pkg/node/controllers/egressservice). The host has an address on the provider segment then, and its Node says that the
// node's gateway is there. The returned function reverts this.
func (l *Lab) EgressService(ctx context.Context, node string, pods [][]netip.Addr,
	vips []netip.Addr) (func(context.Context) error, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	undoRows, err := l.egressPolicies(ctx, n, pods)
	if err != nil {
		return nil, fmt.Errorf("egress of %v via %s: %w", pods, node, err)
	}
	if err := l.egressHost(ctx, n, "replace", pods, vips); err != nil {
		return nil, fmt.Errorf("egress of %v via %s: %w", pods, node, err)
	}
	undoNode, err := l.gatewayOnProvider(ctx, n)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := undoNode(ctx); err != nil {
			return err
		}
		if err := l.egressHost(ctx, n, "del", nil, nil); err != nil {
			return err
		}
		_, err := l.EachNB(ctx, undoRows...)
		return err
	}, l.Settle(ctx)
}

// egressPolicies routes what pods send to the outside to the management port of a node. It returns the arguments of
// ovn-nbctl that revert this.
func (l *Lab) egressPolicies(ctx context.Context, n Node, pods [][]netip.Addr) (undo nbctl, err error) {
	var steps []nbctl
	for range l.zones() {
		steps = append(steps, nil)
	}
	for i, cluster := range clusterSubnets() {
		within := fmt.Sprintf("%[1]s.src == %[2]s && %[1]s.dst == %[2]s", family(cluster.Addr()), cluster)
		undo.do("lr-policy-del", clusterRouter, "102", within)
		undo.do("--if-exists", "--policy=src-ip", "lr-route-del", clusterRouter, cluster.String())
		for k, z := range l.zones() {
			hop := n.ManagementPort()[i].String()
			if !z.has(n) {
				hop = n.Transit[i].Addr().String()
			}
			c := &steps[k]
			c.do("lr-policy-add", clusterRouter, "102", within, "allow")
			if l.state.Network.Zones() && z.has(n) {
				// OVN drops what has no route before it applies policies, and the zone has routes for its own pods only.
				c.do("--policy=src-ip", "lr-route-add", clusterRouter, cluster.String(), hop)
			}
			for _, pod := range pods {
				c.do("lr-policy-add", clusterRouter, "101", fmt.Sprintf("%s.src == %s", family(pod[i]), pod[i]), "reroute", hop)
			}
		}
		for _, pod := range pods {
			undo.do("lr-policy-del", clusterRouter, "101", fmt.Sprintf("%s.src == %s", family(pod[i]), pod[i]))
		}
	}
	for k, z := range l.zones() {
		if _, err := l.zoneNB(ctx, z, steps[k]...); err != nil {
			return nil, err
		}
	}
	return undo, nil
}

// egressHost gives the host of a node its addresses on the provider segment and the rules that translate the addresses
// of pods, or removes them (verb del).
func (l *Lab) egressHost(ctx context.Context, n Node, verb string, pods [][]netip.Addr, vips []netip.Addr) error {
	if err := setSysctls(l.Netns(n.Name), map[string]string{
		"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1",
	}); err != nil {
		return err
	}
	lines := []string{"link set br-provider up"}
	for i, own := range Provider().Host(nodeHosts + n.Index) {
		route := fmt.Sprintf("route %s %s via %s dev br-provider", verb, Beyond().Subnets[i],
			Provider().Host(routerHost)[i].Addr())
		address := fmt.Sprintf("addr %s %s dev br-provider", verb, own)
		if verb == "del" {
			lines = append(lines, route, address)
		} else {
			lines = append(lines, address+" nodad", route)
		}
	}
	if err := ip.Batch(ctx, l.Netns(n.Name), lines...); err != nil {
		return err
	}
	var rules strings.Builder
	fmt.Fprintf(&rules, "table inet egress-services {}\ndelete table inet egress-services\n")
	if verb != "del" {
		fmt.Fprintf(&rules, "table inet egress-services {\n\tchain egress-services {\n"+
			"\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\toifname %q return\n", mp0)
		for _, pod := range pods {
			for i, addr := range pod {
				match := []string{"ip", "ip6"}[i]
				fmt.Fprintf(&rules, "\t\t%s saddr %s snat to %s\n", match, addr, vips[i])
			}
		}
		rules.WriteString("\t}\n}\n")
	}
	_, err := feed(ctx, rules.String(), l.inside(n.Name, "nft", "-f", "-")...)
	return err
}

// gatewayOnProvider writes into a Node that the node's gateway is on the provider segment. The returned function
// reverts this.
func (l *Lab) gatewayOnProvider(ctx context.Context, n Node) (func(context.Context) error, error) {
	link, err := l.Exec(ctx, n.Name, "ip", "-j", "link", "show", "br-provider")
	if err != nil {
		return nil, err
	}
	var links []struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal([]byte(link), &links); err != nil || len(links) != 1 {
		return nil, fmt.Errorf("MAC address of br-provider of %s: %q: %w", n.Name, link, err)
	}
	client, err := l.Client()
	if err != nil {
		return nil, err
	}
	const annotation = annotationPrefix + "l3-gateway-config"
	annotate := func(ctx context.Context, value string) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
			annotation: value}}})
		if err != nil {
			return fmt.Errorf("annotation %s: %w", annotation, err)
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	object, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	before := object.Annotations[annotation]
	var networks map[string]map[string]any
	if err := json.Unmarshal([]byte(before), &networks); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", annotation, err)
	}
	// The bridge stays: on its own gateway's bridge OVN-Kubernetes has flows, which the model lacks.
	networks["default"]["mac-address"] = links[0].Address
	networks["default"]["ip-addresses"] = texts(Provider().Host(nodeHosts + n.Index))
	moved, err := json.Marshal(networks)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", annotation, err)
	}
	return func(ctx context.Context) error { return annotate(ctx, before) }, annotate(ctx, string(moved))
}
