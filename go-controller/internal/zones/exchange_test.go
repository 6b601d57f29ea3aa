// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Two plans must not have the same address and port at the same time: a zone would send the clients of one Service to
// the backends of the other. A tenant deletes so many Services that some have to wait, and each address goes to a
// Service of another namespace.
func TestAddressIsNeverPublishedTwice(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services = 250 // more than are written together
		had := plans("wide", services, 1, 0)
		b.runner.Change(had)
		<-time.After(time.Second)
		changes := map[world.Key]*plan.Service{}
		for key, p := range had {
			changes[key] = nil
			next := *p
			next.Key = world.Key{Namespace: "of-" + key.Name, Name: "web"}
			changes[next.Key] = &next
		}
		twice := b.watch(t)
		b.runner.Change(changes)
		<-time.After(time.Minute)
		for key, want := range changes {
			if s := b.published(key); (s == nil) != (want == nil) {
				t.Errorf("%s is published: %t, want %t", key, s != nil, want != nil)
			}
			if got := b.runner.Result(key); want != nil && (got == nil || got.Err != nil || got.Postponed) {
				t.Errorf("result of %s: %+v", key, got)
			}
		}
		if n := twice(); n > 0 {
			t.Errorf("%d addresses were published twice", n)
		}
	})
}

// Services that exchange their addresses are published again, although each waits for another one.
func TestExchangedAddressesArePublished(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services = 3
		had := plans("wide", services, 1, 0)
		b.runner.Change(had)
		<-time.After(time.Second)
		twice := b.watch(t)
		changes := map[world.Key]*plan.Service{}
		for i := range services {
			key := world.Key{Namespace: "wide", Name: fmt.Sprintf("web-%d", i)}
			next := *had[world.Key{Namespace: "wide", Name: fmt.Sprintf("web-%d", (i+1)%services)}]
			next.Key = key
			changes[key] = &next
		}
		b.runner.Change(changes)
		<-time.After(time.Second)
		for key, want := range changes {
			if s := b.published(key); s == nil || s.VIPs[0].Address != want.VIPs[0].Addr.String() {
				t.Errorf("%s is not published with its new address", key)
			}
		}
		if n := twice(); n > 0 {
			t.Errorf("%d addresses were published twice", n)
		}
	})
}

// A controller was killed before it deleted the plan of a Service that was deleted. The Service that gets the address
// is published once that plan is pruned.
func TestAddressOfAnUnprunedPlanIsNotPublished(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		b.drifted = func() {} // the first Prune is over
		gone := plans("wide", 1, 1, 0)[world.Key{Namespace: "wide", Name: "web-0"}]
		if _, err := b.clients.Plans.Create(t.Context(), &v1alpha1.ServicePlan{ObjectMeta: metav1.ObjectMeta{
			Name: Name(gone.Key)}, Spec: Encode(gone, nil)}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.published(gone.Key)
		twice := b.watch(t)
		next := *gone
		next.Key = world.Key{Namespace: "other", Name: "web"}
		b.runner.Change(map[world.Key]*plan.Service{next.Key: &next})
		if b.published(next.Key) != nil {
			t.Error("two plans have the address")
		}
		b.runner.Resync()
		<-time.After(time.Second)
		if b.published(gone.Key) != nil || b.published(next.Key) == nil {
			t.Error("the plan is not published after the other one was pruned")
		}
		if n := twice(); n > 0 {
			t.Errorf("%d addresses were published twice", n)
		}
	})
}
