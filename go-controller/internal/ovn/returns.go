// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"slices"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// nodeOps returns the changes that let the backends on a node reply. Until every Service in the database is desired or
// was pruned, it removes nothing.
func (d *Dataplane) nodeOps(name string) opsFunc {
	return func(b *batch) error { return d.nodeOpsWith(d.builder, name)(b) }
}

// nodeOpsWith is like nodeOps, with the given builder.
func (d *Dataplane) nodeOpsWith(builder *rows.Builder, name string) opsFunc {
	return func(b *batch) error {
		have := ofNode(b.view, name)
		if d.desired.nodes[name] == nil {
			if d.safeToPrune {
				return removeAll(have)(b)
			}
			return nil
		}
		if builder == nil {
			return errNoTopology
		}
		known := map[string]map[string]string{} // vips by row ID
		if !d.safeToPrune {
			for _, r := range have {
				known[refOf(r).ID], _ = r.column("vips").(map[string]string)
			}
		}
		wants := builder.NodeRows(name, d.desired.backendsOn(name), func(id string) map[string]string { return known[id] })
		if d.safeToPrune && len(wants) > 0 {
			if err := removeAll(unwanted(have, wants))(b); err != nil {
				return err
			}
		}
		return b.ensureAmong(have, wants)
	}
}

// ensureAmong is like ensure, for rows of which most are known to exist. Looking up a row takes longer than comparing
// it.
func (b *batch) ensureAmong(have []record, wants []rows.Row) error {
	there := make(map[rows.Ref]record, len(have))
	for _, r := range have {
		there[refOf(r)] = r
	}
	for _, w := range wants {
		change := b.ensure
		if r, ok := there[rows.Ref{Table: w.Table, ID: w.ID}]; ok {
			change = func(w rows.Row) error { return b.update(r, w) }
		}
		if err := change(w); err != nil {
			return err
		}
	}
	return nil
}

// unwanted returns the rows in have that are not in wants.
func unwanted(have []record, wants []rows.Row) []record {
	wanted := make(map[rows.Ref]bool, len(wants))
	for _, w := range wants {
		wanted[rows.Ref{Table: w.Table, ID: w.ID}] = true
	}
	return slices.DeleteFunc(slices.Clone(have), func(r record) bool {
		return wanted[refOf(r)]
	})
}

func refOf(r record) rows.Ref {
	return rows.Ref{Table: r.table, ID: r.externalIDs()[rows.KeyPrimaryID]}
}

// ofNode returns the rows we own that belong to a node.
func ofNode(v view, name string) []record {
	var found []record
	for _, table := range ownTables() {
		found = append(found, v.withID(table, rows.KeyNode, name)...)
	}
	return found
}

// nodes returns the functions that reconcile the rows of the named nodes.
func (d *Dataplane) nodes(names []string) []opsFunc {
	opsFuncs := make([]opsFunc, 0, len(names))
	for _, name := range names {
		opsFuncs = append(opsFuncs, d.nodeOps(name))
	}
	return opsFuncs
}

// recordNodeResults records the results of writing the rows of nodes, and returns the errors by node.
func (d *Dataplane) recordNodeResults(names []string, errs []error) (broken map[string]error) {
	clear(d.desired.splitPlans)
	for i, name := range names {
		if errs[i] == nil {
			delete(d.desired.dirty, name)
			continue
		}
		if broken == nil {
			broken = map[string]error{}
		}
		broken[name] = errs[i]
		d.desired.markDirty(name)
	}
	return broken
}

// markOrphansDirty marks nodes dirty that have rows of ours but no backends.
func (d *Dataplane) markOrphansDirty(v view) {
	v.each(rows.Router, func(_ string, m model.Model) {
		ids := externalIDs(m)
		if name := ids[rows.KeyNode]; isOwned(m) && ids[rows.KeyOwnerType] == rows.OwnerNode && d.desired.nodes[name] == nil {
			d.desired.markDirty(name)
		}
	})
}

// checkComplete checks whether each Service in the database is desired or was pruned. From then on, Apply may remove
// backends, and all nodes are dirty because they may have more rows than they need.
func (d *Dataplane) checkComplete() {
	_, v, err := d.nb.current()
	if d.safeToPrune || d.builder == nil || err != nil {
		return // retried by the next call
	}
	known := true
	v.each(rows.LoadBalancer, func(_ string, m model.Model) {
		ids := externalIDs(m)
		key, _ := parseKey(ids[rows.KeyService])
		known = known && (!isOwned(m) || ids[rows.KeyOwnerType] != rows.OwnerService || d.desired.plan(key) != nil)
	})
	if !known {
		return
	}
	d.safeToPrune = true
	for name := range d.desired.nodes {
		d.desired.markDirty(name)
	}
	d.markOrphansDirty(v)
}
