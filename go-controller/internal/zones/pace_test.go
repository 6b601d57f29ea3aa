// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func (b *publishing) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/serviceplans/wide.") && r.Method == http.MethodPut {
		b.written.Add(r.ContentLength)
	}
	return b.next.RoundTrip(r)
}

// withPublisher calls f in a bubble.
func withPublisher(t *testing.T, f func(t *testing.T, b *publishing)) {
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
		b.p.pace = newPace(paceRate/scale, paceBurst/scale)
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
func (b *publishing) published(key world.Key) *v1alpha1.ServicePlanSpec {
	<-time.After(10 * time.Millisecond) // a write takes 1 ms
	synctest.Wait()
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if o := b.p.objects[Name(key)]; o != nil {
		return &o.Spec
	}
	return nil
}

// scale is how much smaller plans and figures are in these tests. A large plan has large backends and 1.2 MB / scale.
const (
	scale = 10
	large = 5000 / scale
)

// plans returns the plans of Services with the given number of backends. Those of another version have other backends.
func plans(namespace string, services, backends, version int) map[world.Key]*plan.Service {
	out := map[world.Key]*plan.Service{}
	for i := range services {
		key := world.Key{Namespace: namespace, Name: fmt.Sprintf("web-%d", i)}
		vip := netip.AddrFrom4([4]byte{10, 50, byte(len(namespace)), byte(i)})
		l := plan.Listener{VIP: vip, Protocol: world.TCP, Port: 80}
		for n := range backends {
			l.Backends = append(l.Backends, plan.Backend{Node: strings.Repeat("n", 200), Addr: netip.AddrPortFrom(
				netip.AddrFrom4([4]byte{10, 244, byte(n >> 8), byte(n)}), uint16(8000+version))})
		}
		out[key] = &plan.Service{Key: key, VIPs: []plan.VIP{{Addr: vip, Shard: world.ShardID{Domain: "lan"}}},
			Listeners: []plan.Listener{l}}
	}
	return out
}

// isVersion reports whether a plan is that of plans with this version.
func isVersion(s *v1alpha1.ServicePlanSpec, version int) bool {
	return s != nil && len(s.Listeners) == 1 && len(s.Listeners[0].Backends) > 0 &&
		strings.HasSuffix(s.Listeners[0].Backends[0].Address, fmt.Sprint(":", 8000+version))
}

// A tenant with large Services changes all of them each second. What is written of them is limited. Another tenant's
// Services, and small ones, are written at once. In the end, the newest plans are published.
func TestPlansOfANamespaceArePaced(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services, seconds = 4, 6
		small := world.Key{Namespace: "wide", Name: "small"}
		other := world.Key{Namespace: "other", Name: "web-0"}
		for version := range seconds {
			changed := plans("wide", services, large, version)
			for key, p := range plans("other", 1, large, version) {
				changed[key] = p
			}
			changed[small] = plans("little", 1, 100, version)[world.Key{Namespace: "little", Name: "web-0"}]
			changed[small].Key = small
			b.runner.Change(changed)
			for _, key := range []world.Key{small, other} {
				if !isVersion(b.published(key), version) {
					t.Errorf("version %d of %s is not published", version, key)
				}
			}
			<-time.After(time.Second)
		}
		if most := int64(paceBurst+(seconds+1)*paceRate) / scale; b.written.Load() > most {
			t.Errorf("%d bytes were written in %d seconds, want at most %d", b.written.Load(), seconds, most)
		}
		<-time.After(2 * services * time.Second)
		for key := range plans("wide", services, 0, 0) {
			if !isVersion(b.published(key), seconds-1) {
				t.Errorf("the newest plan of %s is not published", key)
			}
			if got := b.runner.Result(key); got == nil || got.Err != nil || got.Postponed {
				t.Errorf("result of %s: %+v", key, got)
			}
		}
	})
}

// A plan that waits while the published one has an address that the Service gave up would take another Service's
// clients. It is written before others or, if there are too many, the published one is deleted until its turn.
func TestAddressesAreFreedAtOnce(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services = 4
		moved := func(version int) map[world.Key]*plan.Service {
			all := plans("wide", services, large, version)
			for key, p := range all {
				p.VIPs[0].Addr = netip.AddrFrom4([4]byte{10, 60, byte(version), p.VIPs[0].Addr.As4()[3]})
				p.Listeners[0].VIP, all[key] = p.VIPs[0].Addr, p
			}
			return all
		}
		deleted := 0
		for version := range 5 {
			all := moved(version)
			b.runner.Change(all)
			for key, p := range all {
				switch s := b.published(key); {
				case s == nil && version <= 2: // those of the first version have another limit
					t.Errorf("version %d of %s is not published", version, key)
				case s == nil:
					deleted++
				case s.VIPs[0].Address != p.VIPs[0].Addr.String():
					t.Errorf("version %d of %s: published with address %s", version, key, s.VIPs[0].Address)
				}
			}
		}
		if most := int64(3*paceBurst) / scale; deleted == 0 || b.written.Load() > most {
			t.Errorf("%d plans without a turn, %d bytes written at once, want at most %d", deleted, b.written.Load(), most)
		}
		<-time.After(2 * services * time.Second)
		for key, p := range moved(4) {
			if s := b.published(key); s == nil || s.VIPs[0].Address != p.VIPs[0].Addr.String() || !isVersion(s, 4) {
				t.Errorf("%s has no address when it is due", key)
			}
		}
	})
}

// A Service that is deleted is removed at once, whether its plan was written or waits.
func TestDeletionIsNotPaced(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services = 10
		b.runner.Change(plans("wide", services, large, 0))
		waiting := 0
		for key := range plans("wide", services, 0, 0) {
			if b.published(key) == nil {
				waiting++
			}
		}
		if waiting == 0 {
			t.Error("no plan waits")
		}
		gone := map[world.Key]*plan.Service{}
		for key := range plans("wide", services, 0, 0) {
			gone[key] = nil
		}
		b.runner.Change(gone)
		for key := range gone {
			if b.published(key) != nil {
				t.Errorf("%s is still published", key)
			}
		}
		if results := b.runner.Results(); len(results) > 0 {
			t.Errorf("%d results", len(results))
		}
		// What was not written delays nothing.
		one := world.Key{Namespace: "wide", Name: "web-0"}
		for version := range 10 {
			b.runner.Change(plans("wide", services, large, version))
			b.published(one)
			b.runner.Change(gone)
			b.published(one)
		}
		b.runner.Change(plans("wide", 1, large, 0))
		<-time.After(services * time.Second)
		if b.published(one) == nil {
			t.Error("a Service waits for those that are gone")
		}
	})
}

// watch counts how often a ServicePlan appears with an address that another one has, until stop returns the number.
func (b *publishing) watch(t *testing.T) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	holders, twice := map[string]string{}, 0
	informer := kube.NewPlanInformer(b.clients, func(old, now *v1alpha1.ServicePlan) {
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

// A plan that is too large for etcd stays an error until the Service is smaller. It is published without listeners.
func TestTooLargePlanIsAnError(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		b.p.pace = newPace(paceRate, paceBurst)
		p := wide(8000, 1, 10, true)
		b.runner.Change(map[world.Key]*plan.Service{p.Key: p})
		if s := b.published(p.Key); s == nil || len(s.Listeners) != 8000 || b.runner.Result(p.Key).Err != nil {
			t.Error("it is not published when it fits")
		}
		b.runner.Change(map[world.Key]*plan.Service{p.Key: wide(8000, 1, 250, true)})
		s, got := b.published(p.Key), b.runner.Result(p.Key)
		if s == nil || len(s.VIPs) != 1 || s.Listeners != nil || got.Err == nil ||
			!strings.Contains(got.Err.Error(), "fewer ports or endpoints") {
			t.Errorf("published %.200v, result %.200v", s, got)
		}
	})
}

// A rolling update of a Service with 100 backends whose pods all change in one second is not delayed.
func TestRollingUpdateIsNotPaced(t *testing.T) {
	p, now := newPace(paceRate, paceBurst), time.Unix(1000, 0)
	for version := range 400 {
		for key, want := range plans("wide", 1, 100, version) {
			spec := Encode(want, nil)
			if due := p.next(key, sizeOf(&spec), false, now); due.After(now) {
				t.Fatalf("change %d waits for %v", version, due.Sub(now))
			}
			p.forget(key, true)
		}
	}
	if p.prune(now); len(p.paid) != 1 {
		t.Errorf("%d limits", len(p.paid))
	}
	if p.prune(now.Add(20 * time.Second)); len(p.paid) != 0 {
		t.Errorf("%d limits after all of them were written", len(p.paid))
	}
}

// Plans that were to be written of Services that are gone delay no other, and a plan that grows while it waits delays
// others as one that was as large from the start.
func TestPlansPayForWhatIsWritten(t *testing.T) {
	const size = 1_000_000
	p, now := newPace(paceRate, paceBurst), time.Unix(1000, 0)
	key := func(i int) world.Key { return world.Key{Namespace: "wide", Name: fmt.Sprint("web-", i)} }
	expect := func(i, size int, urgent bool, want time.Duration) {
		t.Helper()
		if got := p.next(key(i), size, urgent, now).Sub(now); got != want {
			t.Errorf("Service %d waits for %v, want %v", i, got, want)
		}
	}
	for i := range 10 {
		expect(i, size, false, 0)
		p.forget(key(i), true)
	}
	for i := range 1000 {
		expect(10+i, size, false, time.Second)
		p.forget(key(10+i), false)
	}
	expect(1, smallPlan+1, false, p.cost(smallPlan+1))
	expect(1, size, false, p.cost(smallPlan+1))
	expect(2, size, false, 2*time.Second)
	expect(2, size, true, 0)
	p.forget(key(2), true)
	expect(3, size, false, 2*time.Second)
	now = now.Add(time.Hour)
	expect(3, size, false, 2*time.Second-time.Hour)
	expect(3, size, false, 2*time.Second-time.Hour)
}
