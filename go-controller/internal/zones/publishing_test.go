// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

// loadKinds reads the kinds once, outside of all bubbles.
var loadKinds = sync.OnceValues(func() (apiserver.Kinds, error) {
	return apiserver.LoadKinds("../../../dist/manifests/crds")
})

// publishing is a Publisher that a runner drives, with an API server.
type publishing struct {
	runner  *loop.Runner
	p       *Publisher
	clients *kube.Clients
	drifted func()
	// written is how many bytes were sent to the API server of the ServicePlans of namespace wide.
	written atomic.Int64
	next    http.RoundTripper
}

func (p *publishing) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/serviceplans/wide.") && r.Method == http.MethodPut {
		p.written.Add(r.ContentLength)
	}
	return p.next.RoundTrip(r)
}

// withPublisher calls f in a bubble. What is written is limited to a tenth of what a cluster may write (scale).
func withPublisher(t *testing.T, f func(t *testing.T, b *publishing)) {
	t.Helper()
	withPublisherOf(t, newPace(paceRate/scale, paceBurst/scale), f)
}

// withPublisherOf calls f in a bubble. The publisher limits what is written with p.
func withPublisherOf(t *testing.T, p pace, f func(t *testing.T, b *publishing)) {
	t.Helper()
	kinds, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		server, err := apiserver.New(kinds)
		if err != nil {
			t.Fatal(err)
		}
		b := &publishing{drifted: func() { t.Error("drift") }}
		config := server.Client("controller").Config()
		b.next, config.Transport = config.Transport, b
		clients, err := kube.NewClients(config)
		if err != nil {
			t.Fatal(err)
		}
		b.clients = clients
		b.p = New(Options{Clients: clients, Drifted: func() { b.drifted() }})
		b.p.pace = p
		b.runner = loop.New(b.p, loop.Options{NamespaceBatch: 200})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := b.p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		running.Go(func() { b.runner.Run(ctx) })
		<-b.p.Synced()
		b.runner.Set(&plan.Topology{}, nil, nil)
		f(t, b)
		cancel()
		running.Wait()
	})
}

// published returns the plan of a Service that is published after what need not wait, nil if there is none.
func (p *publishing) published(key world.Key) *v1alpha1.ServicePlanSpec {
	<-time.After(10 * time.Millisecond) // a write takes 1 ms
	synctest.Wait()
	p.p.mu.Lock()
	defer p.p.mu.Unlock()
	if o := p.p.objects[Name(key)]; o != nil {
		return &o.Spec
	}
	return nil
}

// watch counts how often a ServicePlan appears with an address that another one has, until stop returns the number.
func (p *publishing) watch(t *testing.T) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	holders, twice := map[string]string{}, 0
	informer := kube.NewPlanInformer(p.clients, func(old, now *v1alpha1.ServicePlan) {
		if old != nil {
			maps.DeleteFunc(holders, func(_, name string) bool { return name == old.Name })
		}
		if now == nil {
			return
		}
		for _, v := range now.Spec.VIPs {
			if holders[v.Address] != "" {
				twice++
			}
			holders[v.Address] = now.Name
		}
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	if !kube.WaitForInformer(ctx, informer) {
		t.Error("the ServicePlans can't be read")
	}
	return func() int {
		cancel()
		running.Wait()
		return twice
	}
}
