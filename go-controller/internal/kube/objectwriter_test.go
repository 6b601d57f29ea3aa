// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// inUse is the desired status of pool lan.
func inUse(use ipam.PoolUsage) map[string]status.Merge[*v1alpha1.IPAddressPool] {
	return map[string]status.Merge[*v1alpha1.IPAddressPool]{
		"lan": status.Pool(nil, use, status.Verdict{Status: metav1.ConditionTrue}, nil)}
}

// objectStore has one object and counts the writes to it.
type objectStore[T any] struct {
	mu     sync.Mutex
	object T
	writes int
}

func (s *objectStore[T]) UpdateStatus(_ context.Context, o T, _ metav1.UpdateOptions) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object = o
	s.writes++
	return o, nil
}

func (s *objectStore[T]) read(string) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object, true
}

func (s *objectStore[T]) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// poolStore has pool lan.
type poolStore = objectStore[*v1alpha1.IPAddressPool]

func newPoolStore() *poolStore {
	return &poolStore{object: &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}}
}

func TestWritesAreLimitedToOnePerSecondAndNewestWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPoolStore()
		w := NewObjectWriter("IPAddressPool", s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()

		for i := range int64(100) {
			w.Set(inUse(ipam.PoolUsage{Assigned4: i, Available4: 100 - i}))
			<-time.After(35 * time.Millisecond)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		// 3.5 s: at 0, 1, 2, 3 s, and the last value at 4 s.
		if s.writes != 5 || s.object.Status.AssignedIPv4 != 99 {
			t.Errorf("%d writes, the last reports %d; want 5 and 99", s.writes, s.object.Status.AssignedIPv4)
		}
		cancel()
		<-done
	})
}

// Whoever creates and deletes Services changes the counts of a pool as often. That costs few writes, and the last state
// is written.
func TestPoolsAreWrittenSeldomWhileTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPoolStore()
		w := NewPoolWriter(s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()

		const minutes, changes = 5, 1200
		for i := range int64(changes) {
			w.Set(inUse(ipam.PoolUsage{Assigned4: i, Available4: changes - i}))
			<-time.After(minutes * time.Minute / changes)
		}
		<-time.After(statusPause)
		synctest.Wait()
		if most := statusBurst + int(minutes*time.Minute/statusPause) + 1; s.writes > most ||
			s.object.Status.AssignedIPv4 != changes-1 {
			t.Errorf("%d writes, the last reports %d; want %d at most and %d", s.writes, s.object.Status.AssignedIPv4, most,
				changes-1)
		}
		cancel()
		<-done
	})
}

// lagging returns the state of the store before its last write until it catches up, as an informer does.
type lagging struct {
	poolStore
	seen *v1alpha1.IPAddressPool
}

func (l *lagging) read(string) (*v1alpha1.IPAddressPool, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen, true
}

func (l *lagging) UpdateStatus(
	ctx context.Context, o *v1alpha1.IPAddressPool, options metav1.UpdateOptions,
) (*v1alpha1.IPAddressPool, error) {
	o = o.DeepCopy()
	o.ResourceVersion += "1"
	return l.poolStore.UpdateStatus(ctx, o, options)
}

// A status that returns to its previous value right after a write is written, too, although the informer still shows
// that value.
func TestStatusIsWrittenAgainWhileInformerLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		use := func(n int64) map[string]status.Merge[*v1alpha1.IPAddressPool] {
			return inUse(ipam.PoolUsage{Assigned4: n, Available4: 1 - n})
		}
		first, _ := use(1)["lan"](&v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan", ResourceVersion: "1"}},
			time.Now())
		s := &lagging{seen: first}
		w := NewObjectWriter("IPAddressPool", s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()

		w.Set(use(0))
		synctest.Wait()
		w.Set(use(1))
		synctest.Wait()
		s.mu.Lock()
		s.seen = s.object
		s.mu.Unlock()
		<-time.After(2 * time.Second)
		synctest.Wait()
		if s.writes != 2 || s.object.Status.AssignedIPv4 != 1 {
			t.Errorf("%d writes, the last reports %d; want 2 and 1", s.writes, s.object.Status.AssignedIPv4)
		}
		cancel()
		<-done
	})
}

// notFound rejects the first write.
type notFound struct {
	poolStore
	refused bool
}

func (n *notFound) UpdateStatus(
	ctx context.Context, o *v1alpha1.IPAddressPool, options metav1.UpdateOptions,
) (*v1alpha1.IPAddressPool, error) {
	if !n.refused {
		n.refused = true
		return nil, errors.NewNotFound(v1alpha1.GroupVersion().WithResource("ipaddresspools").GroupResource(), o.Name)
	}
	return n.poolStore.UpdateStatus(ctx, o, options)
}

// An API server that temporarily does not know the kind returns the same error as for a missing object.
func TestNotFoundIsRetriedWhileObjectExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &notFound{poolStore: poolStore{object: &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}}}
		w := NewObjectWriter("IPAddressPool", s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		w.Set(inUse(ipam.PoolUsage{Assigned4: 1}))
		<-time.After(2 * time.Second)
		synctest.Wait()
		if s.writes != 1 {
			t.Errorf("%d writes, want 1", s.writes)
		}
		cancel()
		<-done
	})
}

// What is queued when the context ends is not even compared.
func TestObjectWriterStopsOnContextCancel(t *testing.T) {
	s := newPoolStore()
	w := NewObjectWriter("IPAddressPool", s, s.read, func(string, error) {}, nil)
	w.Set(inUse(ipam.PoolUsage{Assigned4: 1}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ctx)
	if s.writes != 0 {
		t.Errorf("%d writes", s.writes)
	}
}

// hanging does not respond to the writes of one pool.
type hanging struct {
	poolStore
	name string
}

func (h *hanging) read(name string) (*v1alpha1.IPAddressPool, bool) {
	return &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: name}}, true
}

func (h *hanging) UpdateStatus(
	ctx context.Context, o *v1alpha1.IPAddressPool, options metav1.UpdateOptions,
) (*v1alpha1.IPAddressPool, error) {
	if o.Name == h.name {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.poolStore.UpdateStatus(ctx, o, options)
}

func TestWriteThatHangsDoesNotBlockOtherObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hanging{name: "lan"}
		w := NewObjectWriter("IPAddressPool", s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		want := inUse(ipam.PoolUsage{Assigned4: 1})
		w.Set(maps.Clone(want))
		synctest.Wait()
		want["wan"] = want["lan"]
		w.Set(want)
		<-time.After(sendTimeout + time.Millisecond)
		synctest.Wait()
		if s.writes != 1 || s.object.Name != "wan" {
			t.Errorf("%d writes", s.writes)
		}
		cancel()
		<-done
	})
}

// refusing refuses writes as long as refuse or forbid is set.
type refusing[T metav1.Object] struct {
	objectStore[T]
	refuse   bool
	forbid   bool
	attempts int
}

func (r *refusing[T]) UpdateStatus(ctx context.Context, o T, options metav1.UpdateOptions) (T, error) {
	r.mu.Lock()
	r.attempts++
	refuse, forbid := r.refuse, r.forbid
	r.mu.Unlock()
	var none T
	if forbid {
		return none, errors.NewForbidden(v1alpha1.GroupVersion().WithResource("any").GroupResource(), o.GetName(), nil)
	}
	if refuse {
		return none, errors.NewInvalid(v1alpha1.GroupVersion().WithKind("Any").GroupKind(), o.GetName(), nil)
	}
	return r.objectStore.UpdateStatus(ctx, o, options)
}

// set replaces refuse and forbid, and returns the number of attempts so far.
func (r *refusing[T]) set(refuse, forbid bool) (attempts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse, r.forbid = refuse, forbid
	return r.attempts
}

// A status that the API server refuses, as one with an older CRD does, is tried again each minute, however often there
// is a decision. Once a write succeeds, the next one does not wait.
func TestRefusedStatusIsTriedEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusing[*v1alpha1.IPAddressPool]{objectStore: poolStore{object: newPoolStore().object}, refuse: true}
		w := NewObjectWriter("IPAddressPool", s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		const minutes = 10
		for i := range int64(minutes * 60) {
			w.Set(inUse(ipam.PoolUsage{Assigned4: i}))
			<-time.After(time.Second)
		}
		synctest.Wait()
		if most := minutes + 6; s.attempts > most { // after 1, 2, 4, 8, 16, 32 and 60 s
			t.Errorf("%d attempts in %d minutes, want %d at most", s.attempts, minutes, most)
		}
		s.set(false, false)
		<-time.After(time.Minute)
		w.Set(inUse(ipam.PoolUsage{Assigned4: 1}))
		<-time.After(objectPause)
		synctest.Wait()
		if s.writes != 2 || s.object.Status.AssignedIPv4 != 1 {
			t.Errorf("%d writes, the last reports %d; want 2 and 1", s.writes, s.object.Status.AssignedIPv4)
		}
		cancel()
		<-done
	})
}

// An API server also forbids writes while it loads its roles. The status is written within 5 s after that, and not more
// often meanwhile, also if it was refused for another reason before.
func TestForbiddenStatusIsTriedEachFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusing[*v1alpha1.IPAddressPool]{objectStore: poolStore{object: newPoolStore().object}, refuse: true}
		w := NewObjectWriter("IPAddressPool", s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		w.Set(inUse(ipam.PoolUsage{Assigned4: 1}))
		<-time.After(10 * time.Minute)
		s.set(true, true)
		<-time.After(time.Minute)
		synctest.Wait()
		before := s.set(true, true)
		<-time.After(time.Minute)
		synctest.Wait()
		if got := s.set(false, false) - before; got != 12 {
			t.Errorf("%d attempts in a minute, want 12", got)
		}
		<-time.After(5 * time.Second)
		synctest.Wait()
		if n := s.count(); n != 1 {
			t.Errorf("%d writes, want 1", n)
		}
		cancel()
		<-done
	})
}

// down refuses every write as an API server whose webhook can't be called.
type down struct{ attempts int }

func (d *down) UpdateStatus(context.Context, *v1alpha1.IPAddressPool, metav1.UpdateOptions) (*v1alpha1.IPAddressPool,
	error,
) {
	d.attempts++
	return nil, errors.NewInternalError(http.ErrServerClosed)
}

// While writes fail for a cause that ends by itself, they are tried each ten seconds, and urgent ones each second.
func TestFailingWritesAreTriedEachTenSeconds(t *testing.T) {
	for urgent, most := range map[bool]int{false: 16, true: 122} {
		synctest.Test(t, func(t *testing.T) {
			s := &down{}
			w := NewObjectWriter("IPAddressPool", s, newPoolStore().read, func(string, error) {}, nil)
			w.isUrgent = func(_, _ *v1alpha1.IPAddressPool) bool { return urgent }
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); w.Run(ctx) }()
			w.Set(inUse(ipam.PoolUsage{Assigned4: 1}))
			<-time.After(2 * time.Minute)
			synctest.Wait()
			if s.attempts > most || s.attempts < most-4 {
				t.Errorf("urgent %t: %d attempts in two minutes, want %d to %d", urgent, s.attempts, most-4, most)
			}
			cancel()
			<-done
		})
	}
}
