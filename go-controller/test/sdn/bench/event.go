// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/sdn/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// quietPeriod limits waiting for an event that is expected soon.
const quietPeriod = time.Minute

// bench is a site with the product, in a stable state.
type bench struct {
	*site.Site
	addresses, nodes int
	controllers      map[string]*proc.Process
	progress         io.Writer
}

func (b *bench) build(ctx context.Context, dir, program string, services int) error {
	s, err := site.Build(ctx, site.Options{Dir: dir, Program: program, Manifests: "dist/manifests", Nodes: b.nodes,
		Progress: b.progress})
	if err != nil {
		return err
	}
	b.Site, b.controllers = s, map[string]*proc.Process{}
	for i := 1; i <= b.nodes; i++ {
		if _, err := s.StartAgent(ctx, site.NodeName(i)); err != nil {
			return err
		}
	}
	for _, name := range []string{"c1", "c2"} {
		if b.controllers[name], err = s.StartController(ctx, name); err != nil {
			return err
		}
	}
	if err := s.AddServices(ctx, "s", services); err != nil {
		return err
	}
	return b.rest(ctx)
}

// rest waits until all addresses are held and every node can take addresses.
func (b *bench) rest(ctx context.Context) error {
	return poll.Within(ctx, quietPeriod, func(ctx context.Context) error {
		held, err := b.Held(ctx)
		if err != nil || len(held) != b.addresses {
			return fmt.Errorf("%d addresses are held, want %d (%w)", len(held), b.addresses, err)
		}
		out, err := b.Plane.Kubectl(ctx, "get", "l2domain", "lan", "-o", "jsonpath={.status.excludedNodes[*].name}")
		if err == nil && out != "" {
			err = errors.New("excluded: " + out)
		}
		return err
	})
}

// busiest returns the node with the most addresses, and one address of each family on that node.
func (b *bench) busiest(ctx context.Context) (node string, addrs []netip.Addr, err error) {
	held, err := b.Held(ctx)
	if err != nil {
		return "", nil, err
	}
	loads := map[string]int{}
	for _, by := range held {
		loads[by]++
		if loads[by] > loads[node] || loads[by] == loads[node] && by < node {
			node = by
		}
	}
	found := map[bool]netip.Addr{}
	for a, by := range held {
		if by == node {
			found[a.Is4()] = a
		}
	}
	for _, a := range found {
		addrs = append(addrs, a)
	}
	return node, addrs, nil
}

// measure returns the longest gap of a client while do takes the busiest node out.
func (b *bench) measure(ctx context.Context, after time.Duration, do func(node string) error) (node string,
	gap time.Duration, err error) {
	if err := b.rest(ctx); err != nil {
		return "", 0, err
	}
	node, addrs, err := b.busiest(ctx)
	if err != nil {
		return "", 0, err
	}
	var specs []probe.Spec
	for _, a := range addrs {
		at := netip.AddrPortFrom(a, site.Port)
		specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: at}, probe.Spec{Kind: probe.UDPNew, Target: at})
	}
	probing, err := b.Probe(ctx, specs...)
	if err != nil {
		return "", 0, err
	}
	// Health checks are sent once per second. The node fails at a different time between them in each run.
	select {
	case <-ctx.Done():
		return "", 0, ctx.Err()
	case <-time.After(after):
	}
	if err := do(node); err != nil {
		return "", 0, err
	}
	err = poll.Within(ctx, quietPeriod, func(ctx context.Context) error {
		held, err := b.Held(ctx)
		for a, by := range held {
			if by == node {
				return fmt.Errorf("%s is on %s yet (%w)", a, node, err)
			}
		}
		if err == nil && len(held) != b.addresses {
			err = fmt.Errorf("%d addresses are held", len(held))
		}
		return err
	})
	if err != nil {
		return "", 0, err
	}
	// Let the client use the new node for a while.
	select {
	case <-ctx.Done():
		return "", 0, ctx.Err()
	case <-time.After(time.Second):
	}
	var results []probe.Result
	if err := probing.End(&results); err != nil {
		return "", 0, err
	}
	for _, r := range results {
		gap = max(gap, r.Gap)
	}
	return node, gap, nil
}

// spread returns a different offset within a second for each i.
func spread(i int) time.Duration { return time.Duration(i*370%1000) * time.Millisecond }

func (b *bench) lose(ctx context.Context, i int) (time.Duration, error) {
	node, gap, err := b.measure(ctx, spread(i), func(node string) error { return b.Cut(ctx, node) })
	return gap, errors.Join(err, b.restore(ctx, node))
}

func (b *bench) restore(ctx context.Context, node string) error {
	if node == "" {
		return nil
	}
	return b.Restore(ctx, node)
}

func (b *bench) drain(ctx context.Context, i int) (time.Duration, error) {
	node, gap, err := b.measure(ctx, spread(i), func(node string) error {
		_, err := b.Plane.Kubectl(ctx, "annotate", "node", node, v1alpha1.AnnotationDrain+"=bench")
		return err
	})
	if err != nil {
		return 0, err
	}
	_, err = b.Plane.Kubectl(ctx, "annotate", "node", node, v1alpha1.AnnotationDrain+"-")
	return gap, err
}

func (b *bench) behead(ctx context.Context, i int) (time.Duration, error) {
	var leader string
	node, gap, err := b.measure(ctx, spread(i), func(node string) (err error) {
		if leader, err = b.Leader(ctx); err != nil {
			return err
		}
		return errors.Join(b.Cut(ctx, node), b.controllers[leader].Kill())
	})
	if err == nil {
		b.controllers[leader], err = b.StartController(ctx, leader)
	}
	return gap, errors.Join(err, b.restore(ctx, node))
}
