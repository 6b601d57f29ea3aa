// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// prompt is an API server whose informers are never late.
type prompt struct {
	corev1client.ServiceInterface
	facts *Facts

	mu              sync.Mutex
	have            *corev1.Service
	version, writes int
}

func (p *prompt) Services(string) corev1client.ServiceInterface { return p }

func (p *prompt) UpdateStatus(_ context.Context, o *corev1.Service, _ metav1.UpdateOptions) (*corev1.Service, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.version = p.writes+1, p.version+1
	old := p.have
	p.have = o.DeepCopy()
	p.have.ResourceVersion = fmt.Sprint(p.version)
	p.facts.setService(old, p.have)
	return p.have.DeepCopy(), nil
}

// taken returns the condition Announced, and the number of writes since the last call.
func (p *prompt) taken() (announced metav1.Condition, writes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	writes, p.writes = p.writes, 0
	if c := meta.FindStatusCondition(p.have.Status.Conditions, v1alpha1.ConditionAnnounced); c != nil {
		announced = *c
	}
	return announced, writes
}

// writerOf returns a writer for one Service, which has a status.
func (p *prompt) writerOf(key world.Key, now *status.Service) (w *ServiceWriter) {
	p.facts = NewFacts(convert.Options{DefaultClass: true}, Hooks{
		Wake: func() {}, Changed: func(k world.Key) {
			if w != nil {
				w.Changed(k)
			}
		},
		Expected: func(world.Key, []netip.Addr) bool { return false },
	})
	object := serviceOf(corev1.ServiceTypeLoadBalancer)
	object.Name = key.Name
	p.have = merged(now, object)
	p.facts.setService(nil, p.have)
	w = NewServiceWriter(p, p.facts, &Events{}, func(string, error) {})
	return w
}

// randomVerdict returns a verdict on Announced, or nil if there is no new decision.
func randomVerdict(r *rand.Rand) *status.Verdict {
	states := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse,
		metav1.ConditionUnknown}
	if n := r.IntN(10); n > 0 {
		return &status.Verdict{Status: states[n%len(states)], Reason: v1alpha1.ReasonNoSession,
			Message: fmt.Sprintf("reason %d", r.IntN(3))}
	}
	return nil
}

// saysAnnounced reports whether a condition says that the addresses are announced now.
func saysAnnounced(c metav1.Condition) bool {
	return c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonUnsteady
}

// Whatever nodes, routers and providers of addresses report, a Service is written seldom, what says that its addresses
// are announced is never out of date, and what lasts is written.
func TestWritesOfAServiceAreBounded(t *testing.T) {
	const minutes, most, later = 30, 24, 7
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r, key := rand.New(rand.NewPCG(seed, 0)), world.Key{Namespace: "shop", Name: "web"}
			server, s, texts := &prompt{}, allocated("10.0.0.1"), 0
			s.UID = "1"
			w := server.writerOf(key, s)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); w.Run(ctx) }()
			decide := func(v *status.Verdict) {
				next := *s
				next.Announced = v
				next.Allocated.Message += fmt.Sprint(texts)
				texts++
				w.Set(map[world.Key]*status.Service{key: &next})
				synctest.Wait()
			}
			pause := time.Duration(1+r.IntN(40)) * time.Second / 2
			for minute := range minutes {
				written := 0
				for at := time.Duration(0); at < time.Minute; at += pause {
					v := randomVerdict(r)
					if v != nil { // Otherwise, the last decision stays.
						decide(v)
					}
					is, n := server.taken()
					written += n
					if v != nil && v.Status != metav1.ConditionTrue && saysAnnounced(is) {
						t.Fatalf("seed %d: %s %s is written, %+v decided", seed, is.Status, is.Reason, v)
					}
					<-time.After(pause)
				}
				if minute > 2 && written > later || written > most {
					t.Errorf("seed %d: %d writes in minute %d, with a change every %s", seed, written, minute, pause)
				}
			}
			decide(&status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced, Message: "at last"})
			<-time.After(longestProbation + textPause)
			announced := meta.FindStatusCondition(server.have.Status.Conditions, v1alpha1.ConditionAnnounced)
			allocated := meta.FindStatusCondition(server.have.Status.Conditions, v1alpha1.ConditionAllocated)
			want := fmt.Sprint(s.Allocated.Message, texts-1)
			if announced.Status != metav1.ConditionTrue || announced.Message != "at last" || allocated.Message != want {
				t.Errorf("seed %d: %+v and %+v are written in the end", seed, announced, allocated)
			}
			cancel()
			<-ended
		})
	}
}
