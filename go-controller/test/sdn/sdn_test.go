// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// services are dual-stack, so there are twice as many addresses.
const services = 100

func TestSDN(t *testing.T) {
	contract.TestAsRoot(t, "ip")
	r := start(t)
	if err := r.AddServices(t.Context(), "s", services); err != nil {
		t.Fatal(err)
	}
	held := r.settled(2 * services)
	loads := map[string]int{}
	for _, node := range held {
		loads[node]++
	}
	t.Log("addresses by node:", loads)
	if len(loads) != nodes {
		t.Errorf("only %v hold addresses", slices.Sorted(maps.Keys(loads)))
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, *running)
	}{
		{"the condition names the node", announced},
		{"a node is lost and comes back", lost},
		{"a node drains", drained},
		{"an agent is killed and comes back", killed},
		{"agents serve their metrics", measured},
		{"an agent starts without the API server", startedWithoutAPIServer},
		{"an agent starts while its ports are busy", portsBusy},
		{"an agent ends unexpectedly", endedUnnoticed},
		{"other addresses of a node change all the time", addressesChange},
		{"an agent ends", ended},
		{"an agent is gone for good", gone},
		{"an agent hangs", hung},
		{"another client edits a node", meddled},
		{"another program has an address", taken},
		{"another program takes an address that is held", takenLater},
		{"a node loses IPv6", withoutIPv6},
		{"the controllers restart", restarted},
		{"the leader is killed while a node is lost", beheaded},
	} {
		if !t.Run(c.name, func(t *testing.T) {
			inner := *r
			inner.t = t
			c.test(t, &inner)
		}) {
			break // the following cases would start from an unexpected state
		}
	}
}

func announced(t *testing.T, r *running) {
	name, port, ready, backend := "tcp", int32(8080), true, "n1"
	_, err := r.Client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: "s-0-", Labels: map[string]string{discoveryv1.LabelServiceName: "s-0"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.2"}, NodeName: &backend,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held := r.settled(2 * services)
	r.await("Service s-0 announced", func(ctx context.Context) error {
		s, err := r.Client.CoreV1().Services("default").Get(ctx, "s-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
		if c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %+v", c)
		}
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			want := fmt.Sprintf("address %s is assigned to node %s", ingress.IP, held[netip.MustParseAddr(ingress.IP)])
			if !strings.Contains(c.Message, want) {
				return fmt.Errorf("message %q lacks %q", c.Message, want)
			}
		}
		return nil
	})
}

func lost(t *testing.T, r *running) {
	const node = "n1"
	before := r.settled(2 * services)
	r.during(pair(t, before, node), 2, func() {
		if err := r.Cut(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		r.leave(node)
		r.settled(2*services, node)
		if err := r.Restore(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		r.settled(2 * services)
	})
	after := r.settled(2 * services)
	for a, by := range after {
		if by == node || before[a] != node && before[a] != by {
			t.Errorf("%s moved from %s to %s", a, before[a], by)
		}
	}
	// The node that is back takes addresses only when they move next.
	r.known(node)
}

func drained(t *testing.T, r *running) {
	const node = "n2"
	before := r.settled(2 * services)
	r.during(pair(t, before, node), 2, func() {
		r.kubectl("annotate", "node", node, v1alpha1.AnnotationDrain+"=test")
		r.leave(node)
		r.settled(2 * services)
	})
	r.kubectl("annotate", "node", node, v1alpha1.AnnotationDrain+"-")
	r.known(node)
	r.settled(2 * services)
}

func restarted(t *testing.T, r *running) {
	before := r.settled(2 * services)
	annotations := r.kubectl("get", "nodes", "-o", `jsonpath={.items[*].metadata.annotations}`)
	for _, name := range []string{"c1", "c2"} {
		if err := r.controllers[name].Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"c1", "c2"} {
		r.controller(name)
	}
	r.undisturbed(before)
	if r.kubectl("get", "nodes", "-o",
		`jsonpath={.items[*].metadata.annotations}`) != annotations {
		t.Error("annotations are not what they were")
	}
}

func (r *running) signalControllers(sig syscall.Signal) {
	r.t.Helper()
	for _, c := range r.controllers {
		if err := c.SignalGroup(sig); err != nil {
			r.t.Fatal(err)
		}
	}
}

func beheaded(t *testing.T, r *running) {
	const node = "n4"
	before := r.settled(2 * services)
	r.during(pair(t, before, node), 2, func() {
		// While both replicas are stopped, the leader stays the leader, however long the machine stalls.
		var leader string
		var terms int32
		r.await("a leader that is stopped", func(ctx context.Context) error {
			r.signalControllers(syscall.SIGSTOP)
			var err error
			if leader, terms, err = r.LastLeader(ctx); err != nil {
				r.signalControllers(syscall.SIGCONT)
			}
			return err
		})
		if r.controllers[leader] == nil {
			t.Fatalf("leader %q", leader)
		}
		if err := errors.Join(r.Cut(t.Context(), node), r.controllers[leader].Kill()); err != nil {
			t.Fatal(err)
		}
		r.signalControllers(syscall.SIGCONT) // the one that is left
		r.leave(node)
		r.settled(2*services, node)
		if now, err := r.Terms(t.Context()); err != nil || now <= terms {
			t.Errorf("%d changes of the leader (%v), %d before it was killed: it did not lead", now, err, terms)
		}
	})
	if err := r.Restore(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	r.settled(2 * services)
}
