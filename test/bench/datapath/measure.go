// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/load"
)

// families are the names of the families in the order of addresses.
func families() []string { return []string{"IPv4", "IPv6"} }

// gbitPerByte converts bytes to gigabits.
const gbitPerByte = 8e-9

// manyWorkers is the number of workers of the loads with many.
const manyWorkers = 32

// section is a part of the benchmark that a flag selects.
type section struct {
	name   string
	header string
	run    func(*site, context.Context) error
}

func sections() []section {
	return []section{
		{"new", connectionHeader, (*site).newConnections},
		rates("stream", load.Stream, 1, "Gbit/s", "Gbit", gbitPerByte),
		rates("streams", load.Stream, manyWorkers, "Gbit/s", "Gbit", gbitPerByte),
		rates("connect", load.Connect, manyWorkers, "1/s", "1,000", 1),
		rates("keep-alive", load.Request, manyWorkers, "1/s", "1,000", 1),
		rates("udp", load.Datagram, manyWorkers, "1/s", "1,000", 1),
		{"flood", floodHeader, (*site).floods},
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

// runSections runs the chosen sections. Consecutive ones with the same header have one.
func (s *site) runSections(ctx context.Context, chosen []string) error {
	if err := s.warm(ctx); err != nil {
		return err
	}
	header := ""
	for _, part := range sections() {
		if !slices.Contains(chosen, part.name) {
			continue
		}
		if part.header != header {
			header = part.header
			fmt.Fprintln(s.out, header) //nolint:errcheck // the error cannot be reported elsewhere
		}
		if err := part.run(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// warm opens a connection on each path, for ARP, and because the first packet of a tunnel is lost.
func (s *site) warm(ctx context.Context) error {
	for _, v := range services() {
		for f := range families() {
			all, err := s.paths(v, f)
			if err != nil {
				return err
			}
			for _, p := range all {
				spec := load.Spec{Kind: load.Connect, Workers: 1, Duration: time.Minute, Count: 1, Targets: p.tcp}
				if err := s.eventually(ctx, fmt.Sprintf("%s connects to %v", p.from, p.tcp), func(ctx context.Context) (bool,
					error) {
					r, err := s.lab.Load(ctx, p.from, spec)
					return r.Units > 0, err
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// show prints a figure and saves all.
func (s *site) show(figure fmt.Stringer) error {
	if _, err := fmt.Fprintln(s.out, figure); err != nil {
		return err
	}
	return s.save()
}

// path is a way to pods.
type path struct {
	// from is the namespace of the client.
	from     string
	tcp, udp []netip.AddrPort
}

// paths returns the paths to a Service, in the order of type paths: VIP, NodePort, pods.
func (s *site) paths(v webService, family int) ([]path, error) {
	n, err := s.lab.Node(gateway)
	if err != nil {
		return nil, err
	}
	to := func(addr netip.Addr, port uint16) []netip.AddrPort {
		return []netip.AddrPort{netip.AddrPortFrom(addr, port)}
	}
	vip, ports, own := s.vips[v.name][family], s.ports[v.name], n.LAN[family].Addr()
	all := []path{
		{client, to(vip, 80), to(vip, 53)},
		{client, to(own, ports[corev1.ProtocolTCP]), to(own, ports[corev1.ProtocolUDP])},
		{from: s.others[0]},
	}
	for _, pod := range s.pods[v.app] {
		all[2].tcp = append(all[2].tcp, netip.AddrPortFrom(pod[family], httpTarget))
		all[2].udp = append(all[2].udp, netip.AddrPortFrom(pod[family], echoTarget))
	}
	return all, nil
}

// usage is what the switches did in a time.
type usage struct {
	cpu, cpuAll     time.Duration // of the gateway, and of all nodes
	gateway, others counters      // of the gateway, and of the other node
}

// observe returns the usage since the switches started.
func (s *site) observe(ctx context.Context) (u usage, err error) {
	for _, n := range s.lab.Nodes {
		cpu, err := s.lab.SwitchCPU(n.Name)
		if err != nil {
			return u, err
		}
		u.cpuAll += cpu
		show, err := s.lab.Appctl(ctx, n.Name, "dpctl/show")
		if err != nil {
			return u, err
		}
		stats, err := s.lab.Appctl(ctx, n.Name, "dpif-netdev/pmd-stats-show")
		if err != nil {
			return u, err
		}
		c, err := parseCounters(show, stats)
		if err != nil {
			return u, err
		}
		if n.Name == gateway {
			u.cpu, u.gateway = cpu, c
		} else {
			u.others = u.others.plus(c)
		}
	}
	return u, nil
}

// during returns the usage while f runs.
func (s *site) during(ctx context.Context, f func() error) (usage, error) {
	before, err := s.observe(ctx)
	if err != nil {
		return usage{}, err
	}
	if err := f(); err != nil {
		return usage{}, err
	}
	after, err := s.observe(ctx)
	return usage{cpu: after.cpu - before.cpu, cpuAll: after.cpuAll - before.cpuAll,
		gateway: after.gateway.since(before.gateway), others: after.others.since(before.others)}, err
}

// load runs a load on a path.
func (s *site) load(ctx context.Context, p path, spec load.Spec) (r load.Result, u usage, err error) {
	spec.Targets = p.tcp
	if spec.Kind == load.Datagram {
		spec.Targets = p.udp
	}
	u, err = s.during(ctx, func() (err error) {
		r, err = s.lab.Load(ctx, p.from, spec)
		return err
	})
	return r, u, err
}

// purge removes all datapath flows of all nodes (ovs-vswitchd(8)).
func (s *site) purge(ctx context.Context) error {
	for _, n := range s.lab.Nodes {
		if _, err := s.lab.Appctl(ctx, n.Name, "revalidator/purge"); err != nil {
			return err
		}
	}
	return nil
}
