// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// turnLasts limits how long a node holds the Lease: a node whose session does not come back delays the others no
	// longer than that. turnExpires is when a Lease that was not released expires, because its node is dead.
	turnLasts   = v1alpha1.SessionTurnLimit
	turnExpires = turnLasts + 30*time.Second
	// The time between two attempts to acquire the Lease, which increases because all nodes may compete for it.
	minTurnPause, maxTurnPause = time.Second, 30 * time.Second
)

// turn implements speaker.Turn with a Lease of the cluster. The node that holds the Lease may close sessions. The API
// server's check of the resourceVersion ensures that only one node acquires it.
type turn struct {
	node    string
	leases  coordinationclient.LeaseInterface
	changed func(peer string)
	wake    chan struct{}

	mu sync.Mutex
	// wanted are the peers that have requested the Lease and not returned it. held means that this node holds it.
	wanted map[string]bool
	held   bool

	// The following fields are used by run only: the resourceVersion of the Lease as last written by another node, and
	// when it was first seen. mayHold means that a write which acquires the Lease failed, and may have been applied.
	seen    string
	since   time.Time
	mayHold bool
}

func newTurn(node string, leases coordinationclient.LeaseInterface, changed func(string)) *turn {
	return &turn{node: node, leases: leases, changed: changed, wake: make(chan struct{}, 1), wanted: map[string]bool{}}
}

// Take implements speaker.Turn.
func (t *turn) Take(peer string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted[peer] {
		t.wanted[peer] = true
		t.notify()
	}
	return t.held
}

// Done implements speaker.Turn.
func (t *turn) Done(peer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wanted[peer] {
		delete(t.wanted, peer)
		t.notify()
	}
}

func (t *turn) notify() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *turn) isWanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.wanted) > 0
}

// run acquires the Lease when it is wanted and releases it afterwards, until the context ends.
func (t *turn) run(ctx context.Context) {
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	pause := minTurnPause
	// ends is when this node must return the Lease at the latest, zero if it does not hold it. releasing means that the
	// Lease must be released.
	var ends time.Time
	releasing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-again.C:
		}
		releasing = releasing || t.withdraw(!time.Now().Before(ends))
		var err error
		switch {
		case releasing, t.mayHold && !t.isWanted():
			if err = t.release(ctx); err == nil {
				releasing, t.mayHold, ends = false, false, time.Time{}
			}
		case !ends.IsZero():
			again.Reset(time.Until(ends))
			continue
		case t.isWanted():
			var ours bool
			if ours, err = t.acquire(ctx); ours {
				ends, pause = time.Now().Add(turnLasts), minTurnPause
				t.grant()
				again.Reset(turnLasts)
				continue
			}
		}
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to acquire the lease for session changes, will retry")
		}
		if err != nil || t.isWanted() {
			again.Reset(pause - rand.N(pause/2))
			pause = min(pause*3/2, maxTurnPause)
		}
	}
}

// grant notifies the peers that wait for the Lease that they may close their sessions.
func (t *turn) grant() {
	t.mu.Lock()
	t.held = true
	peers := make([]string, 0, len(t.wanted))
	for peer := range t.wanted {
		peers = append(peers, peer)
	}
	t.mu.Unlock()
	slices.Sort(peers)
	for _, peer := range peers {
		t.changed(peer)
	}
}

// withdraw drops the Lease if no peer wants it any more or its time is over. It reports whether it was dropped now.
func (t *turn) withdraw(over bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.held || len(t.wanted) > 0 && !over {
		return false
	}
	t.held = false
	clear(t.wanted) // Peers that still wait request it again.
	return true
}

// acquire tries to acquire the Lease and reports whether this node holds it now.
func (t *turn) acquire(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	lasts, now := int32(turnExpires/time.Second), metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &t.node, LeaseDurationSeconds: &lasts, AcquireTime: &now,
		RenewTime: &now}
	lease, err := t.leases.Get(ctx, v1alpha1.SessionTurnLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = t.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SessionTurnLease},
			Spec: spec}, metav1.CreateOptions{})
		return t.acquired(err, apierrors.IsAlreadyExists)
	}
	if err != nil {
		return false, fmt.Errorf("read Lease %s: %w", v1alpha1.SessionTurnLease, err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" && *holder != t.node {
		// As in leader election, the clocks of two machines are not compared.
		if t.seen != lease.ResourceVersion {
			t.seen, t.since = lease.ResourceVersion, time.Now()
		}
		if time.Since(t.since) < turnExpires {
			return false, nil
		}
	}
	lease.Spec = spec
	_, err = t.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return t.acquired(err, apierrors.IsConflict)
}

// acquired returns the result of acquire after a write. isOther reports whether the Lease has changed meanwhile, by a
// write of another node or an earlier one of this node.
func (t *turn) acquired(err error, isOther func(error) bool) (bool, error) {
	if err == nil || !isOther(err) {
		t.mayHold = err != nil
	}
	return err == nil, ignoreError(err, isOther)
}

// release releases the Lease if this node holds it.
func (t *turn) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	lease, err := t.leases.Get(ctx, v1alpha1.SessionTurnLease, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != t.node {
		return ignoreError(err, apierrors.IsNotFound)
	}
	none := ""
	lease.Spec.HolderIdentity = &none
	_, err = t.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return ignoreError(err, apierrors.IsConflict)
}

func ignoreError(err error, is func(error) bool) error {
	if err == nil || is(err) {
		return nil
	}
	return fmt.Errorf("write Lease %s: %w", v1alpha1.SessionTurnLease, err)
}
