// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// revisions tracks up to which of our transactions ovn-northd has translated the northbound database. Each transaction
// writes its number (rows.Revision); it is translated once the southbound database has that number or a higher one.
// It handles the events of the southbound database.
type revisions struct {
	// translated receives the Services whose rows ovn-northd has translated. It must not block.
	translated func([]world.Key)

	mu sync.Mutex
	// written is the number of the last transaction that is known to have taken effect, and seen the southbound one.
	written, seen uint64
	// advanced is when the southbound number rose last.
	advanced time.Time
	pending  map[world.Key]pendingRevision
}

// pendingRevision is the transaction that a Service waits for, and since when it has been waiting for any.
type pendingRevision struct {
	number uint64
	since  time.Time
}

// revisionOf returns the number in the northbound database.
func revisionOf(v view) uint64 {
	r, ok := v.row(rows.AddressSet, rows.Revision(0).ID)
	if !ok {
		return 0
	}
	return rows.ParseRevision(r.strings("addresses"))
}

// next returns the number of the next transaction, which is higher than any that either database has.
func (r *revisions) next(v view) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.written, r.seen, revisionOf(v)) + 1
}

// record records that a transaction has taken effect.
func (r *revisions) record(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = max(r.written, number)
}

// lost reports whether another client has deleted the number, or has written a lower one. What an earlier version of
// this project has written has no number.
func (r *revisions) lost(v view) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return revisionOf(v) < r.written
}

// await records which Services wait for the transactions up to now. A Service that failed waits for nothing.
func (r *revisions) await(v view, changes []dataplane.Change, failed map[world.Key]error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = max(r.written, revisionOf(v))
	for _, c := range changes {
		if c.Want == nil || failed[c.Key] != nil || r.seen >= r.written {
			delete(r.pending, c.Key)
			continue
		}
		r.wait(c.Key, now)
	}
}

// wait records that a Service waits for the transactions up to now. r.mu must be held.
func (r *revisions) wait(key world.Key, now time.Time) {
	if r.pending == nil {
		r.pending = map[world.Key]pendingRevision{}
	}
	since := now
	if before, waits := r.pending[key]; waits {
		since = before.since
	}
	r.pending[key] = pendingRevision{r.written, since}
}

// stalled returns since when ovn-northd has translated nothing although a Service waits, the zero time if none waits. A
// Service that changes again and again may always wait although each of its transactions is translated.
func (r *revisions) stalled() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Time
	for _, p := range r.pending {
		oldest = world.Earliest(oldest, p.since)
	}
	if !oldest.IsZero() && r.advanced.After(oldest) {
		return r.advanced
	}
	return oldest
}

func (r *revisions) OnAdd(_ string, m model.Model)       { r.observe(m) }
func (r *revisions) OnUpdate(_ string, _, m model.Model) { r.observe(m) }
func (r *revisions) OnDelete(_ string, m model.Model) {
	if _, ok := m.(*sbdb.AddressSet); ok {
		r.observe(&sbdb.AddressSet{})
	}
}

// observe records the number in the southbound database.
func (r *revisions) observe(m model.Model) {
	row, ok := m.(*sbdb.AddressSet)
	if !ok {
		return
	}
	number := rows.ParseRevision(row.Addresses)
	r.mu.Lock()
	if number > r.seen {
		r.advanced = time.Now()
	}
	r.seen = number
	r.mu.Unlock()
	r.settle(number)
}

// settle ends the wait of the Services that wait for no transaction after a number.
func (r *revisions) settle(number uint64) {
	r.mu.Lock()
	var done []world.Key
	for key, p := range r.pending {
		if p.number <= number {
			done = append(done, key)
			delete(r.pending, key)
		}
	}
	r.mu.Unlock()
	if len(done) > 0 {
		slices.SortFunc(done, world.Key.Compare)
		r.translated(done)
	}
}

// reset discards the southbound number, before the database is read again.
func (r *revisions) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = 0
}

// Pending implements dataplane.Dataplane: ovn-northd has not translated the rows of the Service yet. Without a
// southbound database no Service is pending.
func (d *Dataplane) Pending(key world.Key) time.Time {
	d.revisions.mu.Lock()
	defer d.revisions.mu.Unlock()
	return d.revisions.pending[key].since
}

// Stalled returns since when ovn-northd has translated nothing although a Service is pending, the zero time if none is.
// It may be called from any goroutine.
func (d *Dataplane) Stalled() time.Time { return d.revisions.stalled() }

// numbers reports whether transactions are numbered: as long as shards have addresses.
func (d *Dataplane) numbers(builder *rows.Builder) bool { return builder != nil && builder.HasShards() }

// restoreRevision has the number written again if another client has deleted or lowered it.
func (d *Dataplane) restoreRevision(b *batch) error {
	b.renumber = b.renumber || d.revisions.lost(b.view)
	return nil
}

// raised reports whether an update of a row raised the number of the last transaction and changed nothing else, as each
// of our transactions does.
func raised(before model.Model, after *nbdb.AddressSet) bool {
	old, ok := before.(*nbdb.AddressSet)
	return ok && old.Name == rows.RevisionSet && old.Name == after.Name &&
		maps.Equal(old.ExternalIDs, after.ExternalIDs) &&
		rows.ParseRevision(after.Addresses) > rows.ParseRevision(old.Addresses)
}
