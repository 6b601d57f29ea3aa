// SPDX-License-Identifier: Apache-2.0

// Package nodelease publishes reports of a node's daemons to the controller, in annotations of the node's Lease (ADR
// 8).
//
// Invariants:
//   - The last report is eventually written to the Lease, and the Lease is renewed before it expires. Annotations that
//     are dispensable do not keep the others from that if they are too large.
//   - Reports cause ten writes at once and then one per second, apart from those that are written at once.
//   - Annotations that are neither reported nor cleared here are not changed.
//   - The Lease goes when the Node goes, which owns it.
package nodelease

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
)

// pace is how long a Lease is valid and how often it is renewed.
type pace struct{ lasts, renew time.Duration }

// urgent uses the kubelet's values for its own Lease. quietPace costs 7 writes per second in a cluster of 2,000 nodes.
func urgent() pace    { return pace{40 * time.Second, 10 * time.Second} }
func quietPace() pace { return pace{15 * time.Minute, 5 * time.Minute} }

const (
	// writeTimeout limits one write.
	writeTimeout = 5 * time.Second
	minBackoff   = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// maxWrites is how many reports are written at once, and writeInterval the interval between further ones. Hosts and
	// users cause reports, and each write is a revision of the whole Lease, which etcd keeps for minutes.
	maxWrites     = 10
	writeInterval = time.Second
)

// Reporter writes the Lease of one node.
type Reporter struct {
	node   string
	nodes  coreclient.NodeInterface
	leases coordinationclient.LeaseInterface
	wake   chan struct{}
	writes *prometheus.CounterVec

	mu sync.Mutex
	// texts are the annotations that have been reported.
	texts map[string]string
	// urgent are the annotations that report a problem.
	urgent map[string]bool
	// hurried is set if what has changed is to be written at once.
	hurried bool
	// cleared are the annotations that are removed, dispensable those that are left out if the Lease has no room.
	cleared, dispensable []string
}

// New returns a Reporter. It writes nothing before Run and before the first report. Its metrics carry the name of the
// reporting module and are registered with r unless r is nil.
func New(
	leases coordinationclient.LeaseInterface, nodes coreclient.NodeInterface, node, module string, r prometheus.Registerer,
) (*Reporter, error) {
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "ovnkube_slb", Name: "lease_writes_total",
		Help: "Reports and renewals written to the Lease of the node, by module (l2-guard, sdn) and result (ok, " +
			"error).",
		ConstLabels: prometheus.Labels{"module": module}}, []string{"result"})
	for _, result := range []string{"ok", "error"} {
		writes.WithLabelValues(result)
	}
	if r != nil {
		if err := r.Register(writes); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return &Reporter{node: node, nodes: nodes, leases: leases, wake: make(chan struct{}, 1), writes: writes,
		texts: map[string]string{}, urgent: map[string]bool{}}, nil
}

// Report sets an annotation. While any annotation is grave, the Lease is as short as the kubelet's.
func (r *Reporter) Report(annotation, text string, grave bool) {
	r.report(annotation, text, grave, false)
}

// ReportAtOnce sets an annotation as Report does. If it has changed, the limit of writes does not delay it.
func (r *Reporter) ReportAtOnce(annotation, text string, grave bool) {
	r.report(annotation, text, grave, true)
}

func (r *Reporter) report(annotation, text string, grave, atOnce bool) {
	r.mu.Lock()
	old, reported := r.texts[annotation]
	events := !reported || old != text || r.urgent[annotation] != grave
	r.texts[annotation], r.urgent[annotation] = text, grave
	r.hurried = r.hurried || events && atOnce
	r.mu.Unlock()
	if events {
		r.wakeUp()
	}
}

// Clear makes each write remove annotations that a predecessor may have left and that this process does not report.
// Otherwise they would be as current as its own. It must be called before Run.
func (r *Reporter) Clear(annotations ...string) { r.cleared = append(r.cleared, annotations...) }

// Dispense makes a write leave out annotations if the API server does not accept it with them: all annotations of an
// object may have 256 KiB. It must be called before Run.
func (r *Reporter) Dispense(annotations ...string) {
	r.dispensable = append(r.dispensable, annotations...)
}

// Renew writes all reports again at once, for example because another client has deleted the Lease. Without a Lease,
// the controller takes the node for one without a guard and an agent.
func (r *Reporter) Renew() {
	r.mu.Lock()
	reported := len(r.texts) > 0
	r.hurried = r.hurried || reported
	r.mu.Unlock()
	if reported {
		klog.InfoS("Writing the Lease again, which was deleted", "node", r.node)
		r.wakeUp()
	}
}

func (r *Reporter) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run writes reports, retries until they are stored, and renews the Lease until the context ends.
func (r *Reporter) Run(ctx context.Context) {
	again, paced := time.NewTimer(0), time.NewTimer(0)
	again.Stop()
	paced.Stop()
	defer again.Stop()
	defer paced.Stop()
	limit, backoff := rate.NewLimiter(rate.Every(writeInterval), maxWrites), minBackoff
	for {
		var wait time.Duration
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
			wait = r.delay(limit)
		case <-paced.C:
			wait = r.delay(limit)
		case <-again.C:
		}
		if wait > 0 {
			paced.Reset(wait)
			continue
		}
		paced.Stop()
		renew, err := r.write(ctx)
		result := "ok"
		if err != nil {
			result = "error"
		}
		r.writes.WithLabelValues(result).Inc()
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to write report, will retry", "retryIn", backoff)
			again.Reset(backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		again.Reset(renew)
		backoff = minBackoff
	}
}

// delay returns how long the reports have to wait until they are written. If they don't, they count for the limit.
func (r *Reporter) delay(limit *rate.Limiter) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	reserved := limit.Reserve()
	wait := reserved.Delay()
	if wait > 0 {
		reserved.Cancel()
	}
	if r.hurried {
		return 0
	}
	return wait
}

// write writes the Lease and returns when it has to be renewed.
func (r *Reporter) write(ctx context.Context) (time.Duration, error) {
	p := quietPace()
	r.mu.Lock()
	texts := maps.Clone(r.texts)
	r.hurried = false
	for _, grave := range r.urgent {
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
	annotations := make(map[string]any, len(texts)+len(r.cleared))
	for _, name := range r.cleared {
		annotations[name] = nil // RFC 7386: removed
	}
	for name, text := range texts {
		annotations[name] = text
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := r.patch(ctx, annotations, lease.Spec)
	// At first, the former values stay, which are better than none.
	for _, leaveOut := range []func(name string){
		func(name string) { delete(annotations, name) }, func(name string) { annotations[name] = nil },
	} {
		if !apierrors.IsInvalid(err) && !kube.IsTooLarge(err) {
			break
		}
		klog.ErrorS(err, "The Lease has no room for the report, leaving out a part of it", "annotations", r.dispensable)
		for _, name := range r.dispensable {
			leaveOut(name)
		}
		err = r.patch(ctx, annotations, lease.Spec)
	}
	if apierrors.IsNotFound(err) {
		if lease.OwnerReferences, err = r.owner(ctx); err != nil {
			return 0, fmt.Errorf("create Lease %s: %w", r.node, err)
		}
		_, err = r.leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return 0, fmt.Errorf("write Lease %s: %w", r.node, err)
	}
	return p.renew, nil
}

// patch changes annotations and the spec of the Lease. A merge patch does not change the controller's annotation.
func (r *Reporter) patch(ctx context.Context, annotations map[string]any, spec coordinationv1.LeaseSpec) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": spec})
	if err != nil {
		return fmt.Errorf("report of node %s: %w", r.node, err)
	}
	_, err = r.leases.Patch(ctx, r.node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// owner returns the Node as the owner of its Lease. Without a Node there is no Lease.
func (r *Reporter) owner(ctx context.Context) ([]metav1.OwnerReference, error) {
	node, err := r.nodes.Get(ctx, r.node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Node %s, its owner: %w", r.node, err)
	}
	return []metav1.OwnerReference{{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: node.Name,
		UID: node.UID}}, nil
}
