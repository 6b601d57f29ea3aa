// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

const (
	nodes    = 3
	echoPort = 7
	// shared is the number of addresses that the nodes advertise; vip is one of them.
	shared = 100
)

func vip() netip.Addr { return prefix(1).Addr() }

// trio consists of three nodes on a switch that share an address, each with a speaker and a responder, and a client
// behind their router. The router does not see links go down because of the switch in between.
type trio struct {
	*site
	router     frr.Router
	responders []*process
	speakers   []*process
	// speaking is the configuration that the speakers have in common.
	speaking speaking
	// lost counts how often a route, or a next hop of a route, was removed from the router's kernel.
	lost atomic.Int64
	// missed says that not all changes of routes were seen.
	missed atomic.Bool
}

func (t *trio) netns(name string) string { return t.name + "-" + name }

func (t *trio) member(i int) string { return t.netns(fmt.Sprint("n", i)) }

// namespaces returns the names of the network namespaces of the trio.
func (t *trio) namespaces() []string {
	all := []string{t.netns("switch"), t.netns("tor"), t.netns("client")}
	for i := range nodes {
		all = append(all, t.member(i))
	}
	return all
}

// build creates the namespaces, and starts the router and the responders.
func (t *trio) build(ctx context.Context) error {
	var lines []string
	for _, name := range t.namespaces() {
		lines = append(lines, "netns add "+name)
	}
	lines = append(lines,
		fmt.Sprintf("link add eth1 netns %s type veth peer name eth0 netns %s", t.netns("tor"), t.netns("client")),
		fmt.Sprintf("link add eth0 netns %s type veth peer name tor netns %s", t.netns("tor"), t.netns("switch")))
	ports := []string{"link add br0 type bridge", "link set br0 up", "link set tor master br0 up"}
	for i := range nodes {
		lines = append(lines, fmt.Sprintf("link add eth0 netns %s type veth peer name %s netns %s", t.member(i), port(i),
			t.netns("switch")))
		ports = append(ports, fmt.Sprintf("link set %s master br0 up", port(i)))
	}
	steps := map[string][]string{
		t.netns("switch"): ports,
		t.netns("tor"): {
			"link set lo up", "link set eth0 up", "link set eth1 up",
			fmt.Sprintf("addr add %s/16 dev eth0", routerAddr()), "addr add 10.9.0.1/24 dev eth1",
		},
		t.netns("client"): {"link set lo up", "link set eth0 up", "addr add 10.9.0.2/24 dev eth0",
			"route add default via 10.9.0.1"},
	}
	for i := range nodes {
		steps[t.member(i)] = []string{
			"link set lo up", "link set eth0 up", fmt.Sprintf("addr add %s/16 dev eth0", source(i)),
			fmt.Sprintf("addr add %s/32 dev lo", vip()), fmt.Sprintf("route add default via %s", routerAddr()),
		}
	}
	if err := ip.Batch(ctx, "", lines...); err != nil {
		return err
	}
	for name, lines := range steps {
		if err := ip.Batch(ctx, name, lines...); err != nil {
			return err
		}
	}
	// Distribute the flows of one client among all nodes.
	if out, err := exec.CommandContext(ctx, "ip", "netns", "exec", t.netns("tor"), "sysctl", "-qw",
		"net.ipv4.ip_forward=1", "net.ipv4.fib_multipath_hash_policy=1").CombinedOutput(); err != nil {
		return fmt.Errorf("sysctl: %w: %s", err, out)
	}
	return t.begin(ctx)
}

func port(i int) string { return fmt.Sprint("port", i) }

func (t *trio) begin(ctx context.Context) error {
	t.router = frr.Router{Name: t.netns("tor"), Dir: filepath.Join(t.dir, "tor"), Netns: t.netns("tor")}
	if err := t.router.Start(ctx); err != nil {
		return err
	}
	for i := range nodes {
		p, err := start(ctx, t.member(i), role{Responder: fmt.Sprint("n", i)})
		if err != nil {
			return err
		}
		t.responders = append(t.responders, p)
		if err := p.says(fmt.Sprint("n", i)); err != nil {
			return err
		}
	}
	config := []string{
		"bfd", " profile fast", "  detect-multiplier 3", "  transmit-interval 100", "  receive-interval 100", " exit", "exit",
		fmt.Sprintf("router bgp %d", routerASN), " bgp router-id 10.0.0.1", " no bgp ebgp-requires-policy",
		" bgp bestpath as-path multipath-relax",
	}
	return t.router.Configure(ctx, append(config, " address-family ipv4 unicast", "  maximum-paths 16")...)
}

// set starts the speakers, and configures BFD on the router if the speakers use it.
func (t *trio) set(ctx context.Context, s speaking) error {
	t.speaking = s
	config := []string{fmt.Sprintf("router bgp %d", routerASN)}
	for i := range nodes {
		config = append(config, fmt.Sprintf(" neighbor %s remote-as %d", source(i), nodeASN))
		if s.BFD != nil {
			config = append(config, fmt.Sprintf(" neighbor %s bfd profile fast", source(i)))
		}
	}
	if err := t.router.Configure(ctx, config...); err != nil {
		return err
	}
	t.speakers = make([]*process, nodes)
	for i := range nodes {
		if err := t.speak(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// speak starts the speaker of a node.
func (t *trio) speak(ctx context.Context, i int) (err error) {
	s := t.speaking
	s.Sources, s.Routes = []netip.Addr{source(i)}, shared
	t.speakers[i], err = start(ctx, t.member(i), role{Speaker: &s})
	return err
}

// unset stops the speakers and removes them from the router's configuration, because the router would otherwise wait
// for their return.
func (t *trio) unset(ctx context.Context) error {
	err := end(t.speakers)
	t.speakers = nil
	config := []string{fmt.Sprintf("router bgp %d", routerASN)}
	for i := range nodes {
		config = append(config, fmt.Sprintf(" no neighbor %s", source(i)))
	}
	return errors.Join(err, t.router.Configure(ctx, config...), t.hops(ctx, 0))
}

func end(all []*process) error {
	var errs []error
	for _, p := range all {
		if p != nil {
			errs = append(errs, p.end())
		}
	}
	return errors.Join(errs...)
}

func (t *trio) remove(ctx context.Context) error {
	err := errors.Join(end(t.speakers), end(t.responders))
	var lines []string
	for _, name := range t.namespaces() {
		lines = append(lines, "netns del "+name)
	}
	return errors.Join(err, t.router.Kill(), ip.Batch(ctx, "", lines...))
}

// ready waits until the router's kernel has all next hops and BFD, if used, is up in all sessions.
func (t *trio) ready(ctx context.Context) error {
	if err := t.hops(ctx, nodes); err != nil {
		return err
	}
	return await(ctx, 100*time.Millisecond, func() error {
		var all map[string]struct {
			BGPState string
			BFD      struct{ Status string } `json:"peerBfdInfo"`
		}
		if err := t.router.Show(ctx, "show bgp neighbors json", &all); err != nil {
			return err
		}
		for i := range nodes {
			n := all[source(i).String()]
			if n.BGPState != "Established" || t.speaking.BFD != nil && n.BFD.Status != "Up" {
				return fmt.Errorf("session with %s is %s, BFD %q", source(i), n.BGPState, n.BFD.Status)
			}
		}
		return nil
	})
}

// hops waits until the router's kernel has the given number of next hops for the address.
func (t *trio) hops(ctx context.Context, want int) error {
	return await(ctx, 50*time.Millisecond, func() error {
		out, err := exec.CommandContext(ctx, "ip", "-n", t.router.Netns, "-4", "-o", "route", "show", vip().String()).Output()
		if err != nil {
			return err
		}
		if n := strings.Count(string(out), " via "); n != want {
			return fmt.Errorf("%d next hops of %s in the router's kernel, want %d", n, vip(), want)
		}
		return nil
	})
}
