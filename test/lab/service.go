// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// Served is one port of a Service as OVN-Kubernetes serves it on a node for clients on the node itself: connections to
// the VIP are sent to the ClusterIP, which is load balanced to the pods. Addresses have IPv4 first, then IPv6.
type Served struct {
	Name, Protocol   string
	VIPs, ClusterIPs []netip.Addr
	Port, Target     uint16
	Pods             [][]netip.Addr // by pod
}

// ServeOnNode makes Services reachable for clients on the node itself without traversing the segment, as OVN-Kubernetes
// does: DNAT to the ClusterIP on the host, then br-ex to the gateway router, which has a load balancer. The returned
// function reverts this.
func (l *Lab) ServeOnNode(ctx context.Context, node string, services ...Served) (func(context.Context) error, error) {
	n, err := l.Node(node)
	if err != nil || l.state.Network.Real() { // OVN-Kubernetes does this itself.
		return func(context.Context) error { return nil }, err
	}
	unbridge, err := l.bridgeHost(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("services on node %s: %w", node, err)
	}
	rules := []string{"table inet services {}", "flush table inet services",
		"table inet services {\n\tchain output {\n\t\ttype nat hook output priority -100; policy accept;"}
	var c, undo nbctl
	for _, s := range services {
		name := fmt.Sprintf("Service_default/%s_%s_cluster", s.Name, strings.ToUpper(s.Protocol))
		lb := []string{
			"--id=@" + s.Protocol, "create", "Load_Balancer", "name=" + quote(name), "protocol=" + s.Protocol,
			"external_ids:k8s.ovn.org/kind=Service", "external_ids:k8s.ovn.org/owner=default/" + s.Name,
			"options:event=false", "options:reject=true", "options:skip_snat=false", "options:neighbor_responder=none",
		}
		for i, vip := range s.VIPs {
			ip := []string{"ip", "ip6"}[i]
			at := netip.AddrPortFrom(s.ClusterIPs[i], s.Port)
			rules = append(rules, fmt.Sprintf("\t\t%s daddr %s %s dport %d dnat %s to %s", ip, vip, s.Protocol, s.Port, ip, at))
			var pods []string
			for _, pod := range s.Pods {
				pods = append(pods, netip.AddrPortFrom(pod[i], s.Target).String())
			}
			lb = append(lb, fmt.Sprintf("vips:%s=%s", quote(at.String()), quote(strings.Join(pods, ","))))
		}
		c.do(lb...)
		c.do("add", "Logical_Router", "GR_"+node, "load_balancer", "@"+s.Protocol)
		undo.do("lb-del", name)
	}
	rules = append(rules, "\t}\n\tchain postrouting {\n\t\ttype nat hook postrouting priority srcnat; policy accept;")
	for i, own := range addrsOf(hosts(masqueradeSubnets(), 2)) {
		ip := []string{"ip", "ip6"}[i]
		rules = append(rules, fmt.Sprintf("\t\toifname \"br-ex\" %s daddr %s snat %s to %s", ip, serviceSubnets()[i], ip,
			own))
	}
	rules = append(rules, "\t}\n}", "")
	if _, err := feed(ctx, strings.Join(rules, "\n"), l.inside(node, "nft", "-f", "-")...); err != nil {
		return nil, fmt.Errorf("services on node %s: %w", node, err)
	}
	for i, hop := range addrsOf(hosts(masqueradeSubnets(), 4)) {
		c.do("lr-route-add", "GR_"+node, masqueradeSubnets()[i].String(), hop.String(), "rtoe-GR_"+node)
		undo.do("lr-route-del", "GR_"+node, masqueradeSubnets()[i].String())
		c.do("static-mac-binding-add", "rtoe-GR_"+node, hop.String(), masqueradeMAC)
		undo.do("static-mac-binding-del", "rtoe-GR_"+node, hop.String())
	}
	z := l.zoneOf(n)
	if _, err := l.zoneNB(ctx, z, c...); err != nil {
		return nil, fmt.Errorf("services on node %s: %w", node, err)
	}
	return func(ctx context.Context) error {
		_, dnat := l.Exec(ctx, node, "nft", "delete", "table", "inet", "services")
		_, rows := l.zoneNB(ctx, z, undo...)
		return errors.Join(dnat, unbridge(ctx), rows)
	}, l.Settle(ctx)
}

// masqueradeMAC is the MAC address that OVN-Kubernetes assigns to the next hop between a host and its gateway router.
// No device has it.
const masqueradeMAC = "0a:58:a9:fe:a9:04"

// bridgeHost connects a host to Services through its br-ex. It configures the address and the routes that
// OVN-Kubernetes gives the host, and the flows that forward its packets to the gateway router and back. The host
// translates its own address, instead of the bridge. The returned function reverts this.
func (l *Lab) bridgeHost(ctx context.Context, n Node) (undo func(context.Context) error, err error) {
	own, hop, router := hosts(masqueradeSubnets(), 2), addrsOf(hosts(masqueradeSubnets(), 4)),
		addrsOf(LAN().Host(routerHost))
	var lines, undone []string
	number, err := l.vsctl(ctx, n, "get", "Interface", "patch-br-ex_"+n.Name+"-to-br-int", "ofport")
	if err != nil {
		return nil, err
	}
	patch := strings.TrimSpace(number)
	bridge := "unix:" + l.path(n.Name, "br-ex.mgmt")
	for i := range own {
		lines = append(lines,
			fmt.Sprintf("addr replace %s dev br-ex nodad", own[i]),
			fmt.Sprintf("neigh replace %s lladdr %s dev br-ex nud permanent", hop[i], masqueradeMAC),
			fmt.Sprintf("route replace %s via %s dev br-ex", serviceSubnets()[i], hop[i]),
			fmt.Sprintf("route replace %s via %s dev br-ex onlink src %s", defaultOf(hop[i]), router[i], n.LAN[i].Addr()))
		undone = append(undone,
			fmt.Sprintf("route del %s dev br-ex", defaultOf(hop[i])), fmt.Sprintf("route del %s dev br-ex", serviceSubnets()[i]),
			fmt.Sprintf("neigh del %s dev br-ex", hop[i]), fmt.Sprintf("addr del %s dev br-ex", own[i]))
		proto, dst := []string{"ip", "ipv6"}[i], []string{"nw_dst", "ipv6_dst"}[i]
		for _, flow := range []string{
			fmt.Sprintf(hostCookie+",priority=500,in_port=LOCAL,%s,%s=%s,actions=mod_dl_dst:%s,output:%s", proto, dst,
				serviceSubnets()[i], n.MAC, patch),
			fmt.Sprintf(hostCookie+",priority=500,in_port=%s,%s,%s=%s,actions=mod_dl_dst:%s,LOCAL", patch, proto, dst,
				own[i].Addr(), n.MAC),
		} {
			if _, err := run(ctx, "ovs-ofctl", "add-flow", bridge, flow); err != nil {
				return nil, err
			}
		}
	}
	return func(ctx context.Context) error {
		_, err := run(ctx, "ovs-ofctl", "del-flows", bridge, hostCookie+"/-1")
		return errors.Join(err, ip.Batch(ctx, l.Netns(n.Name), undone...))
	}, ip.Batch(ctx, l.Netns(n.Name), lines...)
}

// hostCookie marks the flows of bridgeHost.
const hostCookie = "cookie=0x5b1"
