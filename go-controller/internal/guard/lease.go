// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// pace says how long a Lease counts and how often it is renewed.
type pace struct{ lasts, renew time.Duration }

// urgent is what the kubelet has for its own Lease; calm costs a cluster of 2,000 nodes 7
// writes a second.
func urgent() pace { return pace{40 * time.Second, 10 * time.Second} }
func calm() pace   { return pace{15 * time.Minute, 5 * time.Minute} }

const (
	// writeTimeout bounds one write.
	writeTimeout = 5 * time.Second
	minBackoff   = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// reporter keeps what the guard tells in the node's Lease.
type reporter struct {
	node   string
	leases coordinationclient.LeaseInterface
	wake   chan struct{}

	mu sync.Mutex
	// texts are the annotations; those that nobody has set yet stay as they are.
	texts map[string]string
	// grave are those annotations that tell of something wrong.
	grave map[string]bool
}

func newReporter(leases coordinationclient.LeaseInterface, node string) *reporter {
	return &reporter{node: node, leases: leases, wake: make(chan struct{}, 1), texts: map[string]string{}, grave: map[string]bool{}}
}

// report sets what an annotation says.
func report[M ~map[K]V, K comparable, V any](r *reporter, annotation string, what M) {
	text, err := json.Marshal(what)
	if err != nil {
		klog.ErrorS(err, "Report", "annotation", annotation)
		return
	}
	r.mu.Lock()
	r.texts[annotation], r.grave[annotation] = string(text), len(what) > 0
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run writes what is reported, until it stands, and renews it.
func (r *reporter) run(ctx context.Context) {
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	backoff := minBackoff
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-again.C:
		}
		renew, err := r.write(ctx)
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Report; it is tried again", "retryIn", backoff)
			again.Reset(backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		again.Reset(renew)
		backoff = minBackoff
	}
}

// write returns when the Lease has to be renewed.
func (r *reporter) write(ctx context.Context) (time.Duration, error) {
	p := calm()
	r.mu.Lock()
	texts := maps.Clone(r.texts)
	for _, grave := range r.grave {
		if grave {
			p = urgent()
		}
	}
	r.mu.Unlock()
	now, seconds := metav1.NowMicro(), int32(p.lasts/time.Second)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: r.node, Annotations: texts},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &r.node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": texts}, "spec": lease.Spec})
	if err != nil {
		return 0, fmt.Errorf("report of node %s: %w", r.node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	// A patch leaves the controller's annotation alone.
	_, err = r.leases.Patch(ctx, r.node, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = r.leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return 0, fmt.Errorf("write Lease %s: %w", r.node, err)
	}
	return p.renew, nil
}

// follow tells each version of a node's Lease, until the context ends.
func follow(ctx context.Context, leases coordinationclient.LeaseInterface, node string, tell func(*coordinationv1.Lease)) {
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
		return o
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return leases.List(ctx, only(o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return leases.Watch(ctx, only(o))
			},
		},
		ObjectType: &coordinationv1.Lease{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { tell(o.(*coordinationv1.Lease)) },
			UpdateFunc: func(_, o any) { tell(o.(*coordinationv1.Lease)) },
		},
	})
	informer.RunWithContext(ctx)
}
