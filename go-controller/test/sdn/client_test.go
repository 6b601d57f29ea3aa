// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/sdn/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// pair returns one address of each family that a node holds.
func pair(t *testing.T, held map[netip.Addr]string, node string) []netip.Addr {
	t.Helper()
	addrs := map[bool]netip.Addr{}
	for _, a := range slices.SortedFunc(maps.Keys(held), netip.Addr.Compare) {
		if held[a] == node {
			addrs[a.Is4()] = a
		}
	}
	if len(addrs) != 2 {
		t.Fatalf("node %s holds no address of each family: %v", node, addrs)
	}
	return []netip.Addr{addrs[true], addrs[false]}
}

// during sends requests to addresses from a client and watches which hosts answer for them while do runs. It checks
// that the given number of hosts answered, and that the nodes' kernels had the addresses one after the other. Frames of
// two nodes may arrive in another order than they were sent. The log has the gaps; make bench-sdn measures them.
func (r *running) during(addrs []netip.Addr, machines int, do func()) {
	r.t.Helper()
	var specs []probe.Spec
	for _, a := range addrs {
		specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(a, site.Port)},
			probe.Spec{Kind: probe.UDPNew, Target: netip.AddrPortFrom(a, site.Port)})
	}
	watching, err := r.Watch(r.t.Context(), addrs...)
	if err != nil {
		r.t.Fatal(err)
	}
	probing, err := r.Probe(r.t.Context(), specs...)
	if err != nil {
		r.t.Fatal(err)
	}
	holders := r.holders(addrs, do)
	var results []probe.Result
	seen := site.Sightings{}
	if err := errors.Join(probing.End(&results), watching.End(&seen)); err != nil {
		r.t.Fatal(err)
	}
	for _, result := range results {
		r.t.Log(result)
	}
	for a, macs := range seen {
		if len(macs) != machines {
			r.t.Errorf("%s was answered for by %v, want %d", a, macs, machines)
		}
	}
	for a, nodes := range holders {
		if len(nodes) > machines {
			r.t.Errorf("%s was held by %v, want at most %d, one after the other", a, nodes, machines)
		}
	}
}

// sampled is how long holders waits between two nodes: much less than an agent needs to hand over an address.
const sampled = 5 * time.Millisecond

// holders returns the nodes whose kernels had each address while do ran, in order. A node occurs again if it still had
// the address after it was found on another one.
func (r *running) holders(addrs []netip.Addr, do func()) map[netip.Addr][]string {
	r.t.Helper()
	ctx, end := context.WithCancel(r.t.Context())
	found := make(chan map[netip.Addr][]string, 1)
	go func() {
		holders := map[netip.Addr][]string{}
		for i := 0; ctx.Err() == nil; i++ { // forth and back: n1, n2, n3, n4, n4, n3 and so on
			<-time.After(sampled)
			round := i % (2 * nodes)
			node := site.NodeName(1 + min(round, 2*nodes-1-round))
			has, err := r.Kernel(node)
			if err != nil && ctx.Err() == nil {
				r.t.Error(err)
			}
			for _, a := range addrs {
				if seen := holders[a]; has[a] && (len(seen) == 0 || seen[len(seen)-1] != node) {
					holders[a] = append(seen, node)
				}
			}
		}
		found <- holders
	}()
	defer end()
	do()
	end()
	return <-found
}

// leave waits until a node holds no addresses.
func (r *running) leave(node string) {
	r.t.Helper()
	r.await("node "+node+" holds nothing", func(ctx context.Context) error {
		held, err := r.Held(ctx)
		if err != nil {
			return err
		}
		n := 0
		for _, by := range held {
			if by == node {
				n++
			}
		}
		if n > 0 || len(held) != 2*services {
			return fmt.Errorf("%d of %d are on it", n, len(held))
		}
		return nil
	})
}

// known waits until nodes count as gateways that can take addresses.
func (r *running) known(nodes ...string) {
	r.t.Helper()
	r.await(fmt.Sprintf("nodes %v are fit", nodes), func(ctx context.Context) error {
		out, err := r.Plane.Get(ctx, "l2domains", "", "lan", "{.status.excludedNodes[*].name}")
		if err == nil && out != "" {
			err = errors.New("excluded: " + out)
		}
		return err
	})
}

func (r *running) kubectl(args ...string) string {
	r.t.Helper()
	out, err := r.Plane.Kubectl(context.WithoutCancel(r.t.Context()), args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// unmoved checks that each address is assigned to the same node as before.
func (r *running) unmoved(before map[netip.Addr]string) {
	r.t.Helper()
	if now, err := r.Held(r.t.Context()); err != nil || !maps.Equal(now, before) {
		r.t.Fatalf("addresses have moved (%v)", err)
	}
}
