// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// AS numbers of the nodes and of the router.
const (
	NodeASN   = 64512
	RouterASN = 64513
)

// BGPSegment returns the segment on which the nodes open their sessions to the router. It is the LAN, or the provider
// segment if the LAN address of a node belongs only to its gateway router, as in the model.
func (l *Lab) BGPSegment() Segment {
	if l.state.Network.Real() {
		return LAN()
	}
	return Provider()
}

// SpeakBGP starts the node agent with BGP on all nodes and configures the router to accept their sessions on
// BGPSegment. The returned function reverts this.
func (l *Lab) SpeakBGP(ctx context.Context, rights, program string, flags ...string) (func(context.Context) error,
	error) {
	if _, err := l.Kubectl(ctx, "", "apply", "-f", rights); err != nil {
		return nil, err
	}
	if err := l.StartRouterBGP(ctx); err != nil {
		return nil, err
	}
	// Distribute the flows of one client over all next hops.
	if err := setSysctls(l.Netns(routerNetns), map[string]string{
		"net/ipv4/fib_multipath_hash_policy": "1", "net/ipv6/fib_multipath_hash_policy": "1",
	}); err != nil {
		return nil, err
	}
	if err := l.onProvider(ctx, "replace"); err != nil {
		return nil, err
	}
	// On br-ex the guards already run, so the L2 guard stays enabled.
	guarded := l.state.Network.Segment == OnLAN
	if err := l.KillGuards(); err != nil {
		return nil, err
	}
	all := append([]string{"--enable-bgp", fmt.Sprintf("--enable-l2-guard=%t", guarded)}, flags...)
	if err := l.StartGuards(ctx, program, all...); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := l.stopBGP(ctx); err != nil || !guarded && !l.state.Network.Zones() {
			return err
		}
		return l.StartGuards(ctx, program)
	}, nil
}

// StartRouterBGP configures the router to accept sessions of the nodes. It is passive, as docs/examples/frr.conf
// recommends. The lines, in the syntax of frr.conf, follow those of the peer group "nodes". StopRouterBGP reverts it.
func (l *Lab) StartRouterBGP(ctx context.Context, lines ...string) error {
	segment := l.BGPSegment().Subnets
	return l.Router().Configure(ctx, slices.Concat([]string{
		fmt.Sprintf("router bgp %d", RouterASN), " bgp router-id " + hosts(segment, routerHost)[0].Addr().String(),
		" no bgp ebgp-requires-policy", " bgp graceful-restart",
		" bgp bestpath as-path multipath-relax", " neighbor nodes peer-group",
		fmt.Sprintf(" neighbor nodes remote-as %d", NodeASN), " neighbor nodes passive", " neighbor nodes bfd 5 300 300",
	}, lines, []string{
		" bgp listen range " + segment[0].String() + " peer-group nodes", " address-family ipv4 unicast",
		"  maximum-paths 64", " exit-address-family",
		" address-family ipv6 unicast", "  neighbor nodes activate", "  maximum-paths 64", " exit-address-family",
	})...)
}

// StopRouterBGP removes BGP from the router: it withdraws all routes and refuses connections.
func (l *Lab) StopRouterBGP(ctx context.Context) error {
	return l.Router().Configure(ctx, fmt.Sprintf("no router bgp %d", RouterASN))
}

func (l *Lab) stopBGP(ctx context.Context) error {
	if err := l.KillGuards(); err != nil {
		return err
	}
	if err := l.onProvider(ctx, "del"); err != nil {
		return err
	}
	return l.StopRouterBGP(ctx)
}

// onProvider adds or removes the nodes' own addresses on the provider segment, which BGP needs.
func (l *Lab) onProvider(ctx context.Context, verb string) error {
	if l.state.Network.Real() {
		return nil
	}
	for _, n := range l.Nodes {
		// After a restart of Open vSwitch the bridge's local port is new and down.
		lines := []string{"link set br-provider up"}
		for _, a := range Provider().Host(nodeHosts + n.Index) {
			lines = append(lines, fmt.Sprintf("addr %s %s dev br-provider", verb, a))
		}
		if err := ip.Batch(ctx, l.Netns(n.Name), lines...); err != nil {
			return err
		}
	}
	return nil
}

// ServiceOnRouters makes the gateway routers of all nodes serve an address and port of a Service, as OVN-Kubernetes
// does for the addresses in its status. The returned function reverts this.
func (l *Lab) ServiceOnRouters(ctx context.Context, service string, vip netip.AddrPort,
	backends []netip.AddrPort) (func(context.Context) error, error) {
	if l.state.Network.Real() { // OVN-Kubernetes does this itself.
		return func(context.Context) error { return nil }, nil
	}
	name := fmt.Sprintf("Service_default/%s_TCP_node_router+switch_merged_%s", service, vip.Addr())
	args := []string{
		"--id=@lb", "create", "Load_Balancer", "name=" + quote(name), "protocol=tcp",
		"external_ids:k8s.ovn.org/kind=Service", "external_ids:k8s.ovn.org/owner=default/" + service,
		"options:event=false", "options:reject=true", "options:skip_snat=false", "options:neighbor_responder=none",
		fmt.Sprintf("vips:%s=%s", quote(vip.String()), quote(strings.Join(texts(backends), ","))),
	}
	for _, z := range l.zones() {
		rows := slices.Clone(args)
		for _, n := range z.nodes {
			rows = append(rows, "--", "add", "Logical_Router", "GR_"+n.Name, "load_balancer", "@lb")
		}
		if _, err := l.zoneNB(ctx, z, rows...); err != nil {
			return nil, fmt.Errorf("load balancer of %s: %w", vip, err)
		}
	}
	return func(ctx context.Context) error { _, err := l.EachNB(ctx, "lb-del", name); return err }, l.Settle(ctx)
}
