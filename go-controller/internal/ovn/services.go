// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"errors"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var errNoTopology = errors.New("shards are not configured yet")

// serviceOps returns the changes for a Service's load balancers and ACLs.
func (d *Dataplane) serviceOps(key world.Key) opsFunc {
	return func(b *batch) error {
		var have []record
		for _, table := range serviceTables() {
			have = append(have, b.view.withID(table, rows.KeyService, key.String())...)
		}
		p := d.desired.plan(key)
		if p == nil {
			return b.retire(have)
		}
		if d.builder == nil {
			return errNoTopology
		}
		vips := make(map[string]map[string]string, len(have))
		for _, r := range have {
			if now, _ := r.column("vips").(map[string]string); now != nil {
				vips[r.externalIDs()[rows.KeyPrimaryID]] = now
			} else if r.table == rows.LoadBalancer {
				vips[r.externalIDs()[rows.KeyPrimaryID]] = map[string]string{}
			}
		}
		wants, err := d.builder.Service(p, func(id string) map[string]string { return vips[id] })
		if err != nil {
			return err
		}
		return b.reconcile(have, wants)
	}
}

// staleServices returns the functions that remove rows of Services for which keep returns false, and duplicate rows of
// the others.
func (d *Dataplane) staleServices(v view, keep func(world.Key) bool) []opsFunc {
	var opsFuncs []opsFunc
	seen := map[string]bool{}
	var all []record
	for _, table := range serviceTables() {
		all = append(all, v.owned(table)...)
	}
	for _, r := range all {
		ids := r.externalIDs()
		if ids[rows.KeyOwnerType] != rows.OwnerService {
			continue
		}
		id := ids[rows.KeyPrimaryID]
		key, ok := parseKey(ids[rows.KeyService])
		if !ok || !keep(key) {
			opsFuncs = append(opsFuncs, removeAll([]record{r}))
			delete(d.retired, key)
		} else if seen[id] && d.desired.plan(key) != nil {
			opsFuncs = append(opsFuncs, d.serviceOps(key))
		}
		seen[id] = true
	}
	return opsFuncs
}

// reattachLoadBalancers reattaches load balancers to their routers. Apply relies on the parent recorded in the row
// itself.
func reattachLoadBalancers(b *batch) error {
	attached := map[string]bool{}
	for _, router := range b.view.owned(rows.Router) {
		for _, uuid := range router.strings("load_balancer") {
			attached[router.string("name")+uuid] = true
		}
	}
	for _, r := range b.view.owned(rows.LoadBalancer) {
		ref := rows.ParentOf(r.table, r.externalIDs())
		if router, ok := b.parent(ref); ok && !attached[ref.Name+r.uuid] {
			c := b.change(set{table: ref.Table, uuid: router.uuid, column: ref.Column})
			c.add = append(c.add, ovsdb.UUID{GoUUID: r.uuid})
		}
	}
	return nil
}
