// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// renewEvery and reportTime are what the kubelet has for its own Lease.
	renewEvery = 10 * time.Second
	reportTime = 40 * time.Second
	// writeTimeout bounds one write.
	writeTimeout = 5 * time.Second
	minBackoff   = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// reporter keeps the node's Lease as the faults want it.
type reporter struct {
	node   string
	leases coordinationclient.LeaseInterface
	// want has the newest faults that run has not taken up.
	want chan map[string]string
}

func newReporter(kube kubernetes.Interface, node string) *reporter {
	return &reporter{node, kube.CoordinationV1().Leases(v1alpha1.NodeFaultsNamespace), make(chan map[string]string, 1)}
}

// set is called by one goroutine.
func (r *reporter) set(faults map[string]string) {
	select {
	case <-r.want:
	default:
	}
	r.want <- faults
}

// run writes what is set, until it stands, and renews it while it is a fault.
func (r *reporter) run(ctx context.Context) {
	var faults map[string]string
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	backoff := minBackoff
	for {
		select {
		case <-ctx.Done():
			return
		case faults = <-r.want:
		case <-again.C:
		}
		bounded, cancel := context.WithTimeout(ctx, writeTimeout)
		err := r.write(bounded, faults)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			klog.ErrorS(err, "Report faults; it is tried again", "retryIn", backoff)
			again.Reset(backoff)
			backoff = min(2*backoff, maxBackoff)
		case len(faults) > 0:
			again.Reset(renewEvery)
			backoff = minBackoff
		default:
			again.Stop()
			backoff = minBackoff
		}
	}
}

func (r *reporter) write(ctx context.Context, faults map[string]string) error {
	if len(faults) == 0 {
		if err := r.leases.Delete(ctx, r.node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove Lease %s/%s: %w", v1alpha1.NodeFaultsNamespace, r.node, err)
		}
		return nil
	}
	lease, err := r.leases.Get(ctx, r.node, metav1.GetOptions{})
	write := r.update
	if apierrors.IsNotFound(err) {
		lease, err, write = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.node}}, nil, r.create
	}
	if err == nil {
		err = convert.Report(lease, faults, reportTime)
	}
	if err == nil {
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &r.node, &now
		err = write(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("write Lease %s/%s: %w", v1alpha1.NodeFaultsNamespace, r.node, err)
	}
	return nil
}

func (r *reporter) create(ctx context.Context, l *coordinationv1.Lease) error {
	_, err := r.leases.Create(ctx, l, metav1.CreateOptions{})
	return err
}

func (r *reporter) update(ctx context.Context, l *coordinationv1.Lease) error {
	_, err := r.leases.Update(ctx, l, metav1.UpdateOptions{})
	return err
}
