// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"slices"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// node are the changes that let the backends on a node answer. Before every Service that
// the database knows is wanted, or was pruned, nothing that it has is taken away.
func (d *Dataplane) node(name string) unit {
	return func(b *batch) error { return d.returns(d.ground, name)(b) }
}

// returns is node with any ground.
func (d *Dataplane) returns(ground *rows.Ground, name string) unit {
	return func(b *batch) error {
		have := ofNode(b.view, name)
		if d.want.nodes[name] == nil {
			if d.complete {
				return removeAll(have)(b)
			}
			return nil
		}
		if ground == nil {
			return errNoGround
		}
		known := map[string]map[string]string{} // vips by row id
		if !d.complete {
			for _, r := range have {
				known[refOf(r).ID], _ = r.column("vips").(map[string]string)
			}
		}
		wants := ground.NodeRows(name, d.want.on(name), func(id string) map[string]string { return known[id] })
		if d.complete && len(wants) > 0 {
			if err := removeAll(unwanted(have, wants))(b); err != nil {
				return err
			}
		}
		return b.ensureAmong(have, wants)
	}
}

// ensureAmong is ensure for rows of which most are known to be there: to look one up takes
// longer than to compare it.
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

// unwanted are the rows that are not among those wanted.
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

// ofNode are the rows of ours that belong to a node.
func ofNode(v view, name string) []record {
	var found []record
	for _, table := range ownTables() {
		found = append(found, v.withID(table, rows.KeyNode, name)...)
	}
	return found
}

// nodes are the changes that make the rows of nodes as wanted.
func (d *Dataplane) nodes(names []string) []unit {
	units := make([]unit, 0, len(names))
	for _, name := range names {
		units = append(units, d.node(name))
	}
	return units
}

// made notes what became of the rows of nodes, and returns the errors.
func (d *Dataplane) made(names []string, errs []error) (broken map[string]error) {
	clear(d.want.apart)
	for i, name := range names {
		if errs[i] == nil {
			delete(d.want.unsure, name)
			continue
		}
		if broken == nil {
			broken = map[string]error{}
		}
		broken[name] = errs[i]
		d.want.unsure[name] = true
	}
	return broken
}

// doubtOrphans makes the nodes that have rows of ours and no backends unsure.
func (d *Dataplane) doubtOrphans(v view) {
	v.each(rows.Router, func(_ string, m model.Model) {
		ids := externalIDs(m)
		if name := ids[rows.KeyNode]; ours(m) && ids[rows.KeyOwnerType] == rows.OwnerNode && d.want.nodes[name] == nil {
			d.want.unsure[name] = true
		}
	})
}

// learn finds out whether each Service that the database knows is wanted, or pruned. From
// then on Apply may take backends away, and no node is sure to have no more than it needs.
func (d *Dataplane) learn() {
	_, v, err := d.nb.current()
	if d.complete || d.ground == nil || err != nil {
		return // the next call will do
	}
	known := true
	v.each(rows.LoadBalancer, func(_ string, m model.Model) {
		ids := externalIDs(m)
		key, _ := parseKey(ids[rows.KeyService])
		known = known && (!ours(m) || ids[rows.KeyOwnerType] != rows.OwnerService || d.want.plans[key] != nil)
	})
	if !known {
		return
	}
	d.complete = true
	for name := range d.want.nodes {
		d.want.unsure[name] = true
	}
	d.doubtOrphans(v)
}
