// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Carriers says for each shard that has rows which chassis has claimed it and in which
// order its gateways stand. It may be called from any goroutine.
func (d *Dataplane) Carriers() map[world.ShardID]world.Carrier {
	_, nb, err := d.nb.current()
	if err != nil {
		return nil
	}
	type member struct {
		chassis  string
		priority int
	}
	members := map[string][]member{}
	for _, r := range nb.owned(rows.HAChassis) {
		priority, _ := r.column("priority").(int)
		shard := r.externalIDs()[rows.KeyShard]
		members[shard] = append(members[shard], member{r.text("chassis_name"), priority})
	}
	claims := d.claims()
	carriers := map[world.ShardID]world.Carrier{}
	for _, r := range nb.owned(rows.Router) {
		name := r.externalIDs()[rows.KeyShard]
		id, ok := rows.ParseShard(name)
		if !ok {
			continue
		}
		gateways := members[name]
		slices.SortFunc(gateways, func(a, b member) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.chassis, b.chassis))
		})
		carrier := world.Carrier{Active: claims[rows.RedirectPort(id)]}
		for _, g := range gateways {
			carrier.Order = append(carrier.Order, g.chassis)
		}
		carriers[id] = carrier
	}
	return carriers
}

// claims are the chassis names by the redirect ports they have claimed.
func (d *Dataplane) claims() map[string]string {
	if d.sb == nil {
		return nil
	}
	_, sb, err := d.sb.current()
	if err != nil {
		return nil
	}
	names := map[string]string{}
	sb.each(chassis, func(uuid string, m model.Model) {
		if row, ok := m.(*sbdb.Chassis); ok {
			names[uuid] = row.Name
		}
	})
	claims := map[string]string{}
	sb.each(portBinding, func(_ string, m model.Model) {
		if row, ok := m.(*sbdb.PortBinding); ok && row.Chassis != nil {
			claims[row.LogicalPort] = names[*row.Chassis]
		}
	})
	return claims
}

// sightings reports changes of who carries a shard.
type sightings struct{ d *Dataplane }

func (s *sightings) OnAdd(_ string, m model.Model)       { s.seen(m) }
func (s *sightings) OnUpdate(_ string, _, m model.Model) { s.seen(m) }
func (s *sightings) OnDelete(_ string, m model.Model)    { s.seen(m) }

func (s *sightings) seen(m model.Model) {
	if port, ok := m.(*sbdb.PortBinding); ok && strings.HasPrefix(port.LogicalPort, rows.RedirectPrefix) {
		s.d.changed(Carriers)
	}
}
