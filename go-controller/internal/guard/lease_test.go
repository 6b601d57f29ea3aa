// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// Without its Lease, the controller takes a node for one without an agent, and does so until the next renewal.
func TestDeletedLeaseIsWrittenAgain(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	leases := fakeLeases{client.CoordinationV1().Leases(v1alpha1.GuardsNamespace), make(chan struct{}, 10)}
	r, err := nodelease.New(leases, client.CoreV1().Nodes(), "n1", "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	events, err := leases.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	<-leases.watched
	awaitEvent := func(kind watch.EventType) *coordinationv1.Lease {
		t.Helper()
		for {
			if e := await.Receive(t, fmt.Sprintf("event %s", kind), events.ResultChan()); e.Type == kind {
				return e.Object.(*coordinationv1.Lease)
			}
		}
	}
	go r.Run(ctx)
	observed := make(chan struct{}, 10)
	handler := onLease(func(*coordinationv1.Lease) { observed <- struct{}{} }, r.Renew)
	go kube.NewOneLeaseInformer(leases, "n1", handler).RunWithContext(ctx)
	r.Report(v1alpha1.AnnotationFaults, "{}", false)
	awaitEvent(watch.Added)
	await.Receive(t, "the Lease is observed", observed)
	// The fake client does not deliver events from before a watch.
	await.Receive(t, "the Lease is watched", leases.watched)
	if err := leases.Delete(ctx, "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitEvent(watch.Deleted)
	if l := awaitEvent(watch.Added); l.Annotations[v1alpha1.AnnotationFaults] != "{}" {
		t.Errorf("annotations %v", l.Annotations)
	}
}

// fakeLeases is a fake client, which can't stream the initial objects of a watch (WatchList).
type fakeLeases struct {
	coordinationclient.LeaseInterface
	// watched receives when a watch has started.
	watched chan struct{}
}

func (f fakeLeases) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := f.LeaseInterface.Watch(ctx, o)
	f.watched <- struct{}{}
	return w, err
}

func (fakeLeases) IsWatchListSemanticsUnSupported() bool { return true }
