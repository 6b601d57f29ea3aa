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

// ShardStates returns, for each shard that has rows, the chassis that has claimed it and its gateways by descending
// priority. The result is nil while the northbound database can't be read. claimsRead is false while the southbound one
// can't: no chassis has claimed a shard in the result then, but that says nothing. It may be called from any goroutine.
func (d *Dataplane) ShardStates() (shardStates map[world.ShardID]world.ShardState, claimsRead bool) {
	_, nb, err := d.nb.current()
	if err != nil {
		return nil, false
	}
	type member struct {
		chassis  string
		priority int
	}
	members := map[string][]member{}
	for _, r := range nb.owned(rows.HAChassis) {
		priority, _ := r.column("priority").(int)
		shard := r.externalIDs()[rows.KeyShard]
		members[shard] = append(members[shard], member{r.string("chassis_name"), priority})
	}
	handovers := map[string]world.Handover{}
	for _, r := range nb.owned(rows.BFD) {
		if millis, _ := r.column("min_tx").(*int); millis != nil {
			handovers[r.externalIDs()[rows.KeyShard]] = rows.HandoverOf(*millis)
		}
	}
	claims, claimsRead := d.claims()
	shardStates = map[world.ShardID]world.ShardState{}
	for _, r := range nb.owned(rows.Router) {
		name := r.externalIDs()[rows.KeyShard]
		id, ok := world.ParseShard(name)
		if !ok {
			continue
		}
		gateways := members[name]
		slices.SortFunc(gateways, func(a, b member) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.chassis, b.chassis))
		})
		port := rows.RedirectPort(id)
		state := world.ShardState{Active: claims[port], Settled: claims[port] != "" && d.claimObserver.isSettled(port),
			Handover: handovers[name]}
		for _, g := range gateways {
			state.Order = append(state.Order, g.chassis)
		}
		shardStates[id] = state
	}
	return shardStates, claimsRead
}

// claims returns the names of the chassis that have claimed the redirect ports, by port, and whether they could be
// read. Without a southbound database there are none.
func (d *Dataplane) claims() (claims map[string]string, read bool) {
	if d.sb == nil {
		return nil, true
	}
	_, sb, err := d.sb.current()
	if err != nil {
		return nil, false
	}
	names := map[string]string{}
	sb.each(chassis, func(uuid string, m model.Model) {
		if row, ok := m.(*sbdb.Chassis); ok {
			names[uuid] = row.Name
		}
	})
	claims = map[string]string{}
	sb.each(portBinding, func(_ string, m model.Model) {
		if row, ok := m.(*sbdb.PortBinding); ok && row.Chassis != nil {
			claims[row.LogicalPort] = names[*row.Chassis]
		}
	})
	return claims, true
}

// settleTime is how long a claim must last before it counts as a decision of OVN. A gateway that returns claims
// shards briefly, until it receives BFD packets from all other gateways again. BFD sessions start at one packet per
// second (RFC 5880 section 6.8.3) and come up one after the other.
const settleTime = 3 * time.Second

// claimObserver reports changes of the chassis that has claimed a shard, once when they happen and once when they have
// settled.
type claimObserver struct {
	d      *Dataplane
	settle time.Duration

	mu     sync.Mutex
	claims map[string]observedClaim // by redirect port
}

// observedClaim is a claim and the time since which it has existed.
type observedClaim struct {
	chassis string // UUID of the Chassis row
	since   time.Time
}

func (o *claimObserver) OnAdd(_ string, m model.Model)       { o.observe(m, false) }
func (o *claimObserver) OnUpdate(_ string, _, m model.Model) { o.observe(m, false) }
func (o *claimObserver) OnDelete(_ string, m model.Model)    { o.observe(m, true) }

func (o *claimObserver) observe(m model.Model, gone bool) {
	port, ok := m.(*sbdb.PortBinding)
	if !ok || !strings.HasPrefix(port.LogicalPort, rows.RedirectPrefix) {
		return
	}
	o.mu.Lock()
	last, known := o.claims[port.LogicalPort]
	switch {
	case gone || port.Chassis == nil:
		delete(o.claims, port.LogicalPort)
	case !known || last.chassis != *port.Chassis:
		o.claims[port.LogicalPort] = observedClaim{*port.Chassis, time.Now()}
		time.AfterFunc(o.settle, func() { o.d.changed(ShardStates) })
	}
	o.mu.Unlock()
	o.d.changed(ShardStates)
}

// reset discards all claims. On a new connection it is unknown how long the existing claims have lasted.
func (o *claimObserver) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.claims)
}

// isSettled reports whether the claim on a port has lasted for the settle time.
func (o *claimObserver) isSettled(port string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	claim, ok := o.claims[port]
	return ok && time.Since(claim.since) >= o.settle
}
