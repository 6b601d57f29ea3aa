// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/mapper"
	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// view reads the replica of a database.
type view struct{ *cache.TableCache }

// record is a row of the replica. It is read-only.
type record struct {
	table, uuid string
	model       model.Model
	info        *mapper.Info
}

// column returns a column's value in its Go form, or nil if the model has no such column.
func (r record) column(name string) any {
	value, err := r.info.FieldByColumn(name)
	if err != nil {
		return nil
	}
	return value
}

func (r record) externalIDs() map[string]string { return externalIDs(r.model) }

func (r record) strings(column string) []string {
	set, _ := r.column(column).([]string)
	return set
}

func (r record) string(column string) string {
	s, _ := r.column(column).(string)
	return s
}

// isOwned reports whether we own a row.
func isOwned(m model.Model) bool { return externalIDs(m)[rows.KeyController] == rows.Controller }

// each calls do for each row of a table. do must not modify the row.
func (v view) each(table string, do func(uuid string, m model.Model)) {
	if t := v.Table(table); t != nil {
		for uuid, m := range t.RowsShallow() {
			do(uuid, m)
		}
	}
}

// all returns the rows of a table.
func (v view) all(table string) []record {
	return v.filter(table, func(model.Model) bool { return true })
}

func (v view) owned(table string) []record { return v.filter(table, isOwned) }

// filter returns the rows that match, sorted by UUID.
func (v view) filter(table string, fits func(model.Model) bool) []record {
	found := map[string]model.Model{}
	v.each(table, func(uuid string, m model.Model) {
		if fits(m) {
			found[uuid] = m
		}
	})
	return v.records(table, found)
}

// withID returns the rows that we own of a table whose external_ids contain a key and value, sorted by UUID. It uses an
// index for the keys that monitors.go indexes, and scans the table for others. Ports of others are replicated too, and
// anyone who may write them could set our keys.
func (v view) withID(table, key, value string) []record {
	t := v.Table(table)
	if t == nil || t.Len() == 0 {
		return nil
	}
	found, err := t.RowsByCondition([]ovsdb.Condition{
		ovsdb.NewCondition("external_ids", ovsdb.ConditionIncludes, pair(key, value)),
	})
	if err != nil {
		return nil // impossible with a schema that has external_ids, which is checked on connect
	}
	maps.DeleteFunc(found, func(_ string, m model.Model) bool { return !isOwned(m) })
	return v.records(table, found)
}

// row returns the row we own with that primary ID.
func (v view) row(table, id string) (record, bool) {
	return first(v.withID(table, rows.KeyPrimaryID, id))
}

// byName returns the router, switch or HA chassis group with that name, whether we own it or our rows are attached to
// it.
func (v view) byName(table, name string) (record, bool) {
	return first(v.filter(table, func(m model.Model) bool { return nameOf(m) == name }))
}

// nameOf returns the name of a row that can hold others, or an empty string for any other row.
func nameOf(m model.Model) string {
	switch row := m.(type) {
	case *nbdb.LogicalRouter:
		return row.Name
	case *nbdb.LogicalSwitch:
		return row.Name
	case *nbdb.HAChassisGroup:
		return row.Name
	}
	return ""
}

func first(found []record) (record, bool) {
	if len(found) == 0 {
		return record{}, false
	}
	return found[0], true
}

func (v view) records(table string, found map[string]model.Model) []record {
	out := make([]record, 0, len(found))
	for uuid, m := range found {
		if r, ok := v.record(table, uuid, m); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b record) int { return cmp.Compare(a.uuid, b.uuid) })
	return out
}

func (v view) record(table, uuid string, m model.Model) (record, bool) {
	info, err := v.DatabaseModel().NewModelInfo(m) // checked on connect
	return record{table: table, uuid: uuid, model: m, info: info}, err == nil
}

// columns returns the columns in the model of a table.
func (v view) columns(table string) ([]string, error) {
	m, err := v.DatabaseModel().NewModel(table)
	if err != nil {
		return nil, err
	}
	info, err := v.DatabaseModel().NewModelInfo(m)
	if err != nil {
		return nil, err
	}
	columns := slices.Sorted(maps.Keys(info.Metadata.Fields))
	return slices.DeleteFunc(columns, func(c string) bool { return c == "_uuid" }), nil
}
