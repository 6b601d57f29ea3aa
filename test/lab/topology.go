// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net/netip"
	"strings"
)

// This file computes the NB rows that OVN-Kubernetes writes for a zone in shared gateway mode, as captured from release
// 1.3, except for those that only matter to hosts (load balancers for them, control plane protection).
//
// There is one deliberate difference: no load balancer and no ACL applies to the node switches, so conntrack is not
// used there. The userspace conntrack of Open vSwitch 3.1.0 (Debian 12) aborts within some thousand connections in such
// a switch's zone ("assertion conn->conn_type == CT_CONN_TYPE_DEFAULT failed"). In the zones of routers it does not
// (2026-11).

const (
	clusterRouter = "ovn_cluster_router"
	joinSwitch    = "join"
)

// nbctl collects the commands of one ovn-nbctl(8) call, which is one transaction.
type nbctl []string

func (c *nbctl) do(words ...string) {
	if len(*c) > 0 {
		*c = append(*c, "--")
	}
	*c = append(*c, words...)
}

// routerPort adds a router port and its peer on a switch.
func (c *nbctl) routerPort(router, port, mac string, networks []netip.Prefix, sw, peer string, options ...string) {
	c.do(append([]string{"lrp-add", router, port, mac}, texts(networks)...)...)
	c.do("lsp-add", sw, peer)
	c.do("lsp-set-type", peer, "router")
	c.do("lsp-set-addresses", peer, "router")
	c.do(append([]string{"lsp-set-options", peer, "router-port=" + port}, options...)...)
}

// topology adds the rows of a zone with the nodes.
func (c *nbctl) topology(nodes []Node) {
	for _, group := range []string{"clusterLBGroup", "clusterSwitchLBGroup", "clusterRouterLBGroup"} {
		c.do("--id=@"+group, "create", "Load_Balancer_Group", "name="+group)
	}
	c.kubernetesService()
	c.portGroup()
	c.do("lr-add", clusterRouter)
	c.do("set", "Logical_Router", clusterRouter, "external_ids:k8s-cluster-router=yes",
		"options:always_learn_from_arp_request=false")
	c.do("ls-add", joinSwitch)
	join := hosts(joinSubnets(), 1)
	c.routerPort(clusterRouter, "rtoj-"+clusterRouter, ovnMAC(join[0].Addr()), join, joinSwitch, "jtor-"+clusterRouter)
	for _, n := range nodes {
		c.nodeSwitch(n)
		c.gatewayRouter(n)
		c.steering(n)
	}
}

// kubernetesService adds the load balancer of default/kubernetes, a row that belongs to OVN-Kubernetes and that no
// other controller may modify.
func (c *nbctl) kubernetesService() {
	hairpin := strings.Join(texts(masqueradeHairpin()), " ")
	c.do("--id=@kubernetes", "create", "Load_Balancer", "name=Service_default/kubernetes_TCP_node_router+switch_merged",
		"protocol=tcp",
		"external_ids:k8s.ovn.org/kind=Service", "external_ids:k8s.ovn.org/owner=default/kubernetes",
		"options:event=false", "options:reject=true", "options:skip_snat=false", "options:neighbor_responder=none",
		"options:hairpin_snat_ip="+quote(hairpin),
		fmt.Sprintf("vips:%s=%s", quote("10.96.0.1:443"), quote(Management().Host(centralHost)[0].Addr().String()+":6443")))
}

// portGroup adds the port group with the two ACLs that allow hairpin traffic of load balancers. It has no ports, for
// the reason given above.
func (c *nbctl) portGroup() {
	var refs []string
	for _, direction := range []struct{ acl, name string }{{"from-lport", "Egress"}, {"to-lport", "Ingress"}} {
		ref := "@hairpin" + direction.name
		refs = append(refs, ref)
		c.do(append([]string{"--id=" + ref, "create", "ACL", "action=allow-related", "direction=" + direction.acl,
			"priority=1001",
			"match=" + quote(matchAny(masqueradeHairpin())), "external_ids:direction=" + direction.name},
			owner("NetpolDefault", "allow-hairpinning", direction.name)...)...)
	}
	c.do(append([]string{"create", "Port_Group", "name=a13298398610555951118", "acls=" + strings.Join(refs, ",")},
		owner("Cluster", "clusterPortGroup")...)...)
}

// owner returns the external_ids with which OVN-Kubernetes marks its own rows.
func owner(kind, name string, more ...string) []string {
	const controller = "default-network-controller"
	id := strings.Join(append([]string{controller, kind, name}, more...), ":")
	return []string{
		"external_ids:k8s.ovn.org/owner-controller=" + controller, "external_ids:k8s.ovn.org/owner-type=" + kind,
		"external_ids:k8s.ovn.org/name=" + name, "external_ids:k8s.ovn.org/id=" + quote(id),
	}
}

// nodeSwitch adds the switch of a node's pods, with the node's own port k8s-<node>.
func (c *nbctl) nodeSwitch(n Node) {
	c.do("ls-add", n.Name)
	c.do("set", "Logical_Switch", n.Name, "other_config:subnet="+n.PodSubnets[0].String(),
		"other_config:ipv6_prefix="+quote(n.PodSubnets[1].Addr().String()),
		"load_balancer_group=@clusterLBGroup,@clusterSwitchLBGroup")
	gateway := n.gateway()
	c.routerPort(clusterRouter, "rtos-"+n.Name, ovnMAC(gateway[0].Addr()), gateway, n.Name, "stor-"+n.Name)
	c.do("lrp-set-gateway-chassis", "rtos-"+n.Name, n.Chassis, "1")
	c.do("set", "Logical_Router_Port", "rtos-"+n.Name, "options:gateway_mtu=1400")
	c.do("lsp-add", n.Name, "k8s-"+n.Name)
	c.do("lsp-set-addresses", "k8s-"+n.Name, lspAddress(n.mp0()))
}

// gatewayRouter adds GR_<node> with its switch ext_<node> on br-ex. Pods leave the cluster through it, with the address
// of the node.
func (c *nbctl) gatewayRouter(n Node) {
	gr, ext := "GR_"+n.Name, "ext_"+n.Name
	c.do("lr-add", gr)
	c.do("set", "Logical_Router", gr, "options:chassis="+n.Chassis, "options:lb_force_snat_ip=router_ip",
		"options:snat-ct-zone=0",
		"options:always_learn_from_arp_request=false", "options:dynamic_neigh_routers=true",
		"options:mac_binding_age_threshold=300",
		"external_ids:physical_ip="+n.LAN[0].Addr().String(),
		"external_ids:physical_ips="+quote(n.LAN[0].Addr().String()+","+n.LAN[1].Addr().String()),
		"load_balancer=@kubernetes", "load_balancer_group=@clusterLBGroup,@clusterRouterLBGroup")
	c.routerPort(gr, "rtoj-"+gr, ovnMAC(n.Join[0].Addr()), n.Join, joinSwitch, "jtor-"+gr)
	c.do("set", "Logical_Router_Port", "rtoj-"+gr, "options:gateway_mtu=1400")
	c.do("ls-add", ext)
	c.do("lsp-add", ext, "br-ex_"+n.Name)
	c.do("lsp-set-type", "br-ex_"+n.Name, "localnet")
	c.do("lsp-set-addresses", "br-ex_"+n.Name, "unknown")
	c.do("lsp-set-options", "br-ex_"+n.Name, "network_name=physnet")
	c.routerPort(gr, "rtoe-"+gr, n.MAC, n.LAN, ext, "etor-"+gr, "nat-addresses=router", "exclude-lb-vips-from-garp=true")
	c.do("set", "Logical_Router_Port", "rtoe-"+gr, "external_ids:gateway-physical-ip=yes")
	router, join := LAN().Host(routerHost), hosts(joinSubnets(), 1)
	for i := range n.LAN {
		c.do("lr-route-add", gr, defaultOf(n.LAN[i].Addr()).String(), router[i].Addr().String(), "rtoe-"+gr)
		c.do("lr-route-add", gr, clusterSubnets()[i].String(), join[i].Addr().String())
		for j, inside := range []string{clusterSubnets()[i].String(), n.Join[i].Addr().String()} {
			ref := fmt.Sprintf("@snat%s%d%d", n.Name, i, j)
			c.do("--id="+ref, "create", "NAT", "type=snat", "external_ip="+quote(n.LAN[i].Addr().String()),
				"logical_ip="+quote(inside),
				`external_port_range="32768-60999"`, "options:stateless=false")
			c.do("add", "Logical_Router", gr, "nat", ref)
		}
	}
}

// steering adds the routes by which the cluster router sends traffic of a node's pods to that node's gateway router,
// and the policies that send traffic for the node's own addresses to the node itself.
func (c *nbctl) steering(n Node) {
	for i := range n.Join {
		join := n.Join[i].Addr().String()
		c.do("--policy=src-ip", "lr-route-add", clusterRouter, n.PodSubnets[i].String(), join)
		c.do("lr-route-add", clusterRouter, join, join)
		addr := n.LAN[i].Addr()
		match := fmt.Sprintf("inport == %q && %s.dst == %s /* %s */", "rtos-"+n.Name, family(addr), addr, n.Name)
		c.do("lr-policy-add", clusterRouter, "1004", match, "reroute", n.mp0()[i].Addr().String())
	}
}

// lspAddress returns the MAC address and IP addresses of a switch port.
func lspAddress(addrs []netip.Prefix) string {
	words := []string{ovnMAC(addrs[0].Addr())}
	for _, addr := range addrs {
		words = append(words, addr.Addr().String())
	}
	return strings.Join(words, " ")
}

// family returns the name of the address family in OVN's match language, ovn-sb(5).
func family(addr netip.Addr) string {
	if addr.Is4() {
		return "ip4"
	}
	return "ip6"
}

// matchAny returns a match for packets from any of the addresses.
func matchAny(addrs []netip.Addr) string {
	var terms []string
	for _, addr := range addrs {
		terms = append(terms, family(addr)+".src == "+addr.String())
	}
	return "(" + strings.Join(terms, " || ") + ")"
}

// defaultOf returns 0.0.0.0/0 or ::/0.
func defaultOf(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, 0).Masked() }

// quote makes a string one atom for ovn-nbctl(8), regardless of its content.
func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

func texts[T fmt.Stringer](values []T) []string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, v.String())
	}
	return out
}
