// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// Up builds a lab and returns when pods can communicate. If it fails, or if the context ends, it leaves nothing behind.
func Up(ctx context.Context, c Config) (*Lab, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := ovnprefix.Use(c.OVNPrefix); err != nil {
		return nil, err
	}
	if err := Preflight(); err != nil {
		return nil, err
	}
	if err := c.Network.checkProgram(ctx); err != nil {
		return nil, fmt.Errorf("lab %s: %w", c.Name, err)
	}
	l := newLab(c, state{Nodes: c.Nodes, NoKube: c.NoKube, Binary: c.Binary, OVNPrefix: c.OVNPrefix,
		FRRPrefix: frr.Prefix(), Network: c.Network, Created: time.Now()})
	if err := l.claim(c); err != nil {
		return nil, err
	}
	p := newProgress(c.Progress)
	if err := l.build(ctx, p); err != nil {
		p.logf("failed, removing what there is")
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), poll.Limit)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("lab %s: %w", l.Name, err), Down(cleanup, c))
	}
	p.logf("lab %s is up", l.Name)
	return l, nil
}

// claim creates the lab's directory, whose existence means that the lab exists.
func (l *Lab) claim(c Config) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("lab %s: %w", l.Name, err)
	}
	if err := os.Mkdir(l.Dir, 0o755); errors.Is(err, os.ErrExist) {
		return fmt.Errorf("lab %s: %w: use it (`lab --name %s status`), end it (`lab --name %s down`), or give another "+
			"--name",
			l.Name, errExists, l.Name, l.Name)
	} else if err != nil {
		return fmt.Errorf("lab %s: %w", l.Name, err)
	}
	return l.saveState()
}

// build runs the steps, concurrently where they are independent.
func (l *Lab) build(ctx context.Context, p *progress) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.buildNetwork(gctx) })
	g.Go(func() error { return l.ensureBinary(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	p.logf("namespaces and links: switch, central, router, clients, %d nodes", len(l.Nodes))
	if err := l.saveState(); err != nil { // The programs started below read the state.
		return err
	}
	g, gctx = errgroup.WithContext(ctx)
	g.Go(func() error { return l.buildOVN(gctx, p) })
	g.Go(func() error { return l.startWire(gctx) })
	g.Go(func() error {
		if err := l.startRouter(gctx); err != nil {
			return err
		}
		p.logf("router: FRR runs")
		return nil
	})
	if !l.state.NoKube {
		g.Go(func() error { return l.startKube(gctx, p) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if l.state.Network.Real() {
		if err := l.startOVNKube(ctx, p); err != nil {
			return err
		}
	}
	if !l.state.NoKube { // The agent needs a working network to plug pods.
		if err := l.startAgent(ctx); err != nil {
			return err
		}
	}
	l.state.Ready = true
	return l.saveState()
}

// ports returns all veths except those of pods.
func (l *Lab) ports() []port {
	ports := l.outsidePorts()
	for _, n := range l.Nodes {
		ports = append(ports, l.nodePorts(n)...)
	}
	return ports
}

// buildNetwork creates all namespaces and links except those of pods.
func (l *Lab) buildNetwork(ctx context.Context) error {
	names := []string{l.Netns(switchNetns), l.Netns(centralNetns), l.Netns(routerNetns), l.Netns(clientNetns),
		l.Netns(dmzNetns), l.Netns(taggedNetns), l.Netns(remoteNetns)}
	for _, n := range l.Nodes {
		names = append(names, l.Netns(n.Name))
	}
	if err := createNetns(ctx, names...); err != nil {
		return err
	}
	var bridges []string
	for _, s := range []Segment{Management(), Underlay(), LAN(), Provider(), Beyond()} {
		// Multicast snooping would drop neighbor discovery until there is a querier.
		bridges = append(bridges, fmt.Sprintf("link add %s mtu %d type bridge forward_delay 0 mcast_snooping 0", s.Bridge,
			s.MTU), "link set "+s.Bridge+" up")
	}
	if err := ip.Batch(ctx, l.Netns(switchNetns), bridges...); err != nil {
		return fmt.Errorf("create bridges: %w", err)
	}
	if err := createPorts(ctx, l.ports()...); err != nil {
		return err
	}
	return l.outsideRoutes(ctx)
}

// buildOVN starts the databases and all nodes, and waits until every chassis has registered. In the model it also
// writes the topology and waits until every chassis has applied it.
func (l *Lab) buildOVN(ctx context.Context, p *progress) error {
	if err := l.startZones(ctx, l.startNode); err != nil {
		return err
	}
	version, err := run(ctx, "ovn-nbctl", "--version")
	if err != nil {
		return err
	}
	version, _, _ = strings.Cut(version, "\n")
	p.logf("OVN: NB, SB, ovn-northd, and Open vSwitch and ovn-controller of %d nodes run (%s of %s)", len(l.Nodes),
		version, cmp.Or(l.state.OVNPrefix, "/usr"))
	if err := l.awaitChassis(ctx); err != nil || l.state.Network.Real() {
		return err
	}
	if err := l.Settle(ctx); err != nil {
		return err
	}
	p.logf("OVN: topology of %d nodes in place on every chassis", len(l.Nodes))
	return nil
}

// startZones starts the databases, which the model fills, and each node by start. The channel of start is closed as
// soon as ovn-controller may connect.
func (l *Lab) startZones(ctx context.Context, start func(context.Context, Node, <-chan struct{}) error) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, z := range l.zones() {
		initialized := make(chan struct{})
		g.Go(func() error {
			if err := l.startDatabases(gctx, z, func() { close(initialized) }); err != nil || l.state.Network.Real() {
				return err
			}
			return l.writeTopology(gctx, z)
		})
		for _, n := range z.nodes {
			g.Go(func() error { return start(gctx, n, initialized) })
		}
	}
	return g.Wait()
}

// writeTopology writes the rows of OVN-Kubernetes into the databases of a zone.
func (l *Lab) writeTopology(ctx context.Context, z zone) error {
	others := slices.DeleteFunc(slices.Clone(l.Nodes), z.has)
	c := nbctl{"--wait=sb"}
	c.topology(z.nodes)
	if l.state.Network.Zones() {
		c.transit(z.nodes[0], others)
	}
	if _, err := l.zoneNB(ctx, z, c...); err != nil {
		return fmt.Errorf("write the topology of zone %s: %w", z.name, err)
	}
	if err := l.addRemoteChassis(ctx, z, others); err != nil {
		return fmt.Errorf("add the chassis of other zones to zone %s: %w", z.name, err)
	}
	return nil
}

// awaitChassis returns when every node has registered. A later wait for all chassis covers only registered ones.
func (l *Lab) awaitChassis(ctx context.Context) error {
	return poll.Within(ctx, poll.Limit, func(ctx context.Context) error {
		for _, z := range l.zones() {
			out, err := l.zoneSB(ctx, z, "--bare", "--columns=name", "list", "Chassis")
			if err != nil {
				return err
			}
			for _, n := range z.nodes {
				if !slices.Contains(lines(out), n.Chassis) {
					return fmt.Errorf("chassis %s has not registered in the southbound database", n.Chassis)
				}
			}
		}
		return nil
	})
}
