// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"errors"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var errNoGround = errors.New("shards are not configured yet")

// service are the changes of a Service's load balancers and of the ACLs before them.
func (d *Dataplane) service(key world.Key) unit {
	return func(b *batch) error {
		var have []record
		for _, table := range serviceTables() {
			have = append(have, b.view.withID(table, rows.KeyService, key.String())...)
		}
		p := d.want.plans[key]
		if p == nil {
			return b.reconcile(have, nil)
		}
		if d.ground == nil {
			return errNoGround
		}
		vips := make(map[string]map[string]string, len(have))
		for _, r := range have {
			vips[r.externalIDs()[rows.KeyPrimaryID]], _ = r.column("vips").(map[string]string)
		}
		wants, err := d.ground.Service(p, func(id string) map[string]string { return vips[id] })
		if err != nil {
			return err
		}
		return b.reconcile(have, wants)
	}
}

// staleServices are the changes that remove rows of Services nobody keeps, and doubles of
// others'.
func (d *Dataplane) staleServices(v view, keep func(world.Key) bool) []unit {
	var units []unit
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
			units = append(units, removeAll([]record{r}))
		} else if seen[id] && d.want.plans[key] != nil {
			units = append(units, d.service(key))
		}
		seen[id] = true
	}
	return units
}

// attachAll is the change that puts load balancers back on their routers. Apply believes a
// row's own word for where it is.
func attachAll(b *batch) error {
	held := map[string]bool{}
	for _, router := range b.view.owned(rows.Router) {
		for _, uuid := range router.texts("load_balancer") {
			held[router.text("name")+uuid] = true
		}
	}
	for _, r := range b.view.owned(rows.LoadBalancer) {
		home := rows.Home(r.table, r.externalIDs())
		if router, ok := b.home(home); ok && !held[home.Name+r.uuid] {
			c := b.change(set{home.Table, router.uuid, home.Column})
			c.add = append(c.add, ovsdb.UUID{GoUUID: r.uuid})
		}
	}
	return nil
}
