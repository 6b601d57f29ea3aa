// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// speakerHost is the host on the provider segment that answers for MetalLB's addresses: an address that no other host
// of the lab has.
const speakerHost = 240

// MetalLBSpeaker is a node that announces addresses on the provider segment in the way of MetalLB's speaker: it answers
// ARP and neighbor discovery with the MAC address of its own interface, and its kernel takes the traffic.
type MetalLBSpeaker struct {
	lab   *Lab
	node  string
	addrs []netip.Addr
	stop  func() error
}

// StartMetalLBSpeaker makes a node announce addresses and serve them on the given ports, as the backend "metallb".
func (l *Lab) StartMetalLBSpeaker(ctx context.Context, node string, addrs []netip.Addr,
	ports ...uint16) (*MetalLBSpeaker, error) {
	s := &MetalLBSpeaker{lab: l, node: node, addrs: addrs}
	if err := setSysctls(l.Netns(node), map[string]string{
		"net/ipv4/conf/br-provider/arp_announce": "2",
		"net/ipv6/conf/all/forwarding":           "1", "net/ipv6/conf/br-provider/forwarding": "1",
		"net/ipv6/conf/br-provider/proxy_ndp": "1", "net/ipv6/neigh/br-provider/proxy_delay": "0",
	}); err != nil {
		return nil, err
	}
	lines := []string{"link set br-provider up", "link set lo up"}
	for i, own := range Provider().Host(speakerHost) {
		lines = append(lines, fmt.Sprintf("addr replace %s dev br-provider nodad", own))
		router := Provider().Host(routerHost)[i].Addr()
		lines = append(lines, fmt.Sprintf("route replace %s via %s dev br-provider", Beyond().Subnets[i], router))
	}
	// The announcement must end without the service. For IPv4 a setting of the interface ends it. For IPv6 the kernel
	// answers as a proxy.
	for _, a := range addrs {
		lines = append(lines, fmt.Sprintf("addr replace %s dev %s", netip.PrefixFrom(a, a.BitLen()), deviceOf(a)))
		if a.Is6() {
			lines = append(lines, fmt.Sprintf("neigh replace proxy %s dev br-provider", a))
		}
	}
	if err := ip.Batch(ctx, l.Netns(node), lines...); err != nil {
		return nil, err
	}
	var err error
	s.stop, err = l.StartResponder(ctx, node, "metallb", ports...)
	return s, err
}

// deviceOf returns the interface that has an address of MetalLB.
func deviceOf(a netip.Addr) string {
	if a.Is6() {
		return "lo"
	}
	return "br-provider"
}

// arpIgnore is the setting that determines for which addresses an interface answers ARP.
const arpIgnore = "net/ipv4/conf/br-provider/arp_ignore"

// StopAnswering ends the announcement. The node still serves clients that send to it, as OVN-Kubernetes does for every
// address in the status of a Service.
func (s *MetalLBSpeaker) StopAnswering(ctx context.Context) error {
	var lines []string
	for _, a := range s.addrs {
		if a.Is6() {
			lines = append(lines, fmt.Sprintf("neigh del proxy %s dev br-provider", a))
		}
	}
	return errors.Join(setSysctls(s.lab.Netns(s.node), map[string]string{arpIgnore: "8"}),
		ip.Batch(ctx, s.lab.Netns(s.node), lines...))
}

// Remove makes the node serve the addresses no longer.
func (s *MetalLBSpeaker) Remove(ctx context.Context) error {
	var lines []string
	for _, a := range s.addrs {
		lines = append(lines, fmt.Sprintf("addr del %s dev %s", netip.PrefixFrom(a, a.BitLen()), deviceOf(a)))
	}
	for i, own := range Provider().Host(speakerHost) {
		lines = append(lines, fmt.Sprintf("route del %s dev br-provider", Beyond().Subnets[i]),
			fmt.Sprintf("addr del %s dev br-provider", own))
	}
	return errors.Join(s.stop(), ip.Batch(ctx, s.lab.Netns(s.node), lines...),
		setSysctls(s.lab.Netns(s.node), map[string]string{arpIgnore: "0"}))
}

// MetalLBBGP are the speakers of MetalLB on all nodes, in the mode in which it runs FRR on each of them.
type MetalLBBGP struct{ routers map[string]frr.Router }

// StartMetalLBBGP makes FRR on every node advertise addresses to the router on BGPSegment, with the node's address on
// the LAN as the next hop, where OVN-Kubernetes takes the traffic. SpeakBGP must have configured the router.
func (l *Lab) StartMetalLBBGP(ctx context.Context, addrs []netip.Addr) (*MetalLBBGP, error) {
	m := &MetalLBBGP{routers: map[string]frr.Router{}}
	// FRR also sends its link-local address as a next hop, which the router would prefer.
	if err := l.Router().Configure(ctx, "route-map prefer-global permit 10", " set ipv6 next-hop prefer-global", "exit",
		fmt.Sprintf("router bgp %d", RouterASN), " address-family ipv6 unicast",
		"  neighbor nodes route-map prefer-global in", " exit-address-family"); err != nil {
		return m, err
	}
	router := hosts(l.BGPSegment().Subnets, routerHost)[0].Addr()
	for _, n := range l.Nodes {
		r := frr.Router{Name: l.Name + "-metallb-" + n.Name, Dir: l.path("metallb-" + n.Name), Netns: l.Netns(n.Name),
			Prefix: l.state.FRRPrefix}
		m.routers[n.Name] = r
		if err := r.Start(ctx); err != nil {
			return m, err
		}
		lines := []string{"route-map out permit 10", " set ip next-hop " + n.LAN[0].Addr().String(),
			" set ipv6 next-hop global " + n.LAN[1].Addr().String(), "exit",
			fmt.Sprintf("router bgp %d", NodeASN), " bgp router-id " + n.LAN[0].Addr().String(),
			" no bgp ebgp-requires-policy", " no bgp network import-check",
			fmt.Sprintf(" neighbor %s remote-as %d", router, RouterASN)}
		for i, family := range []string{"ipv4", "ipv6"} {
			lines = append(lines, " address-family "+family+" unicast", fmt.Sprintf("  neighbor %s activate", router),
				fmt.Sprintf("  neighbor %s route-map out out", router))
			for _, a := range addrs {
				if a.Is6() == (i == 1) {
					lines = append(lines, "  network "+netip.PrefixFrom(a, a.BitLen()).String())
				}
			}
			lines = append(lines, " exit-address-family")
		}
		if err := r.Configure(ctx, lines...); err != nil {
			return m, err
		}
	}
	return m, nil
}

// Stop ends the speaker of a node.
func (m *MetalLBBGP) Stop(node string) error { return m.routers[node].Kill() }

// StopAll ends all speakers.
func (m *MetalLBBGP) StopAll() error {
	var errs []error
	for _, r := range m.routers {
		errs = append(errs, r.Kill())
	}
	return errors.Join(errs...)
}
