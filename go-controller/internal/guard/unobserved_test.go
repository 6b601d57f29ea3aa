// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A guard that can't read Open vSwitch's database goes on renewing what it reported of uplinks. What it withdraws shows
// that this is out of date.
func TestReportsWithoutDatabaseAreUnobserved(t *testing.T) {
	type step struct {
		lost bool
		wait time.Duration
		want bool
	}
	for name, steps := range map[string][]step{
		"lost later": {{false, time.Minute, false}, {true, 25 * time.Second, false}, {true, time.Minute, true},
			{false, time.Minute, false}},
		// What a predecessor has reported is out of date as well.
		"lost from the start": {{true, 25 * time.Second, false}, {true, time.Minute, true}, {false, time.Minute, false}},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
			leases := client.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
			r, err := nodelease.New(leases, client.CoreV1().Nodes(), "n1", "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			g, err := New(Options{Node: "n1", Kube: client, Switch: ovn.Endpoint{Address: "unix:/nowhere"}, RunDir: "/nowhere",
				Report: r})
			if err != nil {
				t.Fatal(err)
			}
			var lost atomic.Bool
			g.bridges.networks = func() (map[string]ovn.Uplinks, bool) { return map[string]ovn.Uplinks{}, !lost.Load() }
			g.tunnels.read = func() (map[string]bool, bool) { return map[string]bool{"c2": true}, !lost.Load() }
			g.reportFaults(nil)
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for _, run := range []func(context.Context){r.Run, g.bridges.run, g.tunnels.run} {
				running.Go(func() { run(ctx) })
			}
			for _, step := range steps {
				lost.Store(step.lost)
				<-time.After(step.wait)
				synctest.Wait()
				l, err := leases.Get(ctx, "n1", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if is := convert.ReadReport(l); is.Unobserved != step.want || is.Faults != nil {
					t.Errorf("%s: database lost: %v, after %s: %+v of %v", name, step.lost, step.wait, is, l.Annotations)
				}
			}
			stop()
			running.Wait()
		})
	}
}
