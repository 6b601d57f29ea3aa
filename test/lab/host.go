// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"strings"
)

// managementSNAT is the table that OVN-Kubernetes maintains on each node: connections of the node to pods get the
// address of its management port as source. Replies are not translated.
const managementSNAT = `
table inet ovn-kubernetes {}
flush table inet ovn-kubernetes
table inet ovn-kubernetes {
	chain mgmtport-snat {
		type nat hook postrouting priority srcnat; policy accept;
		oifname != "` + mp0 + `" return
`

// hostLines returns the ip(8) lines that give a node its addresses on br-ex and its default routes, which it has before
// OVN-Kubernetes starts.
func hostLines(n Node) []string {
	var lines []string
	for i, router := range LAN().Host(routerHost) {
		lines = append(lines, "addr replace "+n.LAN[i].String()+" dev br-ex",
			fmt.Sprintf("route replace %s via %s dev br-ex", defaultOf(router.Addr()), router.Addr()))
	}
	return lines
}

// closeUplinks prevents the node's network stack from receiving packets that the switch receives on its links, because
// the userspace datapath reads copies of them.
func (l *Lab) closeUplinks(ctx context.Context, n Node, links ...string) error {
	var rules strings.Builder
	rules.WriteString("table netdev lab {}\n")
	for _, link := range links {
		fmt.Fprintf(&rules, "add chain netdev lab in_%[2]s { type filter hook ingress device %[1]q priority -500; policy "+
			"drop; }\n", link, strings.ReplaceAll(link, "-", "_"))
	}
	_, err := feed(ctx, rules.String(), l.inside(n.Name, "nft", "-f", "-")...)
	return err
}

// prepareHost configures the node's network stack as OVN-Kubernetes does, as far as the management port is concerned.
func (l *Lab) prepareHost(ctx context.Context, n Node) error {
	netns := l.Netns(n.Name)
	if l.state.Network.Real() {
		if err := setSysctls(netns, map[string]string{
			"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1",
			"net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/default/rp_filter": "0",
		}); err != nil {
			return err
		}
		links := []string{underlayLink, lanLink, providerLink}
		if n.OnDMZ() {
			links = append(links, dmzLink)
		}
		return l.closeUplinks(ctx, n, links...)
	}
	// On br-ex the host has the MAC address of its gateway router. The flows of OVN-Kubernetes distinguish them. A
	// learning bridge would send the router's packets to the host as soon as the host sends a packet there (a multicast
	// report is enough).
	if _, err := run(ctx, "ovs-ofctl", "add-flow", "unix:"+l.path(n.Name, "br-ex.mgmt"),
		"priority=1,in_port=LOCAL,actions=drop"); err != nil {
		return err
	}
	if _, err := run(ctx, "ovs-appctl", "-t", l.path(n.Name, "vswitchd.ctl"), "fdb/flush", "br-ex"); err != nil {
		return err
	}
	if err := setSysctls(netns, map[string]string{"net/ipv4/conf/" + mp0 + "/rp_filter": "2"}); err != nil {
		return err
	}
	var rules strings.Builder
	rules.WriteString(managementSNAT)
	for i, own := range n.ManagementPort() {
		ip := []string{"ip", "ip6"}[i]
		fmt.Fprintf(&rules, "\t\t%s saddr %s return\n\t\tsnat %s to %s\n", ip, own, ip, own)
	}
	rules.WriteString("\t}\n}\n")
	_, err := feed(ctx, rules.String(), l.inside(n.Name, "nft", "-f", "-")...)
	return err
}
