// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"strings"
)

// managementSNAT is the table that OVN-Kubernetes keeps on each node: what the node itself asks of pods has the address of its
// management port. Answers are not asked.
const managementSNAT = `
table inet ovn-kubernetes {}
flush table inet ovn-kubernetes
table inet ovn-kubernetes {
	chain mgmtport-snat {
		type nat hook postrouting priority srcnat; policy accept;
		oifname != "` + mp0 + `" return
`

// prepareHost makes the node's own network stack what it is with OVN-Kubernetes, as far as that concerns the management port.
func (l *Lab) prepareHost(ctx context.Context, n Node) error {
	netns := l.Netns(n.Name)
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
