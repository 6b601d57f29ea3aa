// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// unconnected returns the databases of a zone that can't be reached.
func unconnected(t *testing.T) *ovn.Dataplane {
	t.Helper()
	d, err := ovn.New(ovn.Options{NB: ovn.Endpoint{Address: "unix:/nowhere"}, SB: ovn.Endpoint{Address: "unix:/nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// An agent that restarts while the databases are away reports that as one that has lived on, although the guard renews
// the report of its predecessor. What the predecessor knew stays, and until the problem lasts so does its report.
func TestDatabasesThatAreAwayAtTheStartAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard, since := world.ShardID{Domain: "lan"}, time.Unix(1000, 0).UTC()
		before := &world.ZoneAgent{Bridges: world.Bridges{"physnet": "br-ex"}, Applied: 7,
			Claims: map[world.ShardID]time.Time{shard: since}, Contested: map[world.ShardID]bool{},
			Failed: map[world.Key]string{}}
		text, err := convert.ZoneReport(before)
		if err != nil {
			t.Fatal(err)
		}
		kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "cluster"}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1", Namespace: v1alpha1.GuardsNamespace,
				Annotations: map[string]string{v1alpha1.AnnotationZone: text}}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n2", Namespace: v1alpha1.GuardsNamespace,
				Annotations: map[string]string{v1alpha1.AnnotationZone: `{"applied":9}`}}})
		leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		r, err := nodelease.New(leases, kube.CoreV1().Nodes(), "n1", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		a := &Agent{options: Options{Node: "n1", Kube: kube, Report: r}, wake: make(chan struct{}, 1),
			dataplane: unconnected(t)}
		go r.Run(t.Context())
		go a.work(t.Context())
		reported := func() *world.ZoneAgent {
			t.Helper()
			synctest.Wait()
			l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return convert.ReadReport(l).Zone
		}
		<-time.After(problemGracePeriod - time.Second)
		r.Report(v1alpha1.AnnotationFaults, "{}", false) // the guard
		if got := reported(); !got.Equal(before) || got.Applied != 7 {
			t.Errorf("before the problem lasts: %+v", got)
		}
		<-time.After(2 * time.Second)
		got := reported()
		if !strings.Contains(got.Problem, "southbound database at unix:/nowhere: not in sync") {
			t.Errorf("problem %q", got.Problem)
		}
		if !strings.Contains(got.Unwritable, "northbound database at unix:/nowhere: not in sync") {
			t.Errorf("unwritable %q", got.Unwritable)
		}
		if got.Problem, got.Unwritable = "", ""; !got.Equal(before) || got.Applied != 7 {
			t.Errorf("otherwise %+v, want %+v", got, before)
		}
	})
}

// stuckDataplane is a dataplane in which Configure returns only once released.
type stuckDataplane struct{ release chan struct{} }

func (d stuckDataplane) Configure(context.Context, *plan.Topology) error { <-d.release; return nil }

func (stuckDataplane) Apply(context.Context, []dataplane.Change) map[world.Key]error { return nil }
func (stuckDataplane) Prune(context.Context, func(world.Key) bool) error             { return nil }
func (stuckDataplane) Pending(world.Key) time.Time                                   { return time.Time{} }

// An agent that waits or is idle is alive indefinitely, one with a stuck loop is not.
func TestStuckAgentFailsLiveness(t *testing.T) {
	const stall = time.Minute
	for _, stuck := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			d := stuckDataplane{make(chan struct{})}
			if !stuck {
				close(d.release)
			}
			client := fake.NewClientset()
			r, err := nodelease.New(client.CoordinationV1().Leases(v1alpha1.GuardsNamespace), client.CoreV1().Nodes(), "n1",
				"test", nil)
			if err != nil {
				t.Fatal(err)
			}
			a := &Agent{options: Options{Node: "n1", Report: r}, wake: make(chan struct{}, 1), dataplane: unconnected(t),
				claims: claims{}, contestedSince: map[world.ShardID]time.Time{}, published: *small()}
			if a.metrics, err = newMetrics(nil); err != nil {
				t.Fatal(err)
			}
			a.runner = loop.New(d, loop.Options{Alive: a.applying.Beat})
			a.transacted(nil) // the node steps down before the runner has started
			<-time.After(time.Hour)
			if err := a.Alive(stall); err != nil {
				t.Errorf("waiting: %v", err)
			}
			ended := make(chan struct{})
			go func() {
				a.serve(ctx)
				close(ended)
			}()
			<-time.After(stall)
			if err := a.Alive(stall); err != nil {
				t.Errorf("stuck %t, after a minute: %v", stuck, err)
			}
			<-time.After(time.Hour)
			want := "<nil>"
			if stuck {
				want = "the runner of the zone: no heartbeat for 1h1m0s"
			}
			if got := fmt.Sprint(a.Alive(stall)); got != want {
				t.Errorf("stuck %t, after an hour: %s, want %s", stuck, got, want)
			}
			if stuck {
				close(d.release)
			}
			cancel()
			<-ended
			if err := a.Alive(stall); err != nil {
				t.Errorf("ended: %v", err)
			}
		})
	}
}

func TestStuckMainLoopFailsLiveness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Agent
		a.deciding.Beat()
		<-time.After(time.Hour)
		if err := a.Alive(time.Minute); err == nil || !strings.Contains(err.Error(), "the agent of the zone") {
			t.Errorf("stuck: %v", err)
		}
	})
}

// neverSynced is an informer that has not read anything yet.
type neverSynced struct{ cache.Controller }

func (neverSynced) HasSynced() bool { return false }

// read is an informer that has read everything.
type read struct{ cache.Controller }

func (read) HasSynced() bool { return true }

// The text of a problem that lasts must not change, because the Lease is patched with each change.
func TestAllUnreadObjectsAreNamedInOrder(t *testing.T) {
	a := &Agent{informers: map[string]cache.Controller{"serviceplans": neverSynced{}, "nodes": read{},
		"l2domains": neverSynced{}}}
	const want = "l2domains, serviceplans have not been read yet"
	for range 20 {
		if got := fmt.Sprint(a.unreadObjects()); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	a.informers = map[string]cache.Controller{"nodes": read{}}
	if err := a.unreadObjects(); err != nil {
		t.Errorf("everything was read: %v", err)
	}
}
