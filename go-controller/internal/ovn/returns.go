// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// node are the changes that let the backends on a node answer. Before every Service that
// the database knows has been applied, nothing that it has is taken away.
func (d *Dataplane) node(name string) unit {
	return func(b *batch) error { return d.returns(d.ground, name)(b) }
}

// returns is node with any ground.
func (d *Dataplane) returns(ground *rows.Ground, name string) unit {
	return func(b *batch) error {
		have := ofNode(b.view, name)
		uses := d.want.nodes[name]
		if uses == nil {
			if d.complete {
				return removeAll(have)(b)
			}
			return nil
		}
		if ground == nil {
			return errNoGround
		}
		ports := slices.Collect(maps.Keys(uses.ports))
		known := map[string]map[string]string{} // vips by row id
		if !d.complete {
			for _, r := range have {
				ids := r.externalIDs()
				switch r.table {
				case rows.Policy:
					ports = append(ports, rows.ParsePorts(ids[rows.KeyPorts])...)
				case rows.LoadBalancer:
					known[ids[rows.KeyPrimaryID]], _ = r.column("vips").(map[string]string)
				}
			}
		}
		wants := ground.NodeRows(name, slices.Collect(maps.Keys(uses.behind)), ports)
		for _, w := range wants {
			if vips, ok := w.Columns["vips"].(map[string]string); ok {
				recall(vips, known[w.ID])
			}
		}
		if d.complete && len(wants) > 0 {
			if err := removeAll(unwanted(have, wants))(b); err != nil {
				return err
			}
		}
		return ensureAll(wants)(b)
	}
}

// recall adds the aliases that are known and not among those wanted.
func recall(vips, known map[string]string) {
	for alias, of := range known {
		if _, ok := vips[alias]; !ok {
			vips[alias] = of
		}
	}
}

// unwanted are the rows that are not among those wanted.
func unwanted(have []record, wants []rows.Row) []record {
	wanted := make(map[rows.Ref]bool, len(wants))
	for _, w := range wants {
		wanted[rows.Ref{Table: w.Table, ID: w.ID}] = true
	}
	return slices.DeleteFunc(slices.Clone(have), func(r record) bool {
		return wanted[rows.Ref{Table: r.table, ID: r.externalIDs()[rows.KeyPrimaryID]}]
	})
}

// ofNode are the rows of ours that belong to a node.
func ofNode(v view, name string) []record {
	var found []record
	for _, table := range ownTables() {
		found = append(found, v.withID(table, rows.KeyNode, name)...)
	}
	return found
}

// allNodes are the changes that make all nodes' rows exact.
func (d *Dataplane) allNodes(v view) []unit {
	var units []unit
	for name := range d.want.nodes {
		units = append(units, d.node(name))
	}
	for _, router := range v.owned(rows.Router) {
		ids := router.externalIDs()
		if name := ids[rows.KeyNode]; ids[rows.KeyOwnerType] == rows.OwnerNode && d.want.nodes[name] == nil {
			units = append(units, d.node(name))
		}
	}
	return units
}

// settle makes all nodes' rows exact as soon as every Service that the database knows has
// been applied or pruned; from then on Apply may take backends away.
func (d *Dataplane) settle(ctx context.Context) error {
	_, v, err := d.nb.current()
	if d.complete || d.ground == nil || err != nil {
		return nil // the next call will do
	}
	for _, r := range v.owned(rows.LoadBalancer) {
		ids := r.externalIDs()
		if key, _ := parseKey(ids[rows.KeyService]); ids[rows.KeyOwnerType] == rows.OwnerService && d.want.plans[key] == nil {
			return nil
		}
	}
	d.complete = true
	if err := errors.Join(d.commit(ctx, d.allNodes(v))...); err != nil {
		d.complete = false
		return err
	}
	return nil
}
