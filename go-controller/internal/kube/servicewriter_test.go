// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// allocated is the status of a Service that has addresses, at gateway n1.
func allocated(addrs ...string) *status.Service {
	s := &status.Service{
		Allocated: status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllocated, Message: "from pool lan"},
		Announced: &status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced, Message: "on gateway n1"},
	}
	for _, a := range addrs {
		s.Addrs = append(s.Addrs, netip.MustParseAddr(a))
	}
	return s
}

// merged returns an object with a status.
func merged(s *status.Service, have *corev1.Service) *corev1.Service {
	next, _ := s.Merged(have, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return next
}

// slow is an API server that needs a second for each status write.
type slow struct {
	corev1client.ServiceInterface
	start time.Time

	mu         sync.Mutex
	busy, most int                      // writes in flight, and their maximum
	begun      map[string]bool          // Services with a started write
	done       map[string]time.Duration // time of the newest write of each Service
	writes     int
}

func (s *slow) Services(string) corev1client.ServiceInterface { return s }

func (s *slow) UpdateStatus(_ context.Context, o *corev1.Service, _ metav1.UpdateOptions) (*corev1.Service, error) {
	s.mu.Lock()
	s.busy++
	s.most = max(s.most, s.busy)
	s.begun[o.Name] = true
	s.mu.Unlock()
	<-time.After(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.writes++
	s.done[o.Name] = time.Since(s.start)
	out := o.DeepCopy()
	out.ResourceVersion = fmt.Sprint(s.writes)
	return out, nil
}

// A gateway with a thousand Services has failed. Few writers write their conditions, and a Service that needs an
// address in the meantime gets it immediately.
func TestAddressWritesDoNotWaitForFailoverWrites(t *testing.T) {
	const services = 1000
	synctest.Test(t, func(t *testing.T) {
		server := &slow{start: time.Now(), begun: map[string]bool{}, done: map[string]time.Duration{}}
		facts := NewFacts(convert.Options{DefaultClass: true}, Hooks{
			Wake: func() {}, Changed: func(world.Key) {},
			Expected: func(world.Key, []netip.Addr) bool { return false },
		})
		moved := status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced, Message: "on gateway n2"}
		want := map[world.Key]*status.Service{}
		for i := range services {
			name := fmt.Sprintf("web-%d", i)
			before := allocated(fmt.Sprintf("10.0.%d.%d", i/250, i%250))
			object := serviceOf(corev1.ServiceTypeLoadBalancer)
			object.Name = name
			facts.setService(nil, merged(before, object))
			after := *before
			after.UID, after.Announced = "1", &moved
			want[world.Key{Namespace: "shop", Name: name}] = &after
		}
		w := NewServiceWriter(server, facts, &Events{}, func(string, error) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()

		w.Set(want)
		<-time.After(9500 * time.Millisecond)
		// One Service is new, and two of those whose conditions are queued get other addresses.
		given := map[string]string{"fresh": "10.1.0.1"}
		server.mu.Lock()
		for i := 0; len(given) < 3; i++ {
			if name := fmt.Sprintf("web-%d", i); !server.begun[name] {
				given[name] = fmt.Sprintf("10.1.0.%d", len(given)+1)
			}
		}
		server.mu.Unlock()
		want = maps.Clone(want)
		fresh := serviceOf(corev1.ServiceTypeLoadBalancer)
		fresh.Name = "fresh"
		facts.setService(nil, fresh)
		for name, addr := range given {
			s, key := allocated(addr), world.Key{Namespace: "shop", Name: name}
			s.UID, s.Announced = "1", &moved
			if before := want[key]; before != nil {
				s.PreviousAddrs = before.Addrs
			}
			want[key] = s
		}
		w.Set(want)
		<-time.After(1001 * time.Millisecond)
		synctest.Wait()
		server.mu.Lock()
		for name := range given {
			if at := server.done[name]; at != 10500*time.Millisecond {
				t.Errorf("%s has its address after %v, want 10.5s: a second after it was given", name, at)
			}
		}
		if written := len(server.done) - 3; written < 30 || written > 40 {
			t.Errorf("%d Services report the failover after 10.5 s, want about 40", written)
		}
		if server.most > slowWriters+3 {
			t.Errorf("%d writes at a time, want %d of conditions and 3 of addresses", server.most, slowWriters)
		}
		server.mu.Unlock()

		<-time.After(5 * time.Minute)
		synctest.Wait()
		if len(server.done) != services+1 || server.writes > services+3 {
			t.Errorf("%d Services were written, with %d writes; want %d, each once", len(server.done), server.writes, services+1)
		}
		cancel()
		<-ended
	})
}

// Another controller wrote an address to the Service after our address was decided: nothing is written until this
// address is known.
func TestAddressesOfOthersAreNotOverwritten(t *testing.T) {
	woken := 0
	facts := NewFacts(convert.Options{DefaultClass: true}, Hooks{
		Wake: func() { woken++ }, Changed: func(world.Key) {},
		Expected: func(world.Key, []netip.Addr) bool { return true },
	})
	key := world.Key{Namespace: "shop", Name: "web"}
	facts.setService(nil, merged(allocated("10.0.0.7"), serviceOf(corev1.ServiceTypeLoadBalancer)))
	server := &slow{start: time.Now(), begun: map[string]bool{}, done: map[string]time.Duration{}}
	w := NewServiceWriter(server, facts, &Events{}, func(string, error) {})
	want := allocated("10.0.0.1")
	want.UID = "1"
	w.Set(map[world.Key]*status.Service{key: want})
	woken = 0
	w.write(t.Context(), job{key: key, address: true})
	if server.writes != 0 || woken != 1 {
		t.Errorf("%d writes and %d calls for a decision, want none and one", server.writes, woken)
	}
	knows := *want
	knows.PreviousAddrs = []netip.Addr{netip.MustParseAddr("10.0.0.7")}
	w.Set(map[world.Key]*status.Service{key: &knows})
	w.write(t.Context(), job{key: key, address: true})
	if server.writes != 1 {
		t.Errorf("%d writes after a new decision, want one", server.writes)
	}
}

// failing is an API server that accepts no status.
type failing struct {
	corev1client.ServiceInterface
	err error // "no leader" if nil
}

func (f failing) Services(string) corev1client.ServiceInterface { return f }

func (f failing) UpdateStatus(context.Context, *corev1.Service, metav1.UpdateOptions) (*corev1.Service, error) {
	return nil, cmp.Or(f.err, errors.New("no leader"))
}

// Writes that failed do not delay the retries of a later one if what was to be written has become obsolete since.
func TestObsoleteWritesResetTheBackoff(t *testing.T) {
	key := world.Key{Namespace: "shop", Name: "web"}
	j := job{key: key, address: true}
	for name, obsolete := range map[string]func(*Facts, *ServiceWriter){
		"no status is wanted": func(_ *Facts, w *ServiceWriter) { w.Set(nil) },
		"deleted":             func(f *Facts, _ *ServiceWriter) { f.setService(f.Service(key), nil) },
		"released": func(_ *Facts, w *ServiceWriter) {
			w.Set(map[world.Key]*status.Service{key: {UID: "1", Release: true}})
		},
		"another address": func(f *Facts, _ *ServiceWriter) {
			f.setService(f.Service(key), merged(allocated("10.0.0.7"), serviceOf(corev1.ServiceTypeLoadBalancer)))
		},
	} {
		facts, _ := counted()
		facts.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
		w := NewServiceWriter(failing{}, facts, &Events{}, func(string, error) {})
		want := allocated("10.0.0.1")
		want.UID = "1"
		w.Set(map[world.Key]*status.Service{key: want})
		w.write(t.Context(), j)
		if n := w.queue.NumRequeues(j); n != 1 {
			t.Fatalf("%s: %d failures before", name, n)
		}
		obsolete(facts, w)
		w.write(t.Context(), j)
		if n := w.queue.NumRequeues(j); n != 0 {
			t.Errorf("%s: %d failures afterwards", name, n)
		}
	}
}

// A tenant writes Services that the API server can't store with a status, and deletes them. Nothing of them stays in
// memory.
func TestWritesWithoutAnswerEndWithTheirService(t *testing.T) {
	facts, _ := counted()
	w := NewServiceWriter(failing{}, facts, &Events{}, func(string, error) {})
	for i := range 10 {
		object := serviceOf(corev1.ServiceTypeLoadBalancer)
		object.Name = fmt.Sprintf("web-%d", i)
		key := world.Key{Namespace: object.Namespace, Name: object.Name}
		facts.setService(nil, object)
		want := allocated("10.0.0.1")
		want.UID = string(object.UID)
		w.Set(map[world.Key]*status.Service{key: want})
		w.write(t.Context(), job{key: key, address: true})
		if n := len(w.Unsettled()[key]); n == 0 {
			t.Error("the address of a write without an answer is not reported")
		}
		facts.setService(object, nil)
		w.Set(nil)
		w.write(t.Context(), job{key: key, address: true})
	}
	if n := len(w.sent) + len(w.open) + len(w.unconfirmed) + len(w.Unsettled()); n != 0 {
		t.Errorf("%d entries about Services that are gone", n)
	}
}

// When the context ends, the writer waits for the writes in flight and leaves queued ones to the next leader.
func TestServiceWriterStopsOnContextCancel(t *testing.T) {
	const services = 100
	synctest.Test(t, func(t *testing.T) {
		server := &slow{start: time.Now(), begun: map[string]bool{}, done: map[string]time.Duration{}}
		facts := NewFacts(convert.Options{DefaultClass: true}, Hooks{
			Wake: func() {}, Changed: func(world.Key) {},
			Expected: func(world.Key, []netip.Addr) bool { return false },
		})
		want := map[world.Key]*status.Service{}
		for i := range services {
			object := serviceOf(corev1.ServiceTypeLoadBalancer)
			object.Name = fmt.Sprintf("web-%d", i)
			facts.setService(nil, object)
			s := allocated(fmt.Sprintf("10.0.0.%d", i+1))
			s.UID = "1"
			want[world.Key{Namespace: "shop", Name: object.Name}] = s
		}
		w := NewServiceWriter(server, facts, &Events{}, func(string, error) {})
		w.Set(want)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		<-time.After(500 * time.Millisecond)
		start := time.Now()
		cancel()
		<-ended
		if took := time.Since(start); server.writes != writers || took > 500*time.Millisecond {
			t.Errorf("%d writes, the last %v after the end; want the %d that were under way, 500ms", server.writes, took,
				writers)
		}
	})
}

// rival is an API server where another client changes each status that is written, at once.
type rival struct {
	corev1client.ServiceInterface
	facts  *Facts
	revert func(*corev1.Service)
	writes atomic.Int64
}

func (r *rival) Services(string) corev1client.ServiceInterface { return r }

func (r *rival) UpdateStatus(_ context.Context, o *corev1.Service, _ metav1.UpdateOptions) (*corev1.Service, error) {
	n := r.writes.Add(1)
	got, other := o.DeepCopy(), o.DeepCopy()
	got.ResourceVersion, other.ResourceVersion = fmt.Sprint(2*n), fmt.Sprint(2*n+1)
	r.revert(other)
	go func() {
		<-time.After(10 * time.Millisecond)
		r.facts.setService(r.facts.Service(world.Key{Namespace: o.Namespace, Name: o.Name}), other)
	}()
	return got, nil
}

// Another client changes each status that is written. The writes become rare, also if the decision takes note of what
// that client writes. Another status is written at once.
func TestServiceWriterBacksOffAgainstFightingWriter(t *testing.T) {
	for name, revert := range map[string]func(*corev1.Service){
		"a condition": func(s *corev1.Service) { s.Status.Conditions = s.Status.Conditions[:1] },
		"all of it":   func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
		"the ingress": func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fight(t, &rival{revert: revert}) })
		})
	}
}

// fight runs a writer against another client.
func fight(t *testing.T, server *rival) {
	key := world.Key{Namespace: "shop", Name: "web"}
	var w *ServiceWriter
	facts := NewFacts(convert.Options{DefaultClass: true}, Hooks{
		Wake: func() {}, Expected: func(world.Key, []netip.Addr) bool { return true },
		Changed: func(k world.Key) {
			if w != nil {
				next := allocated("10.0.0.1")
				next.UID, next.PreviousAddrs = "1", convert.Assigned(server.facts.Service(k))
				w.Change(map[world.Key]*status.Service{k: next})
				w.Changed(k)
			}
		},
	})
	server.facts = facts
	facts.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
	w = NewServiceWriter(server, facts, &Events{}, func(string, error) {})
	want := allocated("10.0.0.1")
	want.UID = "1"
	w.Set(map[world.Key]*status.Service{key: want})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	<-time.After(time.Minute)
	synctest.Wait()
	before := server.writes.Load()
	if before < dataplane.DriftBurst || before > dataplane.DriftBurst+10 {
		t.Errorf("%d writes in the first minute, want about %d", before, dataplane.DriftBurst)
	}
	<-time.After(10 * time.Minute)
	synctest.Wait()
	if n := server.writes.Load() - before; n < 5 || n > 15 {
		t.Errorf("%d writes in the next ten minutes, want about ten", n)
	}
	before = server.writes.Load()
	other := allocated("10.0.0.2")
	other.UID, other.PreviousAddrs = "1", convert.Assigned(facts.Service(key))
	w.Change(map[world.Key]*status.Service{key: other})
	<-time.After(5 * time.Millisecond)
	synctest.Wait()
	if n := server.writes.Load() - before; n != 1 {
		t.Errorf("%d writes of another status, want one", n)
	}
	cancel()
	<-ended
	<-time.After(time.Second) // the other client ends
}
