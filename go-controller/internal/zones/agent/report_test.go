// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// readZone is a zone of which both databases have been read.
type readZone struct {
	*ovn.Dataplane
	states map[world.ShardID]world.ShardState
}

func (z *readZone) Unread() error                                           { return nil }
func (z *readZone) UnreadNB() error                                         { return nil }
func (z *readZone) UnreadSB() error                                         { return nil }
func (z *readZone) LacksTransit() bool                                      { return false }
func (z *readZone) ShardStates() (map[world.ShardID]world.ShardState, bool) { return z.states, true }

// A tenant can change ServicePlans at any rate, and each write is a revision of the whole Lease. A claim does not wait.
func TestReportsOfAppliedPlansArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		leases := client.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		writes := 0
		client.PrependReactor("patch", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			writes++
			return false, nil, nil
		})
		r, err := nodelease.New(leases, client.CoreV1().Nodes(), "n1", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		zone := &readZone{Dataplane: unconnected(t), states: map[world.ShardID]world.ShardState{}}
		a := &Agent{options: Options{Node: "n1", Report: r}, wake: make(chan struct{}, 1), dataplane: zone,
			runner: loop.New(zone, loop.Options{}), claims: claims{}, contestedSince: map[world.ShardID]time.Time{},
			published: *small()}
		go r.Run(t.Context())
		reported := func() *world.ZoneAgent {
			t.Helper()
			synctest.Wait()
			l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return convert.ReadReport(l).Zone
		}
		const last = 300
		for i := range last {
			o := servicePlan("web", i+1, 0)
			if i%2 == 1 {
				o.Spec.VIPs[0].Address = "unreadable" // It counts as applied, with an error.
			}
			a.setPlan(nil, o)
			a.report()
			<-time.After(reportInterval)
		}
		if synctest.Wait(); writes > 70 || writes < 50 {
			t.Errorf("%d writes of %d reports in a minute, want ten and one per second", writes, last)
		}
		before := writes
		shard := world.ShardID{Domain: "lan"}
		zone.states[shard] = world.ShardState{Active: "chassis-n1"}
		if a.report(); reported().Claims[shard].IsZero() || writes != before+1 {
			t.Errorf("%d writes with a claim, want one at once", writes-before)
		}
		if <-time.After(time.Second); reported().Applied != last {
			t.Errorf("the last report says %d, want %d", reported().Applied, last)
		}
	})
}
