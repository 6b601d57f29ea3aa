// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// patchTimeout bounds one write of probe requests. minPatchBackoff and maxPatchBackoff bound the time before a
	// failed write is retried.
	patchTimeout    = 5 * time.Second
	minPatchBackoff = 50 * time.Millisecond
	maxPatchBackoff = 10 * time.Second
)

// ProbeWriter writes the probe requests for the guards to their Leases.
type ProbeWriter struct {
	leases coordinationclient.LeaseInterface
	facts  *Facts
	queue  workqueue.TypedRateLimitingInterface[string]

	mu   sync.Mutex
	want map[string]string
}

// NewProbeWriter returns a ProbeWriter that writes nothing before Run.
func NewProbeWriter(kube kubernetes.Interface, facts *Facts) *ProbeWriter {
	return &ProbeWriter{
		leases: kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace),
		facts:  facts,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](minPatchBackoff, maxPatchBackoff)),
	}
}

// Set replaces the probe requests for each node's guard. The requests for nodes that are not in the map are removed.
// Equal requests must be passed in the same order.
func (w *ProbeWriter) Set(requests map[string][]world.ProbeRequest) {
	want := make(map[string]string, len(requests))
	for node, list := range requests {
		if text, err := json.Marshal(list); err == nil { // marshaling numbers and strings cannot fail
			want[node] = string(text)
		}
	}
	w.mu.Lock()
	w.want = want
	w.mu.Unlock()
	for node, has := range w.facts.probes() {
		// A node can write so much into its Lease that nothing fits in beside it, and cause passes with it.
		if want[node] != has && w.queue.NumRequeues(node) == 0 {
			w.queue.Add(node)
		}
	}
}

// Run writes until the context ends.
func (w *ProbeWriter) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer w.queue.ShutDown() // It has not been called if the end of ctx was noticed first.
	defer stop()
	for {
		node, end := w.queue.Get()
		if end || ctx.Err() != nil { // the next leader writes what is queued
			return
		}
		if err := w.write(ctx, node); err != nil {
			if ctx.Err() == nil {
				klog.ErrorS(err, "Failed to write address probes for a guard, will retry")
			}
			w.queue.AddRateLimited(node)
		} else {
			w.queue.Forget(node)
		}
		w.queue.Done(node)
	}
}

func (w *ProbeWriter) write(ctx context.Context, node string) error {
	w.mu.Lock()
	want, some := w.want[node]
	w.mu.Unlock()
	value := &want
	if !some {
		value = nil
	}
	metadata := map[string]any{"annotations": map[string]*string{v1alpha1.AnnotationAddressProbes: value}}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("patch the Lease of node %s: %w", node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	_, err = w.leases.Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !errors.IsNotFound(err) { // NotFound: the guard was removed
		return fmt.Errorf("patch the Lease of node %s: %w", node, err)
	}
	return nil
}
