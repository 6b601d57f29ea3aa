// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// versioned makes a fake API server reject updates that are not based on the latest version, like a real one.
func versioned(kube *fake.Clientset) {
	var mu sync.Mutex
	newest := 0
	kube.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		var lease *coordinationv1.Lease
		switch a := a.(type) {
		case clienttesting.UpdateAction: // It implements CreateAction, too.
			lease = a.GetObject().(*coordinationv1.Lease)
		default:
			return false, nil, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if a.GetVerb() == "update" && lease.ResourceVersion != strconv.Itoa(newest) {
			return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name,
				fmt.Errorf("%s is not %d", lease.ResourceVersion, newest))
		}
		newest++
		lease.ResourceVersion = strconv.Itoa(newest)
		return false, nil, nil
	})
}

// Three nodes want to change their sessions at once, and a fourth one fails while it holds the Lease. One node holds
// the Lease at a time, and each gets it.
func TestNodesChangeSessionsOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		versioned(kube)
		ctx, cancel := context.WithCancel(t.Context())
		leases := kube.CoordinationV1().Leases(v1alpha1.PasswordsNamespace)
		dead := newTurn("dead", leases, func(string) {})
		life, die := context.WithCancel(ctx)
		go dead.run(life)
		dead.Take("tor")
		synctest.Wait()
		if !dead.Take("tor") {
			t.Fatal("a node alone does not get the turn")
		}
		die()
		began := time.Now()
		var mu sync.Mutex
		have, order := 0, []string{}
		done := make(chan struct{}, 3)
		for _, node := range []string{"n1", "n2", "n3"} {
			var own *turn
			own = newTurn(node, leases, func(peer string) {
				if !own.Take(peer) {
					t.Errorf("%s was called without the turn", node)
				}
				mu.Lock()
				if have++; have > 1 {
					t.Errorf("%d nodes have the turn", have)
				}
				order = append(order, node)
				mu.Unlock()
				go func() {
					<-time.After(3 * time.Second) // Time until the session is Established.
					mu.Lock()
					have--
					mu.Unlock()
					own.Done(peer)
					done <- struct{}{}
				}()
			})
			go own.run(ctx)
			if own.Take("tor") {
				t.Errorf("%s has the turn although a node that has just died holds it", node)
			}
		}
		for range 3 {
			<-done
		}
		if took := time.Since(began); len(order) != 3 || took < turnExpires-time.Second || took > turnExpires+5*maxTurnPause {
			t.Errorf("%v after %s", order, took)
		}
		cancel()
		synctest.Wait()
	})
}

// A session that does not come back delays the others for a limited time.
func TestTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		versioned(kube)
		leases := kube.CoordinationV1().Leases(v1alpha1.PasswordsNamespace)
		stuck := newTurn("n1", leases, func(string) {})
		next := newTurn("n2", leases, func(string) {})
		go stuck.run(t.Context())
		stuck.Take("tor")
		synctest.Wait()
		go next.run(t.Context())
		next.Take("tor")
		<-time.After(turnLasts - time.Second)
		if !stuck.Take("tor") || next.Take("tor") {
			t.Error("the turn ended too early")
		}
		<-time.After(time.Second + 2*maxTurnPause)
		if !next.Take("tor") {
			t.Error("the turn did not end")
		}
	})
}

// The Lease can't be released for a while, and meanwhile another peer of the node requests it. That peer gets it
// without another request.
func TestTurnIsRequestedWhileReleasePends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		versioned(kube)
		var refused atomic.Int32
		kube.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			lease := a.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
			if *lease.Spec.HolderIdentity == "" && refused.Add(1) <= 3 {
				return true, nil, apierrors.NewInternalError(errors.New("it has no leader"))
			}
			return false, nil, nil
		})
		called := make(chan string, 8)
		node := newTurn("n1", kube.CoordinationV1().Leases(v1alpha1.PasswordsNamespace), func(peer string) { called <- peer })
		go node.run(t.Context())
		node.Take("one")
		if peer := <-called; peer != "one" {
			t.Fatalf("%s was called", peer)
		}
		node.Done("one")
		synctest.Wait()
		if node.Take("other") {
			t.Error("the turn is had while it is given back")
		}
		select {
		case peer := <-called:
			if peer != "other" || !node.Take("other") || refused.Load() != 4 {
				t.Errorf("%s was called, after %d attempts to give the Lease back", peer, refused.Load())
			}
		case <-time.After(turnLasts / 2):
			t.Error("a request was lost")
		}
	})
}

// A node acquires the Lease without getting the answer, and wants it no more. Others do not wait until the Lease
// expires.
func TestTurnIsReleasedAfterALostAnswer(t *testing.T) {
	for _, verb := range []string{"create", "update"} {
		synctest.Test(t, func(t *testing.T) {
			kube := fake.NewClientset()
			leases := kube.CoordinationV1().Leases(v1alpha1.PasswordsNamespace)
			if verb == "update" {
				if _, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
					Name: v1alpha1.SessionTurnLease}}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			lost := false
			kube.PrependReactor(verb, "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if lost {
					return false, nil, nil
				}
				lost = true
				if _, _, err := clienttesting.ObjectReaction(kube.Tracker())(a); err != nil {
					t.Error(err)
				}
				return true, nil, context.DeadlineExceeded
			})
			node := newTurn("n1", leases, func(string) {})
			go node.run(t.Context())
			node.Take("tor")
			synctest.Wait()
			if node.Take("tor") || !lost {
				t.Errorf("%s: the turn is had without an answer", verb)
			}
			node.Done("tor")
			synctest.Wait()
			lease, err := leases.Get(t.Context(), v1alpha1.SessionTurnLease, metav1.GetOptions{})
			if err != nil || *lease.Spec.HolderIdentity != "" {
				t.Errorf("%s: %v, the Lease is %+v", verb, err, lease)
			}
		})
	}
}
