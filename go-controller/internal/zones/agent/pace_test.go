// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A node that rewrites its annotations in a loop does not keep the agents of others busy. What changes meanwhile is
// applied after a rest, and another order of gateways at once.
func TestTopologyRestsBetweenComputations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recording.Dataplane{}
		a := &Agent{options: Options{Node: "n1"}, wake: make(chan struct{}, 1), dataplane: unconnected(t),
			runner: loop.New(d, loop.Options{}), published: *small()}
		a.setNode(nil, node("n3", "n3"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.runner.Run(ctx)
		go func() {
			for ctx.Err() == nil {
				a.step()
				select {
				case <-ctx.Done():
				case <-a.wake:
				}
			}
		}()
		rewrites := 0
		rewrite := func(times int) {
			for range times {
				rewrites++
				n := node("n3", "n3")
				n.Annotations["k8s.ovn.org/node-chassis-id"] = fmt.Sprint("x", rewrites)
				a.update(func() bool { return a.changeNode(nil, n) })
				<-time.After(time.Millisecond)
			}
		}
		synctest.Wait()
		before := d.Calls().Configure
		rewrite(500)
		a.update(func() bool { return a.setPlan(nil, servicePlan("web", 5, 0)) })
		rewrite(500)
		if got, most := d.Calls().Configure-before, int(time.Second/minRest)+1; got < 2 || got > most {
			t.Errorf("%d topologies in a second, want 2 to %d", got, most)
		}
		if d.Services()[world.Key{Namespace: "shop", Name: "web"}] == nil {
			t.Error("a Service waits for more than a rest")
		}
		for _, first := range []string{"n1", "n2", "n1"} {
			rewrite(1)
			lan := a.domains["lan"].DeepCopy()
			lan.Status.Shards[0].Gateways = []string{first, "n3"}
			a.update(func() bool { return a.setDomain(nil, lan) })
			synctest.Wait()
			if got := d.Topology().Domains[0].Shards[0].Gateways[0].Node; got != first {
				t.Errorf("the first gateway is %s, want %s at once", got, first)
			}
		}
		for _, zone := range []string{"global", "n1"} {
			rewrite(1)
			a.update(func() bool { return a.changeNode(nil, node("n1", zone)) })
			synctest.Wait()
			if owns := zone == "n1"; (a.fence() == nil) != owns {
				t.Errorf("zone %s of the own node: fence %v at once", zone, a.fence())
			}
		}
		rewrite(1)
		<-time.After(minRest)
		synctest.Wait()
		last := d.Topology().Nodes[2]
		if want := fmt.Sprint("x", rewrites); last.Chassis != want {
			t.Errorf("the last topology has chassis %s, want %s", last.Chassis, want)
		}
	})
}

func TestLabelsCountOnlyIfASelectorUsesThem(t *testing.T) {
	labels := func(text ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(text); i += 2 {
			out[text[i]] = text[i+1]
		}
		return out
	}
	p := small()
	lan := p.domains["lan"].DeepCopy()
	lan.Spec.NodeSelectors = []metav1.LabelSelector{{MatchLabels: labels("rack", "a")}, {MatchExpressions: []metav1.
		LabelSelectorRequirement{{Key: "edge", Operator: metav1.LabelSelectorOpExists}}}}
	lan.Spec.Gateways.Preferred = []v1alpha1.PreferredGateways{{Weight: 1,
		Preference: metav1.LabelSelector{MatchLabels: labels("preferred", "")}}}
	p.setDomain(nil, lan)
	was := labels("rack", "a", "other", "x")
	n := node("n3", "n3")
	n.Labels = was
	p.setNode(nil, n)
	for name, c := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"the same":                  {labels("rack", "a", "other", "x"), false},
		"another label":             {labels("rack", "a", "other", "y", "more", ""), false},
		"a value that is selected":  {labels("rack", "b", "other", "x"), true},
		"a label gone":              {labels("other", "x"), true},
		"a label of an expression":  {labels("rack", "a", "other", "x", "edge", ""), true},
		"a label that is preferred": {labels("rack", "a", "preferred", ""), false}, // the controller orders gateways
	} {
		n := n.DeepCopy()
		n.Labels = was
		p.setNode(nil, n)
		_, _, _ = p.desired("n1", world.Cluster{}, nil)
		n = n.DeepCopy()
		n.Labels = c.labels
		if got := p.setNode(nil, n); got != c.want || p.whole != c.want {
			t.Errorf("%s: relevant %t, whole %t; want %t", name, got, p.whole, c.want)
		}
	}
}
