// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

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
	handovers := map[string]world.Handover{}
	for _, r := range nb.owned(rows.BFD) {
		if millis, _ := r.column("min_tx").(*int); millis != nil {
			handovers[r.externalIDs()[rows.KeyShard]] = rows.HandoverOf(*millis)
		}
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
		port := rows.RedirectPort(id)
		carrier := world.Carrier{Active: claims[port], Settled: claims[port] != "" && d.sightings.settled(port), Handover: handovers[name]}
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

// settleTime is how long a claim must stand to count as a decision of OVN's. A gateway that
// returns claims shards for a moment, until it hears all others again: BFD sessions start
// with a packet a second (RFC 5880 section 6.8.3), and come up one after the other.
const settleTime = 3 * time.Second

// sightings reports changes of who carries a shard, once when they happen and once when
// they have settled.
type sightings struct {
	d      *Dataplane
	settle time.Duration

	mu     sync.Mutex
	claims map[string]sighting // by redirect port
}

// sighting is a claim and since when it stands.
type sighting struct {
	chassis string // UUID of the chassis' row
	since   time.Time
}

func (s *sightings) OnAdd(_ string, m model.Model)       { s.seen(m, false) }
func (s *sightings) OnUpdate(_ string, _, m model.Model) { s.seen(m, false) }
func (s *sightings) OnDelete(_ string, m model.Model)    { s.seen(m, true) }

func (s *sightings) seen(m model.Model, gone bool) {
	port, ok := m.(*sbdb.PortBinding)
	if !ok || !strings.HasPrefix(port.LogicalPort, rows.RedirectPrefix) {
		return
	}
	s.mu.Lock()
	last, known := s.claims[port.LogicalPort]
	switch {
	case gone || port.Chassis == nil:
		delete(s.claims, port.LogicalPort)
	case !known || last.chassis != *port.Chassis:
		s.claims[port.LogicalPort] = sighting{*port.Chassis, time.Now()}
		time.AfterFunc(s.settle, func() { s.d.changed(Carriers) })
	}
	s.mu.Unlock()
	s.d.changed(Carriers)
}

// forget is for a new connection: how long the claims that it finds have stood is not known.
func (s *sightings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.claims)
}

// settled tells whether the claim on a port has stood long enough.
func (s *sightings) settled(port string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	claim, ok := s.claims[port]
	return ok && time.Since(claim.since) >= s.settle
}
