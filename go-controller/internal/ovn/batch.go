// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// batch collects the operations of one transaction.
type batch struct {
	view         view
	last         record // the number of the last transaction, the zero record if there is none
	ops          []ovsdb.Operation
	sets         map[set]*change
	inserted     map[rows.Ref]string // UUID names of rows that this transaction inserts, by ID and by name
	nextUUIDName int                 // number of UUID names assigned
	parents      map[rows.Ref]found  // routers and switches by name
	renumber     bool                // the transaction must be numbered even if nothing else changes
}

// found is a row of the replica.
type found struct {
	uuid  string
	model model.Model
}

// set identifies a set-valued column of a row. A row that is not in the replica is identified by its name.
type set struct{ table, uuid, column, name string }

func (s set) where() []ovsdb.Condition {
	if s.uuid == "" {
		return byName(s.name)
	}
	return byUUID(s.uuid)
}

type change struct{ add, remove []any }

// newBatch starts a transaction. It reads the number of the last transaction first: that must be no newer than the rows
// in the replica. The replica applies transactions of other clients row by row, but completes a transaction before it
// returns another table.
func newBatch(v view) *batch {
	b := &batch{
		view: v, sets: map[set]*change{}, inserted: map[rows.Ref]string{},
		parents: make(map[rows.Ref]found, v.Table(rows.Router).Len()),
	}
	b.last, _ = v.row(rows.AddressSet, rows.Revision(0).ID)
	for _, table := range []string{rows.Router, rows.Switch} {
		v.each(table, func(uuid string, m model.Model) {
			ref := rows.Ref{Table: table, ID: nameOf(m)}
			if other, double := b.parents[ref]; !double || uuid < other.uuid {
				b.parents[ref] = found{uuid, m}
			}
		})
	}
	return b
}

// size returns the number of changes collected. The number of the transaction counts only if it must be restored.
func (b *batch) size() int {
	n := len(b.ops)
	if b.renumber {
		n++
	}
	for _, c := range b.sets {
		n += len(c.add) + len(c.remove)
	}
	return n
}

// operations returns the operations of the transaction.
func (b *batch) operations() []ovsdb.Operation {
	ops := slices.Clone(b.ops)
	places := slices.SortedFunc(maps.Keys(b.sets), func(x, y set) int {
		return cmp.Or(cmp.Compare(x.table, y.table), cmp.Compare(x.uuid, y.uuid), cmp.Compare(x.column, y.column),
			cmp.Compare(x.name, y.name))
	})
	for _, p := range places {
		c := b.sets[p]
		var mutations []ovsdb.Mutation
		// Insert before deleting, so that a set that must not be empty never becomes empty.
		if len(c.add) > 0 {
			mutations = append(mutations, *ovsdb.NewMutation(p.column, ovsdb.MutateOperationInsert, ovsdb.OvsSet{GoSet: c.add}))
		}
		if len(c.remove) > 0 {
			mutations = append(mutations, *ovsdb.NewMutation(p.column, ovsdb.MutateOperationDelete,
				ovsdb.OvsSet{GoSet: c.remove}))
		}
		if len(mutations) == 0 {
			continue
		}
		ops = append(ops, ovsdb.Operation{Op: ovsdb.OperationMutate, Table: p.table, Where: p.where(),
			Mutations: mutations})
	}
	return ops
}

func byUUID(uuid string) []ovsdb.Condition {
	return []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: uuid})}
}

func byName(name string) []ovsdb.Condition {
	return []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, name)}
}

func (b *batch) change(s set) *change {
	c, ok := b.sets[s]
	if !ok {
		c = &change{}
		b.sets[s] = c
	}
	return c
}

// ensure adds the operations that create or update a row.
func (b *batch) ensure(want rows.Row) error {
	if have, ok := b.view.row(want.Table, want.ID); ok {
		return b.update(have, want)
	}
	return b.insert(want)
}

// reconcile adds the operations that turn the existing rows into the desired rows.
func (b *batch) reconcile(have []record, want []rows.Row) error {
	byID := make(map[string]record, len(have))
	for _, r := range have {
		id := r.externalIDs()[rows.KeyPrimaryID]
		if _, double := byID[id]; !double {
			byID[id] = r
		} else if err := b.remove(r); err != nil {
			return err
		}
	}
	for _, w := range want {
		r, ok := byID[w.ID]
		delete(byID, w.ID)
		change := b.insert
		if ok {
			change = func(w rows.Row) error { return b.update(r, w) }
		}
		if err := change(w); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if err := b.remove(byID[id]); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) insert(want rows.Row) error {
	if _, ok := b.inserted[rows.Ref{Table: want.Table, ID: want.ID}]; ok {
		return nil
	}
	row := ovsdb.Row{}
	for column, value := range want.Columns {
		native, err := b.native(value)
		if err != nil {
			return fmt.Errorf("%s %s: %w", want.Table, want.ID, err)
		}
		if row[column], err = b.toOVSDB(want.Table, column, native); err != nil {
			return err
		}
	}
	if want.Table == rows.Router || want.Table == rows.Switch {
		b.ops = append(b.ops, waitUntilAbsent(want.Table, want.Name()))
	}
	name := fmt.Sprintf("row%d", b.nextUUIDName)
	b.nextUUIDName++
	b.ops = append(b.ops, ovsdb.Operation{Op: ovsdb.OperationInsert, Table: want.Table, Row: row, UUIDName: name})
	b.inserted[rows.Ref{Table: want.Table, ID: want.ID}] = name
	b.inserted[rows.Ref{Table: want.Table, ID: want.Name()}] = name
	if want.Table == rows.Router {
		b.adopt(name, want.Name())
	}
	return b.attach(name, want)
}

// number numbers the transaction, which is aborted if another process of this project has written one since we read the
// database. It would not see that otherwise: load balancers and ACLs have no unique names, and the cost of searching
// for one on the server is linear in their number. The Address_Set has one, so that only one process inserts it.
func (b *batch) number(number uint64) error {
	if b.last.model != nil {
		now := 0
		b.ops = append([]ovsdb.Operation{{
			Op: ovsdb.OperationWait, Table: b.last.table, Timeout: &now, Until: string(ovsdb.WaitConditionEqual),
			Where: byUUID(b.last.uuid), Columns: []string{"addresses"},
			Rows: []ovsdb.Row{{"addresses": stringSet(b.last.strings("addresses"))}},
		}}, b.ops...)
	}
	return b.ensure(rows.Revision(number))
}

func stringSet(elements []string) ovsdb.OvsSet {
	out := ovsdb.OvsSet{GoSet: make([]any, 0, len(elements))}
	for _, e := range elements {
		out.GoSet = append(out.GoSet, e)
	}
	return out
}

// update adds the operations for the columns that differ. Sets are changed by element.
func (b *batch) update(have record, want rows.Row) error {
	row := ovsdb.Row{}
	for column, value := range want.Columns {
		native, err := b.native(value)
		if err != nil {
			return fmt.Errorf("%s %s: %w", want.Table, want.ID, err)
		}
		if equal(have.column(column), native) {
			continue
		}
		if elements, ok := native.([]string); ok && !isRefs(value) {
			b.replace(set{table: have.table, uuid: have.uuid, column: column}, have.strings(column), elements)
			continue
		}
		if all, ok := native.(map[string]string); ok && len(all) > maxChanges {
			old, _ := have.column(column).(map[string]string)
			b.ops = append(b.ops, mutateMap(have, column, old, all))
			continue
		}
		if row[column], err = b.toOVSDB(want.Table, column, native); err != nil {
			return err
		}
	}
	if len(row) > 0 {
		b.ops = append(b.ops, ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: have.table, Row: row,
			Where: byUUID(have.uuid)})
	}
	if rows.ParentOf(have.table, have.externalIDs()) == want.Parent {
		return nil
	}
	b.detach(have)
	return b.attach(have.uuid, want)
}

// mutateMap returns the operation that turns a large map into another one by the elements that differ. The load
// balancers of a node can have hundreds of thousands, and each change of one of them would take seconds.
func mutateMap(have record, column string, old, want map[string]string) ovsdb.Operation {
	gone, fresh := ovsdb.OvsSet{}, ovsdb.OvsMap{GoMap: map[any]any{}}
	for key, value := range old {
		if other, stays := want[key]; !stays || other != value {
			gone.GoSet = append(gone.GoSet, key)
		}
	}
	for key, value := range want {
		if before, there := old[key]; !there || before != value {
			fresh.GoMap[key] = value
		}
	}
	op := ovsdb.Operation{Op: ovsdb.OperationMutate, Table: have.table, Where: byUUID(have.uuid)}
	// An insertion replaces no element, so those that change are deleted first.
	if len(gone.GoSet) > 0 {
		op.Mutations = append(op.Mutations, *ovsdb.NewMutation(column, ovsdb.MutateOperationDelete, gone))
	}
	if len(fresh.GoMap) > 0 {
		op.Mutations = append(op.Mutations, *ovsdb.NewMutation(column, ovsdb.MutateOperationInsert, fresh))
	}
	return op
}

func isRefs(value any) bool {
	_, ok := value.([]rows.Ref)
	return ok
}

// mutateSet adds elements to a set and removes others.
func (b *batch) mutateSet(s set, add map[string]bool, remove []string) {
	c := b.change(s)
	for _, e := range slices.Sorted(maps.Keys(add)) {
		c.add = append(c.add, e)
	}
	for _, e := range remove {
		c.remove = append(c.remove, e)
	}
}

func (b *batch) replace(s set, have, want []string) {
	old := make(map[string]bool, len(have))
	for _, e := range have {
		old[e] = true
	}
	missing := map[string]bool{}
	for _, e := range want {
		if !old[e] {
			missing[e] = true
		}
		delete(old, e)
	}
	b.mutateSet(s, missing, slices.Sorted(maps.Keys(old)))
}

// remove adds the operations that delete a row we own. Rows that need a parent are garbage-collected once no row
// references them.
func (b *batch) remove(r record) error {
	if r.table == rows.HAChassisGroup {
		b.detachHAGroup(r)
	}
	if !rows.IsNonRoot(r.table) {
		b.ops = append(b.ops, ovsdb.Operation{Op: ovsdb.OperationDelete, Table: r.table, Where: byUUID(r.uuid)})
		return nil
	}
	if !b.detach(r) {
		ids := r.externalIDs()
		return fmt.Errorf("%s %s: %s, its parent, is not in the database", r.table, ids[rows.KeyPrimaryID],
			ids[rows.KeyParent])
	}
	return nil
}

// native returns a desired value in the form used by the replica, with references as UUIDs.
func (b *batch) native(value any) (any, error) {
	if refs, ok := value.([]rows.Ref); ok {
		var uuids []string
		for _, ref := range refs {
			uuid, err := b.native(ref)
			if err != nil {
				return nil, err
			}
			uuids = append(uuids, *uuid.(*string))
		}
		return uuids, nil
	}
	ref, ok := value.(rows.Ref)
	if !ok {
		return value, checkText(value)
	}
	if name, ok := b.inserted[ref]; ok {
		return &name, nil
	}
	r, ok := b.view.row(ref.Table, ref.ID)
	if !ok {
		return nil, fmt.Errorf("refers to %s %s, which is not in the database", ref.Table, ref.ID)
	}
	return &r.uuid, nil
}

// toOVSDB converts a value to OVSDB notation (RFC 7047, section 5.1).
func (b *batch) toOVSDB(table, column string, native any) (any, error) {
	schema := b.view.DatabaseModel().Schema.Table(table).Column(column)
	value, err := ovsdb.NativeToOvs(schema, native)
	if err != nil {
		return nil, fmt.Errorf("%s.%s = %v: %w", table, column, native, err)
	}
	return value, nil
}

// equal compares two values of a column. The order of set elements is ignored.
func equal(have, want any) bool {
	switch w := want.(type) {
	case []string:
		h, ok := have.([]string)
		return ok && len(h) == len(w) && slices.Equal(slices.Sorted(slices.Values(h)), slices.Sorted(slices.Values(w)))
	case map[string]string:
		h, ok := have.(map[string]string)
		return ok && maps.Equal(h, w)
	case *string:
		h, ok := have.(*string)
		return ok && same(h, w)
	case *int:
		h, ok := have.(*int)
		return ok && same(h, w)
	case *bool:
		h, ok := have.(*bool)
		return ok && same(h, w)
	}
	return have == want
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
