// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// This file writes by hand the rows of one shard, to prove the lab alone: that such rows work in it and fail over in it.

const (
	handPort   = "hand-ext"
	handRouter = "hand"
)

// handmade writes a shard with two VIPs a family, for TCP and UDP port 80 of the pods' port 8080: the first is the anchor and has a
// backend on each node, the second has none on n1.
func handmade(t *testing.T, l *Lab, pods map[string][]netip.Addr, vips [][]netip.Addr) {
	t.Helper()
	var c nbctl
	c.do("ls-add", "hand-switch")
	c.do("lsp-add", "hand-switch", "hand-localnet")
	c.do("lsp-set-type", "hand-localnet", "localnet")
	c.do("lsp-set-addresses", "hand-localnet", "unknown")
	c.do("lsp-set-options", "hand-localnet", "network_name=provider")
	c.do("lr-add", handRouter)
	c.do("set", "Logical_Router", handRouter, "options:always_learn_from_arp_request=false", "options:dynamic_neigh_routers=true", "options:mcast_relay=false")
	join := []netip.Prefix{netip.MustParsePrefix("100.64.255.1/16"), netip.MustParsePrefix("fd98::ff01/64")}
	c.routerPort(handRouter, "hand-join", ovnMAC(join[0].Addr()), join, joinSwitch, "join-hand")
	c.routerPort(handRouter, handPort, ovnMAC(vips[0][0]), withLengthOf(Provider().Subnets, vips[0]), "hand-switch", "switch-hand",
		"nat-addresses=router", "exclude-lb-vips-from-garp=true")
	var members []string
	for i, n := range l.Nodes {
		members = append(members, fmt.Sprintf("@member%d", i))
		c.do("--id="+members[i], "create", "HA_Chassis", "chassis_name="+n.Chassis, fmt.Sprintf("priority=%d", 100-10*i))
	}
	c.do("--id=@group", "create", "HA_Chassis_Group", "name=hand", "ha_chassis="+strings.Join(members, ","))
	c.do("set", "Logical_Router_Port", handPort, "ha_chassis_group=@group")
	for family, gateway := range addrsOf(Provider().Host(routerHost)) {
		c.do("lr-route-add", handRouter, clusterSubnets()[family].String(), hosts(joinSubnets(), 1)[family].Addr().String())
		c.do("lr-route-add", handRouter, defaultOf(gateway).String(), gateway.String(), handPort)
		var backends []netip.Addr
		for _, n := range l.Nodes {
			backends = append(backends, pods[n.Name][family])
		}
		for _, proto := range []string{"tcp", "udp"} {
			handmadeBalancers(&c, proto, family, backends, vips)
			// One address set a protocol and target port; the policy is what brings replies back through the shard.
			set := fmt.Sprintf("hand_%s_8080_%d", proto, family)
			c.do("create", "Address_Set", "name="+set, "addresses="+quoteAll(backends))
			word := map[int]string{0: "ip4", 1: "ip6"}[family]
			c.do("lr-policy-add", clusterRouter, "700", fmt.Sprintf("%s.src == $%s && %s.src == 8080 && %s.dst != {%s, %s}",
				word, set, proto, word, clusterSubnets()[family], joinSubnets()[family]), "reroute", join[family].Addr().String())
		}
	}
	// BFD frames carry the port's MAC as soon as a chassis claims it, and so move the switches' tables at once.
	c.do("--id=@bfd", "create", "BFD", "logical_port="+handPort, "dst_ip="+Provider().Host(routerHost)[0].Addr().String(), "min_tx=300", "min_rx=300", "detect_mult=5")
	c.do("--id=@dummy", "create", "Logical_Router_Static_Route", "ip_prefix=192.0.2.255/32", "nexthop="+Provider().Host(routerHost)[0].Addr().String(),
		"output_port="+handPort, "bfd=@bfd")
	c.do("add", "Logical_Router", handRouter, "static_routes", "@dummy")
	c.do("set", "NB_Global", ".", "options:bfd-min-rx=200", "options:bfd-min-tx=100", "options:bfd-mult=3")
	if _, err := l.NB(t.Context(), append([]string{"--wait=hv"}, c...)...); err != nil {
		t.Fatal(err)
	}
}

func handmadeBalancers(c *nbctl, proto string, family int, backends []netip.Addr, vips [][]netip.Addr) {
	var list []string
	for _, backend := range backends {
		list = append(list, netip.AddrPortFrom(backend, 8080).String())
	}
	lists := [][]string{
		list,
		{list[1], list[2], list[1]}, // Without n1; a backend given twice is accepted, and counts twice.
	}
	for i := range vips {
		name := fmt.Sprintf("hand-%d-%s-%d", i, proto, family)
		c.do("lb-add", name, netip.AddrPortFrom(vips[i][family], 80).String(), strings.Join(lists[i], ","), proto)
		c.do("set", "Load_Balancer", name, "selection_fields=ip_src,ip_dst,tp_src,tp_dst")
		c.do("lr-lb-add", handRouter, name)
	}
}

func quoteAll(addrs []netip.Addr) string {
	var out []string
	for _, a := range addrs {
		out = append(out, quote(a.String()))
	}
	return strings.Join(out, ",")
}

// required are the streams of all kinds to all VIPs.
func required(vips [][]netip.Addr) []probe.Spec {
	var targets []netip.AddrPort
	for _, addr := range slices.Concat(vips...) {
		targets = append(targets, netip.AddrPortFrom(addr, 80))
	}
	return probe.All(targets...)
}

// awaitOther returns the node that holds the port, once it is another than before.
func awaitOther(t *testing.T, l *Lab, before string) string {
	t.Helper()
	var active string
	if err := poll(t.Context(), func() (err error) {
		if active, err = l.ActiveNode(t.Context(), handPort); err == nil && (active == "" || active == before) {
			err = fmt.Errorf("%s is on %q, want another than %q", handPort, active, before)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return active
}

func TestHandmadeShardServesAndFailsOver(t *testing.T) {
	l := upLab(t, Config{Name: labName("hand"), NoKube: true})
	vips := [][]netip.Addr{
		{netip.MustParseAddr("10.50.0.60"), netip.MustParseAddr("fd00:50::60")},
		{netip.MustParseAddr("10.50.0.61"), netip.MustParseAddr("fd00:50::61")},
	}
	handmade(t, l, startPods(t, l, 8080), vips)
	clients := map[string][]netip.Addr{clientNetns: ClientAddresses(), remoteNetns: RemoteAddresses()}
	for from, addrs := range clients {
		awaitSteady(t, l, from, vips)
		results, err := l.Probe(t.Context(), from, time.Second, required(vips)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			t.Logf("%s: %s", from, r)
			if len(r.Clients) != 1 || r.Clients[addrs[0].String()]+r.Clients[addrs[1].String()] == 0 {
				t.Errorf("%s to %s: the backends saw %v, want the client's own address of %v", from, r.Spec, r.Clients, addrs)
			}
			want := 3
			if slices.Contains(vips[1], r.Spec.Target.Addr()) {
				want = 2
			}
			if (r.Spec.Kind == probe.UDPNew || r.Spec.Kind == probe.TCPNew) && len(r.Backends) != want {
				t.Errorf("%s to %s: backends %v, want %d", from, r.Spec, r.Backends, want)
			}
			if r.Lost > 0 || r.Broken() > 0 {
				t.Errorf("%s to %s: lost %d of %d, broken %d: %v", from, r.Spec, r.Lost, r.Sent, r.Broken(), r.Errors)
			}
		}
	}
	t.Run("killed", func(t *testing.T) { failover(t, l, vips, func() error { return l.Kill("n1") }) })
	if err := l.Restore(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	awaitOther(t, l, "n2") // It is preempted: the hand-made group has fixed priorities.
	t.Run("links down", func(t *testing.T) { failover(t, l, vips, func() error { return l.LinkDown(t.Context(), "n1") }) })
}

// awaitSteady returns when nothing is lost for a while: neighbours and tunnels are learned by the first packets, and BFD between
// the chassis needs some seconds after one started.
func awaitSteady(t *testing.T, l *Lab, from string, vips [][]netip.Addr) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := poll(ctx, func() error {
		results, err := l.Probe(ctx, from, 2*time.Second, required(vips)...)
		for _, r := range results {
			if r.Lost > 0 && err == nil {
				err = fmt.Errorf("%s", r)
				t.Logf("not steady from %s: %s", from, r)
			}
		}
		return err
	}); err != nil {
		t.Fatalf("no steady state for %s: %v", from, err)
	}
}

// maxGap is what a client may notice of an unplanned failover. An open connection waits longer than the gap: TCP sends again after
// times that double, so that up to as much again may pass.
const (
	maxGap   = 1500 * time.Millisecond
	maxStall = 2 * maxGap
)

// failover breaks n1, the active node, under load of the VIP whose backends are elsewhere, and holds what the client sees to promises.
func failover(t *testing.T, l *Lab, vips [][]netip.Addr, breakIt func() error) {
	awaitSteady(t, l, clientNetns, vips)
	p, err := l.StartProbe(t.Context(), clientNetns, required(vips[1:])...)
	if err != nil {
		t.Fatal(err)
	}
	if err := breakIt(); err != nil {
		t.Fatal(err)
	}
	now := awaitOther(t, l, "n1")
	<-time.After(3 * time.Second)
	results, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Logf("now on %s: %s", now, r)
		if limit := map[bool]time.Duration{true: maxStall, false: maxGap}[r.Spec.Kind == probe.TCPLong]; r.Gap > limit || r.Stall() > limit {
			t.Errorf("%s: gap %s, stall %s, want at most %s", r.Spec, r.Gap, r.Stall(), limit)
		}
		if r.Broken() > 0 {
			t.Errorf("%s: %d connections broke: %v", r.Spec, r.Broken(), r.Errors)
		}
	}
}
