// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// outsidePorts returns the veths of the router and the clients.
func (l *Lab) outsidePorts() []port {
	served := l.state.Network.Served()
	return []port{
		l.attach(routerNetns, "eth-lan", LAN(), "router-lan", LAN().Host(routerHost)...),
		l.attach(routerNetns, "eth-prov", Provider(), "router-prov", Provider().Host(routerHost)...),
		l.attach(routerNetns, "eth-dmz", DMZ(), "router-dmz", DMZ().Host(routerHost)...),
		l.attach(routerNetns, "eth-tagged", Tagged(), "router-tagged", Tagged().Host(routerHost)...),
		l.attach(routerNetns, "eth-beyond", Beyond(), "router-beyond", Beyond().Host(routerHost)...),
		l.attach(clientNetns, "eth0", served, "client", withLengthOf(served.Subnets, l.ClientAddresses())...),
		l.attach(dmzNetns, "eth0", DMZ(), "dmz", withLengthOf(DMZ().Subnets, DMZAddresses())...),
		l.attach(taggedNetns, "eth0", Tagged(), "tagged", withLengthOf(Tagged().Subnets, TaggedAddresses())...),
		l.attach(remoteNetns, "eth0", Beyond(), "remote", withLengthOf(Beyond().Subnets, RemoteAddresses())...),
		l.attach(centralNetns, "eth-mgmt", Management(), "cen", Management().Host(centralHost)...),
	}
}

// outsideRoutes makes the router the default next hop of the clients, and enables forwarding on the router.
func (l *Lab) outsideRoutes(ctx context.Context) error {
	if err := setSysctls(l.Netns(routerNetns), map[string]string{
		"net/ipv4/ip_forward":          "1",
		"net/ipv6/conf/all/forwarding": "1",
	}); err != nil {
		return err
	}
	for netns, s := range map[string]Segment{clientNetns: l.state.Network.Served(), dmzNetns: DMZ(), taggedNetns: Tagged(),
		remoteNetns: Beyond()} {
		if err := ip.Batch(ctx, l.Netns(netns), defaultRoutes(s.Host(routerHost))...); err != nil {
			return err
		}
	}
	return nil
}

// startRouter starts FRR. It forwards between connected segments. BGP sessions are configured by callers.
func (l *Lab) startRouter(ctx context.Context) error {
	return l.Router().Start(ctx)
}

// Router returns the lab's router, for configuration and queries.
func (l *Lab) Router() frr.Router {
	return frr.Router{Name: l.Name, Dir: l.path(routerNetns), Netns: l.Netns(routerNetns), Prefix: l.state.FRRPrefix}
}
