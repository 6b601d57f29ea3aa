// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file writes rows that OVN-Kubernetes adds for users' objects.

// NodePortLocal makes a node serve a port of its own addresses with one of its pods and preserve the client address, as
// OVN-Kubernetes does for a NodePort with externalTrafficPolicy Local. The returned function reverts this.
func (l *Lab) NodePortLocal(ctx context.Context, node, protocol string, port uint16, pod []netip.Addr,
	target uint16) (func(context.Context) error, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	if l.state.Network.Real() {
		return l.nodePortService(ctx, n, protocol, port, pod, target)
	}
	name := fmt.Sprintf("Service_default/%s-%d_%s_node_local_router_%s", protocol, port, strings.ToUpper(protocol), node)
	args := []string{
		"--id=@lb", "create", "Load_Balancer", "name=" + quote(name), "protocol=" + protocol,
		"external_ids:k8s.ovn.org/kind=Service", fmt.Sprintf("external_ids:k8s.ovn.org/owner=default/%s-%d", protocol, port),
		"options:event=false", "options:reject=true", "options:skip_snat=true", "options:neighbor_responder=none",
	}
	for i, own := range n.LAN {
		args = append(args, fmt.Sprintf("vips:%s=%s", quote(netip.AddrPortFrom(own.Addr(), port).String()),
			quote(netip.AddrPortFrom(pod[i], target).String())))
	}
	z := l.zoneOf(n)
	if _, err := l.zoneNB(ctx, z, append(args, "--", "add", "Logical_Router", "GR_"+node, "load_balancer",
		"@lb")...); err != nil {
		return nil, fmt.Errorf("node port %s %d of %s: %w", protocol, port, node, err)
	}
	return func(ctx context.Context) error { _, err := l.zoneNB(ctx, z, "lb-del", name); return err }, l.Settle(ctx)
}

// nodePortService implements NodePortLocal with a Service and EndpointSlices.
func (l *Lab) nodePortService(ctx context.Context, n Node, protocol string, port uint16, pod []netip.Addr,
	target uint16) (func(context.Context) error, error) {
	name, protocol := fmt.Sprintf("%s-%d", protocol, port), strings.ToUpper(protocol)
	manifest := fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  type: NodePort
  externalTrafficPolicy: Local
  ipFamilyPolicy: RequireDualStack
  ports: [{name: p, port: %[2]d, nodePort: %[2]d, targetPort: %[3]d, protocol: %[4]s}]
`, name, port, target, protocol)
	for i, kind := range []string{"IPv4", "IPv6"} {
		manifest += fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-%[2]d, labels: {kubernetes.io/service-name: %[1]s}}
addressType: %[3]s
ports: [{name: p, port: %[4]d, protocol: %[5]s}]
endpoints: [{addresses: [%[6]q], nodeName: %[7]s, conditions: {ready: true}}]
`, name, i, kind, target, protocol, pod[i], n.Name)
	}
	if _, err := l.Kubectl(ctx, manifest, "apply", "-f", "-"); err != nil {
		return nil, fmt.Errorf("node port %s of %s: %w", name, n.Name, err)
	}
	return func(ctx context.Context) error {
		// EndpointSlices are deleted with their Service.
		_, err := l.Kubectl(ctx, manifest, "delete", "--ignore-not-found", "-f", "-")
		return err
	}, nil
}

// allowPriority is above the priorities that OVN-Kubernetes gives its policies for egress: where it serves
// EgressServices, it has the same policy at 102.
const allowPriority = "103"

// EgressVia routes a pod's egress traffic through another node, as an EgressIP does (where, in addition, the address of
// that node replaces that of the pod). The returned function reverts this.
func (l *Lab) EgressVia(ctx context.Context, node string, pod []netip.Addr) (func(context.Context) error, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	var undo nbctl
	for i, addr := range pod {
		ip, cluster := family(addr), clusterSubnets()[i]
		within := fmt.Sprintf("%s.src == %s && %s.dst == %s", ip, cluster, ip, cluster)
		out := fmt.Sprintf("%s.src == %s", ip, addr)
		undo.do("lr-policy-del", clusterRouter, allowPriority, within)
		undo.do("lr-policy-del", clusterRouter, "100", out)
		// OVN-Kubernetes may have the route of the whole network, too. It is shorter than those of the nodes' subnets.
		source := netip.PrefixFrom(addr, cluster.Bits()+1).Masked().String()
		undo.do("--if-exists", "--policy=src-ip", "lr-route-del", clusterRouter, source)
		for _, z := range l.zones() {
			hop := n.Join[i].Addr().String()
			if !z.has(n) {
				hop = n.Transit[i].Addr().String()
			}
			var c nbctl
			c.do("lr-policy-add", clusterRouter, allowPriority, within, "allow")
			c.do("lr-policy-add", clusterRouter, "100", out, "reroute", hop)
			if l.state.Network.Zones() && z.has(n) {
				// OVN drops what has no route before it applies policies, and the zone has routes for its own pods only.
				c.do("--policy=src-ip", "lr-route-add", clusterRouter, source, hop)
			}
			if _, err := l.zoneNB(ctx, z, c...); err != nil {
				return nil, fmt.Errorf("egress of %v via %s: %w", pod, node, err)
			}
		}
	}
	return func(ctx context.Context) error { _, err := l.EachNB(ctx, undo...); return err }, l.Settle(ctx)
}

// StartResponder responds with "<name> <client>" in a namespace that is not a pod's, on the given TCP and UDP ports,
// until the lab is removed or stop is called.
func (l *Lab) StartResponder(ctx context.Context, short, name string, ports ...uint16) (stop func() error, err error) {
	numbers := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ports)), ","), "[]")
	p, err := l.Start(ctx, short, name, nil, slices.Concat(l.self("responder"),
		[]string{"-name", name, "-tcp", numbers, "-udp", numbers})...)
	if err != nil {
		return nil, err
	}
	return p.Kill, nil
}

// Ask sends one request from a namespace over "tcp" or "udp". It returns the name of the backend that responded and the
// client address that the backend saw. source is the source port, 0 for any.
func (l *Lab) Ask(ctx context.Context, short, network string, source uint16, target netip.AddrPort) (backend string,
	client netip.AddrPort, err error) {
	out, err := run(ctx, l.inside(short, l.self("ask", "--source-port", fmt.Sprint(source), network,
		target.String())...)...)
	if err != nil {
		return "", netip.AddrPort{}, err
	}
	words := strings.Fields(out)
	if len(words) < 2 {
		return "", netip.AddrPort{}, fmt.Errorf("answer %q: want a name and a client", out)
	}
	client, err = netip.ParseAddrPort(words[1])
	return words[0], client, err
}

// AdmitOnly makes the pods of namespace default with a label app accept new connections from clients only, as a
// NetworkPolicy with an ipBlock for each client does. The returned function reverts this, also repeatedly.
func (l *Lab) AdmitOnly(ctx context.Context, app string, clients []netip.Addr) (func(context.Context) error, error) {
	if !l.state.Network.Real() {
		return l.admitOnlyRows(ctx, app, clients)
	}
	manifest := fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: only-%[1]s}
spec:
  podSelector: {matchLabels: {app: %[1]s}}
  policyTypes: [Ingress]
  ingress:
  - from:
`, app)
	for _, c := range clients {
		manifest += fmt.Sprintf("    - ipBlock: {cidr: %q}\n", netip.PrefixFrom(c, c.BitLen()))
	}
	if _, err := l.Kubectl(ctx, manifest, "apply", "-f", "-"); err != nil {
		return nil, fmt.Errorf("policy for pods %s: %w", app, err)
	}
	return func(ctx context.Context) error {
		_, err := l.Kubectl(ctx, manifest, "delete", "--ignore-not-found", "-f", "-")
		return err
	}, nil
}

// admitOnlyRows implements AdmitOnly in the model, with a port group in each zone and ACLs of the same priorities.
func (l *Lab) admitOnlyRows(ctx context.Context, app string, clients []netip.Addr) (func(context.Context) error,
	error) {
	client, err := l.Client()
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	const deny, allow = "1000", "1001"
	group := "only_" + app
	for _, z := range l.zones() {
		c := nbctl{"pg-add", group}
		for _, p := range pods.Items {
			if slices.ContainsFunc(z.nodes, func(n Node) bool { return n.Name == p.Spec.NodeName }) {
				c = append(c, p.Namespace+"_"+p.Name)
			}
		}
		to := "outport == @" + group
		c.do("--type=port-group", "acl-add", group, "to-lport", deny, to, "drop")
		c.do("--type=port-group", "acl-add", group, "to-lport", allow, to+" && (arp || nd)", "allow")
		for _, addr := range clients {
			c.do("--type=port-group", "acl-add", group, "to-lport", allow,
				fmt.Sprintf("%s && %s.src == %s", to, family(addr), addr), "allow-related")
		}
		if _, err := l.zoneNB(ctx, z, c...); err != nil {
			return nil, fmt.Errorf("policy for pods %s in zone %s: %w", app, z.name, err)
		}
	}
	return func(ctx context.Context) error {
		_, err := l.EachNB(ctx, "--if-exists", "destroy", "Port_Group", group)
		return err
	}, l.Settle(ctx)
}
