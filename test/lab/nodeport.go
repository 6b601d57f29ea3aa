// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// NodePort is a port of a Service that nodes serve on their own addresses, with externalTrafficPolicy Cluster.
type NodePort struct {
	// Service is the name of the Service, in namespace default.
	Service string
	// Protocol is tcp or udp.
	Protocol string
	// Port is the NodePort, Target the port of the pods.
	Port, Target uint16
	// Pods has the addresses of each pod, IPv4 first, then IPv6.
	Pods [][]netip.Addr
}

// ServeNodePorts makes a node serve NodePorts as OVN-Kubernetes 1.3 does in shared gateway mode: by a load balancer of
// its gateway router, which replaces the client's address by its own, and by flows on br-ex. OVN-Kubernetes' load
// balancer is on the node's switch as well, for pods; the model has none there (see topology.go). On OVN-Kubernetes
// itself ServeNodePorts does nothing. The returned function reverts it.
func (l *Lab) ServeNodePorts(ctx context.Context, node string, ports ...NodePort) (func(context.Context) error, error) {
	n, err := l.Node(node)
	if err != nil || l.state.Network.Real() {
		return func(context.Context) error { return nil }, err
	}
	number, err := l.vsctl(ctx, n, "get", "Interface", "patch-br-ex_"+n.Name+"-to-br-int", "ofport")
	if err != nil {
		return nil, fmt.Errorf("node ports of %s: %w", node, err)
	}
	var rows, undo nbctl
	var flows strings.Builder
	for i, p := range ports {
		rows.nodePort(n, p, fmt.Sprintf("@nodeport%d", i))
		undo.do("lb-del", p.row(n))
		for _, protocol := range []string{p.Protocol, p.Protocol + "6"} {
			fmt.Fprintf(&flows, "%[1]s,priority=110,%[2]s,in_port=%[3]s,tp_dst=%[4]d,actions=output:%[5]s\n"+
				"%[1]s,priority=110,%[2]s,in_port=%[5]s,dl_src=%[6]s,tp_src=%[4]d,actions=output:%[3]s\n", nodePortCookie,
				protocol, lanLink, p.Port, strings.TrimSpace(number), n.MAC)
		}
	}
	bridge := "unix:" + l.path(n.Name, "br-ex.mgmt")
	if _, err := feed(ctx, flows.String(), "ovs-ofctl", "--names", "add-flows", bridge, "-"); err != nil {
		return nil, fmt.Errorf("node ports of %s: %w", node, err)
	}
	z := l.zoneOf(n)
	if _, err := l.zoneNB(ctx, z, rows...); err != nil {
		return nil, fmt.Errorf("node ports of %s: %w", node, err)
	}
	return func(ctx context.Context) error {
		_, rows := l.zoneNB(ctx, z, undo...)
		_, flows := run(ctx, "ovs-ofctl", "del-flows", bridge, nodePortCookie+"/-1")
		return errors.Join(rows, flows)
	}, l.Settle(ctx)
}

// nodePortCookie marks the flows of ServeNodePorts.
const nodePortCookie = "cookie=0x5b2"

// row returns the name of the load balancer of a NodePort on a node.
func (p NodePort) row(n Node) string {
	return fmt.Sprintf("Service_default/%s_%s_node_router+switch_%s", p.Service, strings.ToUpper(p.Protocol), n.Name)
}

// nodePort adds the load balancer of a NodePort to the gateway router of a node.
func (c *nbctl) nodePort(n Node, p NodePort, id string) {
	row := []string{
		"--id=" + id, "create", "Load_Balancer", "name=" + quote(p.row(n)), "protocol=" + p.Protocol,
		"external_ids:k8s.ovn.org/kind=Service", "external_ids:k8s.ovn.org/owner=default/" + p.Service,
		"options:event=false", "options:reject=true", "options:skip_snat=false", "options:neighbor_responder=none",
		"options:hairpin_snat_ip=" + quote(strings.Join(texts(masqueradeHairpin()), " ")),
	}
	for i, own := range n.LAN {
		var pods []string
		for _, pod := range p.Pods {
			pods = append(pods, netip.AddrPortFrom(pod[i], p.Target).String())
		}
		row = append(row, fmt.Sprintf("vips:%s=%s", quote(netip.AddrPortFrom(own.Addr(), p.Port).String()),
			quote(strings.Join(pods, ","))))
	}
	c.do(row...)
	c.do("add", "Logical_Router", "GR_"+n.Name, "load_balancer", id)
}
