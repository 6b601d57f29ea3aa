// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// This file adds to the databases of a zone what OVN-Kubernetes writes with interconnect, as captured from release 1.3:
// the transit switch, which all zones have alike, and the way to the nodes of other zones.

const (
	transitSwitch = "transit_switch"
	// transitKey is the tunnel key of the transit switch, and the ID of a node that of its port.
	transitKey = "requested-tnl-key"
)

// transit connects the node of a zone to those of other zones.
func (c *nbctl) transit(n Node, others []Node) {
	// The join switch of a zone has one gateway router, whose neighbors are all known.
	c.do("set", "Logical_Router", "GR_"+n.Name, "options:dynamic_neigh_routers=false")
	c.do("ls-add", transitSwitch)
	c.do("set", "Logical_Switch", transitSwitch, "other_config:interconn-ts="+transitSwitch,
		"other_config:"+transitKey+"=16711683", "other_config:mcast_flood_unregistered=true",
		"other_config:mcast_querier=false", "other_config:mcast_snoop=true")
	c.routerPort(clusterRouter, "rtots-"+n.Name, ovnMAC(n.Transit[0].Addr()), n.Transit, transitSwitch, transitPort(n),
		fmt.Sprintf("%s=%d", transitKey, n.ID))
	c.do("set", "Logical_Router_Port", "rtots-"+n.Name, "options:mcast_flood=true")
	c.do("set", "Logical_Switch_Port", transitPort(n), "external_ids:node="+n.Name)
	for _, other := range others {
		c.remoteNode(other)
	}
}

// transitPort returns the name of a node's port on the transit switch.
func transitPort(n Node) string { return "tstor-" + n.Name }

// remoteNode adds a node of another zone: its port on the transit switch, and the routes to its pods and its gateway
// router.
func (c *nbctl) remoteNode(n Node) {
	c.do("lsp-add", transitSwitch, transitPort(n))
	c.do("lsp-set-type", transitPort(n), "remote")
	c.do("lsp-set-addresses", transitPort(n), ovnMAC(n.Transit[0].Addr())+" "+strings.Join(texts(n.Transit), " "))
	c.do("lsp-set-options", transitPort(n), "requested-chassis="+n.Chassis, fmt.Sprintf("%s=%d", transitKey, n.ID))
	c.do("set", "Logical_Switch_Port", transitPort(n), "external_ids:node="+n.Name)
	for i, hop := range addrsOf(n.Transit) {
		join := n.Join[i].Addr()
		for j, prefix := range []netip.Prefix{n.PodSubnets[i], netip.PrefixFrom(join, join.BitLen())} {
			ref := fmt.Sprintf("@route%s%d%d", n.Name, i, j)
			c.do("--id="+ref, "create", "Logical_Router_Static_Route", "ip_prefix="+quote(prefix.String()),
				"nexthop="+quote(hop.String()), "external_ids:ic-node="+n.Name, "external_ids:k8s.ovn.org/network=default")
			c.do("add", "Logical_Router", clusterRouter, "static_routes", ref)
		}
	}
}

// addRemoteChassis adds the chassis of other zones to the southbound database of a zone, which has their ports.
func (l *Lab) addRemoteChassis(ctx context.Context, z zone, others []Node) error {
	var c nbctl
	for _, n := range others {
		c.do("chassis-add", n.Chassis, "geneve", Underlay().Host(n.Index)[0].Addr().String())
		c.do("set", "Chassis", n.Chassis, "hostname="+n.Name, "other_config:is-remote=true")
		c.do("--may-exist", "lsp-bind", transitPort(n), n.Chassis) // Newer versions of ovn-northd do it themselves.
	}
	if len(c) == 0 {
		return nil
	}
	_, err := l.zoneSB(ctx, z, c...)
	return err
}
