// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Bridges returns the bridges of each chassis, by chassis name. It returns nil while the southbound database can't be
// read. It may be called from any goroutine.
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

// mappings returns the ovn-bridge-mappings of a chassis (ovn-sb(5)). They are in other_config, or in external_ids
// with older releases.
func mappings(row *sbdb.Chassis) string {
	const key = "ovn-bridge-mappings"
	if text, ok := row.OtherConfig[key]; ok {
		return text
	}
	return row.ExternalIDs[key]
}

// chassisEvents reports when a chassis is added or removed, or when its bridges change. Other changes to the row are
// ignored.
type chassisEvents struct{ d *Dataplane }

func (c chassisEvents) OnAdd(_ string, m model.Model) {
	if _, ok := m.(*sbdb.Chassis); ok {
		c.d.changed(Chassis)
	}
}

func (c chassisEvents) OnUpdate(_ string, before, after model.Model) {
	was, ok := before.(*sbdb.Chassis)
	is, same := after.(*sbdb.Chassis)
	if ok && same && (was.Name != is.Name || !maps.Equal(world.ParseBridges(mappings(was)),
		world.ParseBridges(mappings(is)))) {
		c.d.changed(Chassis)
	}
}

func (c chassisEvents) OnDelete(_ string, m model.Model) { c.OnAdd("", m) }

// handlers passes every event to each of its elements.
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
