// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Bridges says which bridges each chassis has, by its name; nil while the southbound
// database can't be read. It may be called from any goroutine.
func (d *Dataplane) Bridges() map[string]world.Bridges {
	if d.sb == nil {
		return nil
	}
	_, sb, err := d.sb.current()
	if err != nil {
		return nil
	}
	all := map[string]world.Bridges{}
	sb.each(chassis, func(_ string, m model.Model) {
		if row, ok := m.(*sbdb.Chassis); ok {
			all[row.Name] = world.ParseBridges(mappings(row))
		}
	})
	return all
}

// mappings are a chassis' ovn-bridge-mappings (ovn-sb(5)): in other_config, in external_ids
// with older releases.
func mappings(row *sbdb.Chassis) string {
	const key = "ovn-bridge-mappings"
	if text, ok := row.OtherConfig[key]; ok {
		return text
	}
	return row.ExternalIDs[key]
}

// chassisNews reports chassis that come, go, or have other bridges. What else a chassis
// writes into its row is none of our business.
type chassisNews struct{ d *Dataplane }

func (c chassisNews) OnAdd(_ string, m model.Model) {
	if _, ok := m.(*sbdb.Chassis); ok {
		c.d.changed(Chassis)
	}
}

func (c chassisNews) OnUpdate(_ string, before, after model.Model) {
	was, ok := before.(*sbdb.Chassis)
	is, same := after.(*sbdb.Chassis)
	if ok && same && (was.Name != is.Name || !maps.Equal(world.ParseBridges(mappings(was)), world.ParseBridges(mappings(is)))) {
		c.d.changed(Chassis)
	}
}

func (c chassisNews) OnDelete(_ string, m model.Model) { c.OnAdd("", m) }

// handlers hand every event to each of them.
type handlers []cache.EventHandler

func (h handlers) OnAdd(table string, m model.Model) {
	for _, one := range h {
		one.OnAdd(table, m)
	}
}

func (h handlers) OnUpdate(table string, before, after model.Model) {
	for _, one := range h {
		one.OnUpdate(table, before, after)
	}
}

func (h handlers) OnDelete(table string, m model.Model) {
	for _, one := range h {
		one.OnDelete(table, m)
	}
}
