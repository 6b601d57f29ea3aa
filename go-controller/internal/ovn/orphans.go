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

// A BFD row without its port kills ovn-northd: from OVN 24.09 on, bfd_table_sync deletes the
// southbound row of a session whose logical_port it does not find, and fails
// (SIGSEGV) when there is none any more, the next time that it computes anything and at
// every start. The table is a root set, so the row outlives its port where another client
// deletes the port or its router (ovn-nbctl lr-del).
//
// Our own transactions insert and delete the row together with the port. Where it was not us,
// the row goes at once, past everything that waits to be written: northd has read the deletion
// of the port at the same time as we have, and looks at the row again when the southbound
// database has confirmed what it made of that.

// reapOrphans deletes BFD rows whose port went, until ctx ends.
func (d *Dataplane) reapOrphans(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.drift.bereaved:
		}
		_, v, err := d.nb.current()
		if err != nil {
			continue // the next connection has all rows written again
		}
		for i, err := range d.commit(ctx, orphans(v)) {
			if err != nil {
				klog.FromContext(ctx).V(1).Info("A BFD row whose port had gone was not deleted", "number", i, "reason", err)
			}
		}
	}
}

// orphans are the changes that delete BFD rows of ours without a port, one each. The replica may
// be in the middle of a transaction, so each says what it relies on.
func orphans(v view) []unit {
	ports := map[string]bool{}
	v.each(rows.RouterPort, func(_ string, m model.Model) {
		if port, ok := m.(*nbdb.LogicalRouterPort); ok {
			ports[port.Name] = true
		}
	})
	var units []unit
	for _, r := range v.owned(rows.BFD) {
		if port := r.text("logical_port"); !ports[port] {
			units = append(units, func(b *batch) error {
				b.ops = append(b.ops, absent(rows.RouterPort, port),
					ovsdb.Operation{Op: ovsdb.OperationDelete, Table: r.table, Where: byUUID(r.uuid)})
				return nil
			})
		}
	}
	return units
}
