// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// adopt attaches existing load balancers that belong to a router to the new router of that name.
func (b *batch) adopt(uuid, router string) {
	b.view.each(rows.LoadBalancer, func(of string, m model.Model) {
		if ref := rows.ParentOf(rows.LoadBalancer, externalIDs(m)); isOwned(m) && ref.Name == router {
			c := b.change(set{table: ref.Table, uuid: uuid, column: ref.Column})
			c.add = append(c.add, ovsdb.UUID{GoUUID: of})
		}
	})
}

// parent returns the row that a ParentRef refers to.
func (b *batch) parent(p rows.ParentRef) (record, bool) {
	if f, ok := b.parents[rows.Ref{Table: p.Table, ID: p.Name}]; ok {
		return b.view.record(p.Table, f.uuid, f.model)
	}
	return b.view.byName(p.Table, p.Name)
}

// attach adds a row to its parent.
func (b *batch) attach(uuid string, want rows.Row) error {
	in := want.Parent
	if in.Name == "" {
		return nil
	}
	holder, ok := b.inserted[rows.Ref{Table: in.Table, ID: in.Name}]
	if !ok {
		r, ok := b.parent(in)
		if !ok && isUnreplicated(in) {
			b.attachByName(uuid, in)
			return nil
		}
		if !ok {
			return fmt.Errorf("%s %s: %s %s is not in the database", want.Table, want.ID, in.Table, in.Name)
		}
		holder = r.uuid
	}
	c := b.change(set{table: in.Table, uuid: holder, column: in.Column})
	c.add = append(c.add, ovsdb.UUID{GoUUID: uuid})
	return nil
}

// isUnreplicated reports whether a parent may be in the database without being in the replica: the external switches of
// nodes. There are as many as nodes, a condition of a monitor can't select them, and we only attach rows to them. Only
// that of the node is in the replica of a zone.
func isUnreplicated(p rows.ParentRef) bool {
	return p.Table == rows.Switch && strings.HasPrefix(p.Name, rows.ExternalSwitchPrefix)
}

// attachByName adds a row to a parent that is not in the replica. The transaction is aborted if the parent does not
// exist.
func (b *batch) attachByName(uuid string, in rows.ParentRef) {
	c := b.change(set{table: in.Table, name: in.Name, column: in.Column})
	if len(c.add) == 0 {
		b.ops = append(b.ops, present(in.Table, in.Name))
	}
	c.add = append(c.add, ovsdb.UUID{GoUUID: uuid})
}

// present returns an operation that aborts the transaction if no row with that name exists.
func present(table, name string) ovsdb.Operation {
	now := 0
	return ovsdb.Operation{
		Op: ovsdb.OperationWait, Table: table, Timeout: &now, Until: string(ovsdb.WaitConditionEqual),
		Where: byName(name), Columns: []string{"name"}, Rows: []ovsdb.Row{{"name": name}},
	}
}

// awaitedParent returns the row that an operation of present names, or an empty string for another operation.
func awaitedParent(op *ovsdb.Operation) string {
	if op == nil || op.Until != string(ovsdb.WaitConditionEqual) || !slices.Equal(op.Columns, []string{"name"}) {
		return ""
	}
	return fmt.Sprintf("%s %v", op.Table, op.Rows[0]["name"])
}

// waitUntilAbsent returns an operation that aborts the transaction if a row with that name exists. Only switches and
// routers need it: ports, groups and address sets have unique names (ovn-nb.ovsschema, indexes), and all other rows are
// inserted together with one of these.
func waitUntilAbsent(table, name string) ovsdb.Operation {
	now := 0
	return ovsdb.Operation{
		Op: ovsdb.OperationWait, Table: table, Timeout: &now, Until: string(ovsdb.WaitConditionNotEqual),
		Where: byName(name), Columns: []string{"name"}, Rows: []ovsdb.Row{{"name": name}},
	}
}

// detach removes a row from its parent. It returns false if the parent does not exist.
func (b *batch) detach(r record) bool {
	ref := rows.ParentOf(r.table, r.externalIDs())
	in := set{table: ref.Table, column: ref.Column}
	switch holder, ok := b.parent(ref); {
	case ok:
		in.uuid = holder.uuid
	case isUnreplicated(ref):
		in.name = ref.Name
	default:
		return false
	}
	c := b.change(in)
	c.remove = append(c.remove, ovsdb.UUID{GoUUID: r.uuid})
	return true
}

// detachHAGroup removes an HA chassis group from our ports. The server refuses to delete a row that another row
// references, even if the same transaction deletes the referencing row.
func (b *batch) detachHAGroup(group record) {
	for _, port := range slices.Concat(b.view.all(rows.RouterPort), b.view.all(rows.SwitchPort)) {
		if uuid, _ := port.column("ha_chassis_group").(*string); isOwned(port.model) && uuid != nil && *uuid == group.uuid {
			b.ops = append(b.ops, ovsdb.Operation{
				Op: ovsdb.OperationUpdate, Table: port.table, Where: byUUID(port.uuid),
				Row: ovsdb.Row{"ha_chassis_group": ovsdb.OvsSet{}},
			})
		}
	}
}
