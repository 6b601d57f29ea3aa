// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// ovn-northd computes everything again when a load balancer leaves its router, in central mode for the whole cluster
// (northd_handle_lb_data_changes in northd/northd.c). What it does of a changed one is incremental. The load balancers
// of a deleted Service therefore stay at first, with empty vips: nothing is forwarded or answered for those. They are
// removed many at a time.

// maxRetired is the number of deleted Services above which their load balancers are removed.
const maxRetired = 100

// retire adds the changes that end the service of a Service's rows.
func (b *batch) retire(have []record) error {
	for _, r := range have {
		if r.table != rows.LoadBalancer {
			if err := b.remove(r); err != nil {
				return err
			}
		} else if vips, _ := r.column("vips").(map[string]string); len(vips) > 0 {
			b.ops = append(b.ops, ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: r.table, Where: byUUID(r.uuid),
				Row: ovsdb.Row{"vips": ovsdb.OvsMap{GoMap: map[any]any{}}}})
		}
	}
	return nil
}

// removeRetired removes the load balancers of deleted Services when there are many of them, or no other Services.
func (d *Dataplane) removeRetired(ctx context.Context) {
	if len(d.retired) == 0 || len(d.retired) <= maxRetired && len(d.desired.services) > 0 {
		return
	}
	keys := make([]world.Key, 0, len(d.retired))
	opsFuncs := make([]opsFunc, 0, len(d.retired))
	for key := range d.retired {
		keys = append(keys, key)
		opsFuncs = append(opsFuncs, func(b *batch) error {
			return b.reconcile(b.view.withID(rows.LoadBalancer, rows.KeyService, key.String()), nil)
		})
	}
	errs := d.commit(ctx, opsFuncs)
	for i, key := range keys {
		if errs[i] == nil {
			delete(d.retired, key)
		}
	}
	if err := errors.Join(errs...); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to remove load balancers of deleted Services, will retry")
	}
}

// retiredOn returns the load balancers of deleted Services on routers that are about to be removed.
func (d *Dataplane) retiredOn(v view, routers map[string]bool) []record {
	if len(routers) == 0 {
		return nil
	}
	return v.filter(rows.LoadBalancer, func(m model.Model) bool {
		ids := externalIDs(m)
		key, _ := parseKey(ids[rows.KeyService])
		return isOwned(m) && ids[rows.KeyOwnerType] == rows.OwnerService && d.desired.plan(key) == nil &&
			d.pruned && routers[ids[rows.KeyParent]]
	})
}
