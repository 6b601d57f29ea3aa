// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// reportLasts is how long a report counts, reportEvery how often it is renewed: a cluster of
	// 2,000 nodes writes 7 times a second. Whether an agent lives is seen at its health.
	reportLasts, reportEvery = 15 * time.Minute, 5 * time.Minute
	writeTimeout             = 5 * time.Second
	minBackoff, maxBackoff   = 100 * time.Millisecond, 5 * time.Second
)

// reporter keeps in the Lease of the node where the agent answers and which interfaces there are.
type reporter struct {
	leases coordinationclient.LeaseInterface
	node   string
	wake   chan struct{}

	mu   sync.Mutex
	text string
}

func newReporter(kube kubernetes.Interface, node string) *reporter {
	return &reporter{leases: kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace), node: node, wake: make(chan struct{}, 1)}
}

func (r *reporter) set(health netip.AddrPort, interfaces map[string][]netip.Prefix) {
	text, err := json.Marshal(convert.Agent{Health: health, Interfaces: interfaces})
	if err != nil { // texts always can be
		return
	}
	r.mu.Lock()
	news := r.text != string(text)
	r.text = string(text)
	r.mu.Unlock()
	if !news {
		return
	}
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
		if err := r.write(ctx); err != nil {
			if ctx.Err() == nil {
				klog.ErrorS(err, "Report; it is tried again", "retryIn", backoff)
			}
			again.Reset(backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		again.Reset(reportEvery)
		backoff = minBackoff
	}
}

func (r *reporter) write(ctx context.Context) error {
	r.mu.Lock()
	texts := map[string]string{v1alpha1.AnnotationAgent: r.text}
	r.mu.Unlock()
	now, seconds := metav1.NowMicro(), int32(reportLasts/time.Second)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: r.node, Annotations: texts},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &r.node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": texts}, "spec": lease.Spec})
	if err != nil {
		return fmt.Errorf("report of node %s: %w", r.node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = r.leases.Patch(ctx, r.node, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = r.leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write Lease %s: %w", r.node, err)
	}
	return nil
}
