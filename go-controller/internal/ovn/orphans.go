// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// A BFD row without its port crashes ovn-northd. From OVN 24.09 on, bfd_table_sync deletes the southbound row of a
// session whose logical_port it does not find. If that row no longer exists, northd fails with SIGSEGV on its next
// computation and on every start. The table is a root set, so the row outlives its port if another client deletes the
// port or its router (ovn-nbctl lr-del).
//
// Our own transactions insert and delete the row together with the port. If another client deletes the port, we
// delete the row at once, ahead of all pending writes, and without a number (ADR 20): no Service waits for it. northd
// reads the deletion of the port at the same time as we do, and processes the row again once the southbound database
// has confirmed the resulting changes.

// deleteOrphans deletes BFD rows whose port was deleted, until ctx ends.
func (d *Dataplane) deleteOrphans(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.drift.orphaned:
		}
		_, v, err := d.nb.current()
		if err != nil {
			continue // the next connection causes all rows to be written again
		}
		for i, err := range d.commitAs(ctx, orphans(v), false) {
			if err != nil {
				klog.FromContext(ctx).V(1).Info("Failed to delete a BFD row without port", "number", i, "reason", err)
			}
		}
	}
}

// orphans returns functions that delete BFD rows of ours without a port, one per row. The replica may be in the
// middle of a transaction, so each function verifies that the port does not exist.
func orphans(v view) []opsFunc {
	ports := map[string]bool{}
	v.each(rows.RouterPort, func(_ string, m model.Model) {
		if port, ok := m.(*nbdb.LogicalRouterPort); ok {
			ports[port.Name] = true
		}
	})
	var opsFuncs []opsFunc
	for _, r := range v.owned(rows.BFD) {
		if port := r.string("logical_port"); !ports[port] {
			opsFuncs = append(opsFuncs, func(b *batch) error {
				b.ops = append(b.ops, waitUntilAbsent(rows.RouterPort, port),
					ovsdb.Operation{Op: ovsdb.OperationDelete, Table: r.table, Where: byUUID(r.uuid)})
				return nil
			})
		}
	}
	return opsFuncs
}
