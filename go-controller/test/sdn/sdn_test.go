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
		{"another client edits a node", meddled},
		{"another program has an address that is assigned", taken},
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

func meddled(t *testing.T, r *running) {
	held := r.settled(2 * services)
	node := held[slices.SortedFunc(maps.Keys(held), netip.Addr.Compare)[0]]
	addrs := pair(t, held, node)
	ip := func(args ...string) string {
		out, err := r.IP(t.Context(), node, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// Addresses like the egress addresses of OpenShift SDN, and addresses of other owners.
	foreign := []string{"10.50.0.240/32", "10.50.0.241/32", "fd00:50::f0/128"}
	ip("addr", "add", foreign[0], "dev", "eth1", "label", "eth1:eip")
	ip("addr", "add", foreign[1], "dev", "eth1")
	ip("addr", "add", foreign[2], "dev", "eth1", "nodad")
	for _, a := range addrs {
		ip("addr", "del", netip.PrefixFrom(a, a.BitLen()).String(), "dev", "eth1")
	}
	both := func(context.Context) error {
		has, err := r.Kernel(node)
		if err == nil && (!has[addrs[0]] || !has[addrs[1]]) {
			err = fmt.Errorf("%v are not all back", addrs)
		}
		return err
	}
	r.await("addresses that were removed", both)

	r.kubectl("annotate", "--overwrite", "node", node, v1alpha1.AnnotationVIPs+`=[{"ip":"10.50.0.300"}]`)
	r.await("annotation rewritten", func(ctx context.Context) error {
		now, err := r.Held(ctx)
		if err == nil && !maps.Equal(now, held) {
			err = errors.New("the addresses are not as before")
		}
		return err
	})
	r.await("event about the annotation", func(ctx context.Context) error {
		out, err := r.Plane.Get(ctx, "events", "default", "",
			`{.items[?(@.reason=="`+v1alpha1.EventVIPsUnreadable+`")].message}`)
		if err == nil && !strings.Contains(out, `"10.50.0.300" is no address`) {
			err = fmt.Errorf("events are %q", out)
		}
		return err
	})
	// An annotation that can be parsed but has different contents.
	r.kubectl("annotate", "node", node, v1alpha1.AnnotationVIPs+"-")
	r.await("annotation rewritten", func(ctx context.Context) error {
		now, err := r.Held(ctx)
		if err == nil && !maps.Equal(now, held) {
			err = errors.New("the addresses are not as before")
		}
		return errors.Join(err, both(ctx))
	})
	for _, a := range foreign {
		if out := ip("-o", "addr", "show", "dev", "eth1"); !strings.Contains(out, " "+a+" ") {
			t.Errorf("%s is gone", a)
		}
		ip("addr", "del", a, "dev", "eth1")
	}
	r.settled(2 * services)
}

// taken checks addresses of another program, like egress addresses of OpenShift SDN, that are assigned to the node that
// has them.
func taken(t *testing.T, r *running) {
	before := r.settled(2 * services)
	if err := r.AddServices(t.Context(), "taken", 1); err != nil {
		t.Fatal(err)
	}
	node, requested := "", []string{}
	for a, by := range r.settled(2*services + 2) {
		if before[a] == "" {
			node, requested = by, append(requested, a.String())
		}
	}
	again, err := r.Client.CoreV1().Services("default").Get(t.Context(), "taken-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again.ObjectMeta = metav1.ObjectMeta{Name: again.Name,
		Annotations: map[string]string{v1alpha1.AnnotationLoadBalancerIPs: strings.Join(requested, ",")}}
	again.Spec.ClusterIP, again.Spec.ClusterIPs = "", nil
	r.kubectl("delete", "service", again.Name)
	r.settled(2 * services)

	ip := func(args ...string) string {
		out, err := r.IP(t.Context(), node, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	foreign := map[string]string{} // what the kernel reports, by address
	for _, a := range requested {
		args := []string{"addr", "add", netip.PrefixFrom(netip.MustParseAddr(a), netip.MustParseAddr(a).BitLen()).String(),
			"dev", "eth1"}
		if strings.Contains(a, ":") {
			args = append(args, "nodad")
		} else {
			args = append(args, "label", "eth1:eip")
		}
		ip(args...)
		foreign[a] = ip("-o", "addr", "show", "dev", "eth1", "to", a)
	}
	unchanged := func(when string) {
		t.Helper()
		for a, want := range foreign {
			if now := ip("-o", "addr", "show", "dev", "eth1", "to", a); now != want {
				t.Errorf("%s: %q, want %q", when, now, want)
			}
		}
	}
	if _, err := r.Client.CoreV1().Services("default").Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.await("Service "+again.Name+" reports the addresses", func(ctx context.Context) error {
		s, err := r.Client.CoreV1().Services("default").Get(ctx, again.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "and not from here") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	unchanged("assigned")
	r.kubectl("delete", "service", again.Name)
	r.await("addresses no longer assigned", func(ctx context.Context) error {
		now, err := r.Held(ctx)
		if err == nil && !maps.Equal(now, before) {
			err = fmt.Errorf("%d addresses are assigned", len(now))
		}
		return err
	})
	unchanged("no longer assigned")
	for a := range foreign {
		ip("addr", "del", a, "dev", "eth1")
	}
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
