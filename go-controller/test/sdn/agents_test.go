// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"maps"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
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

func gone(t *testing.T, r *running) {
	again(t, r, r.expire(func(agent *proc.Process) error { return agent.Kill() }))
}

// hung checks a node whose agent neither works nor ends: its kernel still accepts connections.
func hung(t *testing.T, r *running) {
	node := r.expire(func(agent *proc.Process) error { return agent.SignalGroup(syscall.SIGSTOP) })
	agent, err := r.Agent(node)
	if err == nil {
		err = agent.SignalGroup(syscall.SIGCONT)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.known(node)
	r.settled(2 * services)
}

// expire stops the agent of a node, and waits until the addresses have moved. The node's kernel answers until it
// removes them. Only then may another node take them.
func (r *running) expire(stop func(agent *proc.Process) error) (node string) {
	r.t.Helper()
	held := r.settled(2 * services)
	node = held[slices.SortedFunc(maps.Keys(held), netip.Addr.Compare)[0]]
	agent, err := r.Agent(node)
	if err != nil {
		r.t.Fatal(err)
	}
	r.during(pair(r.t, held, node), 2, func() {
		if err := stop(agent); err != nil {
			r.t.Fatal(err)
		}
		r.leave(node)
		r.settled(2 * services)
	})
	return node
}
