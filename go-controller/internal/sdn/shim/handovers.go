// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"maps"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// wait is the state of an address that its desired node does not have, or has not confirmed.
type wait struct {
	// node is the desired node. since is when the address began to wait, possibly for another node.
	node  string
	since time.Time
	// until is how long nodes keep the address from the desired one by listing it although we did not assign it to them:
	// handoverTime after they were instructed to remove it. It is zero before that. expired is set once the Services were
	// applied again for this reason.
	until   time.Time
	expired bool
	// released are the nodes that have confirmed a release or did not do so in time. If one lists the address again, it is
	// not awaited again.
	released map[string]bool
}

// over reports whether what a node lists, although we did not assign it, no longer keeps the address from the desired
// node.
func (w *wait) over(node string, now time.Time) bool {
	return w.released[node] || !w.until.IsZero() && !now.Before(w.until)
}

// place records where addresses are to be. d.mu must be held.
func (d *Dataplane) place() {
	before := d.placed
	d.placed = map[netip.Addr]placed{}
	assigned := sdn.Table{}
	for key, p := range d.plans {
		for _, v := range p.VIPs {
			d.placed[v.Addr] = placed{services: append(d.placed[v.Addr].services, key)}
			// What an earlier controller has assigned is known once there is a plan: an annotation may name any shard.
			node := d.adopted[v.Shard].Active
			h, lists := d.have[node][v.Addr]
			if _, known := before[v.Addr]; lists && !known && !d.complete {
				h.Shard = v.Shard
				assigned.Add(node, h)
			}
		}
	}
	for node, held := range d.want {
		for a, h := range held {
			if at, planned := d.placed[a]; planned {
				d.placed[a] = placed{node, at.services}
				assigned.Add(node, h)
			}
		}
	}
	for node, held := range d.assigned {
		for a, h := range held {
			if d.have.Has(node, a) {
				assigned.Add(node, h)
			}
		}
	}
	d.assigned = assigned
	maps.DeleteFunc(d.waiting, func(a netip.Addr, _ *wait) bool { return d.placed[a].node == "" })
	for a := range d.placed {
		d.refresh(a)
	}
}

// refresh updates the wait of an address. d.mu must be held.
func (d *Dataplane) refresh(a netip.Addr) {
	node, w := d.placed[a].node, d.waiting[a]
	switch {
	case node == "" || d.have.Has(node, a) && d.confirmations.taken(node, a) == nil:
		delete(d.waiting, a)
	case w == nil:
		d.waiting[a] = &wait{node: node, since: time.Now()}
	case w.node != node:
		next := &wait{node: node, since: w.since}
		if q := d.confirmations.taken(w.node, a); q != nil && q.err != nil {
			next.since = time.Now() // It did not wait: the previous node had reported why it does not have it.
		}
		d.waiting[a] = next
	}
}

// stepWritten records a step that was written in a version of the Node, by whomever. d.mu must be held.
func (d *Dataplane) stepWritten(s sdn.Step, version string) {
	if version != "" {
		d.confirmations.written(s, version, d.assigned[s.Node], time.Now())
	}
	for _, a := range s.Removed {
		delete(d.assigned[s.Node], a)
		d.refresh(a)
	}
	for _, a := range s.New {
		d.refresh(a)
	}
}

// instructed records that nodes were instructed to remove what they must not have, as far as they can be written. d.mu
// must be held.
func (d *Dataplane) instructed() {
	until := time.Now().Add(handoverTime)
	for _, w := range d.waiting {
		if w.until.IsZero() {
			w.until = until
		}
	}
	d.expireLater()
}

// expireLater calls expire when the first wait is over. d.mu must be held.
func (d *Dataplane) expireLater() {
	var next time.Time
	for _, w := range d.waiting {
		if !w.expired {
			next = world.Earliest(next, w.until)
		}
	}
	switch {
	case d.ctx == nil || d.ctx.Err() != nil || next.IsZero():
	case d.expiry == nil:
		d.expiry = time.AfterFunc(time.Until(next), d.expire)
	default:
		d.expiry.Reset(time.Until(next))
	}
}

// expire has the Services applied again whose addresses can be taken because a wait is over.
func (d *Dataplane) expire() {
	d.update(func() (out answers) {
		now, waits := time.Now(), d.waits((*request).awaited)
		for a, w := range d.waiting {
			if w.expired || w.until.IsZero() || now.Before(w.until) {
				continue
			}
			w.expired = true
			if !d.have.Has(w.node, a) && !waits[a] {
				out.changed = append(out.changed, at{w.node, a})
			}
		}
		d.expireLater()
		return out
	})
}

// waits returns the addresses that another node than the desired one may still have: it lists them, or has been
// instructed to remove them with a request that counts. What we did not assign to a node counts for a limited time.
// d.mu must be held.
func (d *Dataplane) waits(counts func(*request) bool) map[netip.Addr]bool {
	out, now := map[netip.Addr]bool{}, time.Now()
	add := func(node string, a netip.Addr, assigned bool) {
		w := d.waiting[a]
		if !d.want.Has(node, a) && (assigned || w == nil || !w.over(node, now)) {
			out[a] = true
		}
	}
	for node, held := range d.have {
		for a := range held {
			add(node, a, d.assigned.Has(node, a))
		}
	}
	for node, r := range d.confirmations {
		for a, q := range r.byAddr {
			if q.release && counts(q) {
				add(node, a, q.assigned)
			}
		}
	}
	return out
}

// concerned returns the addresses of the Services that answers concern: those that are no longer pending, and those
// that must be applied again. What a node has that it must not have concerns none. d.mu must be held.
func (d *Dataplane) concerned(out answers) (confirmed, changed []netip.Addr) {
	for _, at := range out.confirmed {
		if d.refresh(at.addr); d.placed[at.addr].node == at.node {
			confirmed = append(confirmed, at.addr)
		}
	}
	for _, at := range out.changed {
		if d.refresh(at.addr); d.placed[at.addr].node == at.node {
			changed = append(changed, at.addr)
		}
	}
	for _, r := range out.released {
		if r.assigned && r.unconfirmed != "" {
			d.neglect(r)
		}
		w := d.waiting[r.addr]
		if w == nil || w.released[r.node] && !r.assigned {
			continue // Its node has it, or the release was undone: repairs are paced.
		}
		if w.released == nil {
			w.released = map[string]bool{}
		}
		w.released[r.node] = true
		changed = append(changed, r.addr)
	}
	return confirmed, changed
}

// held returns what nodes have confirmed of what is assigned to them, with the shards that we assigned: what they list
// on their own does not count. d.mu must be held.
func (d *Dataplane) held() sdn.Table {
	out, unconfirmed := sdn.Table{}, d.confirmations.unconfirmed(d.have)
	for _, t := range []sdn.Table{d.assigned, d.want} {
		for node, held := range t {
			for a, h := range held {
				if d.have.Has(node, a) && !unconfirmed.Has(node, a) {
					out.Add(node, h)
				}
			}
		}
	}
	return out
}

// Pending implements dataplane.Dataplane: a node has not confirmed yet that it has taken an address of the Service. One
// that has failed stays until it is confirmed: no status may claim in between that the address is announced.
func (d *Dataplane) Pending(key world.Key) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	var since time.Time
	p := d.plans[key]
	if p == nil {
		return since
	}
	for _, v := range p.VIPs {
		if w := d.waiting[v.Addr]; w != nil {
			since = world.Earliest(since, w.since)
		}
	}
	return since
}
