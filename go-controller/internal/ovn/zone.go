// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
)

// checkZone returns an error if the northbound database is that of another zone. OVN-Kubernetes stores the name of the
// zone in it: that of the node with interconnect, or "global".
func (d *Dataplane) checkZone(v view) error {
	if d.zone == "" {
		return nil
	}
	name := ""
	v.each(nbGlobal, func(_ string, m model.Model) {
		if global, ok := m.(*nbdb.NBGlobal); ok {
			name = global.Options["name"]
		}
	})
	if name != "" && name != d.zone {
		return fmt.Errorf("the northbound database is that of zone %q (options:name of NB_Global), not that of node %s",
			name, d.zone)
	}
	return nil
}

// OwnsZone reports whether the northbound database names the node as its zone, which needs no Node object. It returns
// false if the database can't be read. It may be called from any goroutine.
func (d *Dataplane) OwnsZone() bool {
	_, v, err := d.nb.current()
	return err == nil && d.ownsZone(v)
}

// ownsZone reports whether the database names the zone of the node, as OVN-Kubernetes sets it with interconnect. A
// database of the whole cluster has another name.
func (d *Dataplane) ownsZone(v view) bool {
	owns := false
	v.each(nbGlobal, func(_ string, m model.Model) {
		global, ok := m.(*nbdb.NBGlobal)
		owns = owns || ok && global.Name == d.zone
	})
	return owns && d.zone != ""
}

// LacksTransit reports whether OVN-Kubernetes has configured the node of the zone without a port on a transit switch,
// by which OVN reaches other nodes. It returns false if the database can't be read. It may be called from any
// goroutine.
func (d *Dataplane) LacksTransit() bool {
	_, v, err := d.nb.current()
	if err != nil {
		return false
	}
	f := facts(v)
	node := f.Nodes[d.zone]
	return len(f.Join) > 0 && len(node.Subnets) > 0 && len(node.Transit) == 0
}
