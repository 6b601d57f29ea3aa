// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
)

func killed(t *testing.T, r *running) {
	const node = "n3"
	before := r.settled(2 * services)
	r.during(pair(t, before, node), 1, func() {
		r.withoutControllers(func() {
			r.kill(node)
			if _, err := r.StartAgent(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			r.renewed(node, before)
		})
		r.undisturbed(before)
	})
}

// undisturbed checks that no address moves when a controller has made a decision, which is for a new Service.
func (r *running) undisturbed(before map[netip.Addr]string) {
	r.t.Helper()
	if err := r.AddServices(r.t.Context(), "later", 1); err != nil {
		r.t.Fatal(err)
	}
	after := r.settled(2*services + 2)
	for a, node := range before {
		if after[a] != node {
			r.t.Errorf("%s moved from %s to %s", a, node, after[a])
		}
	}
	r.kubectl("delete", "service", "later-0")
	r.settled(2 * services)
}

// again starts the agent of a node that has none.
func again(t *testing.T, r *running, node string) {
	t.Helper()
	if _, err := r.StartAgent(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	r.known(node)
}

func ended(t *testing.T, r *running) {
	const node = "n3"
	agent, err := r.Agent(node)
	if err != nil {
		t.Fatal(err)
	}
	r.during(pair(t, r.settled(2*services), node), 2, func() {
		if err := agent.Terminate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if has, err := r.Kernel(node); err != nil || len(has) > 0 {
			t.Errorf("the agent has ended, and node %s still has %v (%v)", node, has, err)
		}
		r.settled(2 * services)
	})
	again(t, r, node)
}

// gone checks a node whose agent is gone. The node's kernel answers until it removes the addresses. Only then may
// another node take them.
func gone(t *testing.T, r *running) {
	held := r.settled(2 * services)
	node := held[slices.SortedFunc(maps.Keys(held), netip.Addr.Compare)[0]]
	agent, err := r.Agent(node)
	if err != nil {
		t.Fatal(err)
	}
	r.during(pair(t, held, node), 2, func() {
		if err := agent.Kill(); err != nil {
			t.Fatal(err)
		}
		r.leave(node)
		r.settled(2 * services)
	})
	again(t, r, node)
}
