// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/rowtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// translationTime is how long ovn-northd takes to translate a transaction.
	translationTime = 10 * time.Millisecond
	// settleTime is how long a claim must last before it counts as a decision of OVN, as in package ovn.
	settleTime = 3 * time.Second
)

// Zone is a northbound and a southbound database. Its fields are protected by the mutex of its Fabric.
type Zone struct {
	fabric *Fabric
	// node is empty for the databases of the whole cluster.
	node string
	// rows are ours in the northbound database, translated those that ovn-northd has last read.
	rows, translated map[rows.Ref]rows.Row
	// written is the number of the last transaction, seen that of the last one in translated.
	written, seen uint64
	// advanced is when ovn-northd translated something last.
	advanced   time.Time
	northdDown bool
	noNB, noSB bool
	// claims are those in the southbound database.
	claims    map[world.ShardID]claim
	connected map[*Dataplane]bool
	writes    []string
}

// claim is the chassis that has claimed a shard, and since when.
type claim struct {
	chassis string
	since   time.Time
}

// SetNorthd starts or stops ovn-northd.
func (z *Zone) SetNorthd(up bool) {
	z.do(func() []func() {
		z.northdDown = !up
		return z.translate()
	})
}

// SetReachable makes the two databases reachable or not.
func (z *Zone) SetReachable(nb, sb bool) {
	z.do(func() []func() {
		gotNB, gotSB := nb && z.noNB, sb && z.noSB
		lost := !nb && !z.noNB || !sb && !z.noSB
		z.noNB, z.noSB = !nb, !sb
		var calls []func()
		for d := range z.connected {
			calls = append(calls, d.reconnected(gotNB, gotSB, lost)...)
		}
		return calls
	})
}

// Remove deletes the rows whose text contains all words, as another client of the database, and returns how many these
// were.
func (z *Zone) Remove(words ...string) int {
	removed := 0
	z.do(func() []func() {
		for ref, row := range z.rows {
			if containsAll(rowtest.Line(row), words) {
				delete(z.rows, ref)
				removed++
			}
		}
		z.written++
		z.translateLater()
		return z.notify(ovn.Rows)
	})
	return removed
}

// Rows returns the rows in the northbound database whose text contains all words, one per line.
func (z *Zone) Rows(words ...string) []string {
	z.fabric.mu.Lock()
	defer z.fabric.mu.Unlock()
	var out []string
	for _, ref := range slices.SortedFunc(maps.Keys(z.rows), compareRefs) {
		if line := rowtest.Line(z.rows[ref]); containsAll(line, words) {
			out = append(out, line)
		}
	}
	return out
}

// TakeWrites returns the changes of rows that processes have written since the last call.
func (z *Zone) TakeWrites() []string {
	z.fabric.mu.Lock()
	defer z.fabric.mu.Unlock()
	writes := z.writes
	z.writes = nil
	return writes
}

// Shards describes the shards in the databases, one per line: the gateways by descending priority, and the chassis that
// has claimed it.
func (z *Zone) Shards() []string {
	z.fabric.mu.Lock()
	defer z.fabric.mu.Unlock()
	var out []string
	states := z.shardStates()
	for _, id := range slices.SortedFunc(maps.Keys(states), world.ShardID.Compare) {
		out = append(out, fmt.Sprintf("%s order %s claimed by %s", id.Name(), strings.Join(states[id].Order, " "),
			cmp.Or(states[id].Active, "none")))
	}
	return out
}

// do changes the zone and performs the calls that this returns.
func (z *Zone) do(change func() []func()) {
	z.fabric.mu.Lock()
	calls := change()
	z.fabric.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// notify returns the calls that report an event to all connected processes.
func (z *Zone) notify(event ovn.EventKind) []func() {
	var calls []func()
	for d := range z.connected {
		calls = append(calls, func() { d.options.Changed(event) })
	}
	return calls
}

// translateLater has ovn-northd translate what was written.
func (z *Zone) translateLater() {
	time.AfterFunc(translationTime, func() { z.do(z.translate) })
}

// translate makes what was written take effect, and returns the calls that report it.
func (z *Zone) translate() []func() {
	if z.northdDown || z.seen == z.written {
		return nil
	}
	z.translated, z.seen, z.advanced = maps.Clone(z.rows), z.written, time.Now()
	calls := z.decideClaims()
	for d := range z.connected {
		if done := d.takeTranslated(); len(done) > 0 {
			calls = append(calls, func() { d.options.Translated(done) })
		}
	}
	return calls
}

// decideClaims has the chassis claim and release shards, and returns the calls that report it.
func (z *Zone) decideClaims() []func() {
	changed := false
	shards := shardsOf(z.translated)
	for id := range z.claims {
		if !slices.Contains(shards, id) {
			delete(z.claims, id)
			changed = true
		}
	}
	for _, id := range shards {
		best := ""
		for _, m := range membersOf(z.translated, id) {
			if c := z.fabric.chassis[m.chassis]; c != nil && c.alive && m.priority >= rows.SteppedDown {
				best = m.chassis
				break
			}
		}
		if z.node != "" && (best == "" || z.fabric.chassis[best].node != z.node) {
			if own := z.ownChassis(); own != "" && z.fabric.chassis[own].alive {
				_, had := z.claims[id]
				delete(z.claims, id)
				changed = changed || had
			}
			continue // the claim of another zone, or of a chassis that can't release it
		}
		if best != "" && z.claims[id].chassis != best {
			z.claims[id] = claim{best, time.Now()}
			changed = true
		}
	}
	if !changed || z.noSB {
		return nil
	}
	time.AfterFunc(settleTime, func() {
		z.do(func() []func() { return z.notify(ovn.ShardStates) })
	})
	return z.notify(ovn.ShardStates)
}

// ownChassis returns the chassis of the zone's node, or an empty string.
func (z *Zone) ownChassis() string {
	for name, c := range z.fabric.chassis {
		if c.node == z.node {
			return name
		}
	}
	return ""
}

// shardStates returns the state of each shard in the databases.
func (z *Zone) shardStates() map[world.ShardID]world.ShardState {
	states := map[world.ShardID]world.ShardState{}
	for _, id := range shardsOf(z.rows) {
		claim := z.claims[id]
		state := world.ShardState{Active: claim.chassis}
		for _, m := range membersOf(z.rows, id) {
			state.Order = append(state.Order, m.chassis)
		}
		for _, r := range z.rows {
			if millis, ok := r.Columns["min_tx"].(*int); ok && r.Table == rows.BFD &&
				r.ExternalIDs()[rows.KeyShard] == id.Name() {
				state.Handover = rows.HandoverOf(*millis)
			}
		}
		states[id] = state
	}
	return states
}

// shardsOf returns the shards that have a router of their own.
func shardsOf(all map[rows.Ref]rows.Row) []world.ShardID {
	var out []world.ShardID
	for _, r := range all {
		if id, ok := world.ParseShard(r.ExternalIDs()[rows.KeyShard]); ok && r.Table == rows.Router &&
			r.Name() == rows.RouterName(id) {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, world.ShardID.Compare)
	return out
}

// member is a member of the HA chassis group of a shard.
type member struct {
	chassis  string
	priority int
}

// membersOf returns the members of a shard's HA chassis group by descending priority.
func membersOf(all map[rows.Ref]rows.Row, id world.ShardID) []member {
	var out []member
	for _, r := range all {
		if r.Table != rows.HAChassis || r.ExternalIDs()[rows.KeyShard] != id.Name() {
			continue
		}
		name, _ := r.Columns["chassis_name"].(string)
		priority, _ := r.Columns["priority"].(int)
		out = append(out, member{name, priority})
	}
	slices.SortFunc(out, func(a, b member) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.chassis, b.chassis))
	})
	return out
}

// ordinals returns the numbers that the routers of shards have in the database.
func (z *Zone) ordinals() map[world.ShardID]int {
	out := map[world.ShardID]int{}
	for _, r := range z.rows {
		id, ok := world.ParseShard(r.ExternalIDs()[rows.KeyShard])
		if n, err := strconv.Atoi(r.ExternalIDs()[rows.KeyOrdinal]); ok && err == nil && r.Table == rows.Router {
			out[id] = n
		}
	}
	return out
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

func compareRefs(a, b rows.Ref) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.ID, b.ID))
}
