// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/rowtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Configure implements dataplane.Dataplane.
func (d *Dataplane) Configure(_ context.Context, topology *plan.Topology) (err error) {
	d.zone.do(func() []func() {
		if d.zone.noNB {
			err = errNotConnected
			return nil
		}
		if d.builder, err = rows.NewBuilder(topology, d.zone.facts()); err != nil {
			return nil
		}
		wants := map[rows.Ref]rows.Row{}
		d.builder.SetEgress(d.egress())
		d.builder.SetRestricted(&d.restricted)
		domains, shards := d.builder.TopologyRows()
		for _, part := range append(domains, shards...) {
			add(wants, part)
		}
		have := d.zone.selected(func(r rows.Row) bool {
			owner := r.ExternalIDs()[rows.KeyOwnerType]
			return owner != rows.OwnerService && owner != rows.OwnerNode
		})
		for _, p := range d.plans { // ACLs are deleted together with their switch
			add(wants, d.builder.ACLs(p))
		}
		for ref, r := range d.nodeRows() {
			wants[ref] = r
		}
		var calls []func()
		calls, err = d.commit(wants, have)
		if left := d.unnumbered(nil); err == nil && left != nil {
			err = left
		}
		return calls
	})
	if err != nil {
		return fmt.Errorf("configure shards: %w", err)
	}
	return nil
}

// unnumbered returns an error for the shards of a plan, or all shards, that have no number.
func (d *Dataplane) unnumbered(p *plan.Service) error {
	left := dataplane.ShardsError{}
	for _, id := range d.builder.ShardsWithoutOrdinal() {
		if p == nil || slices.ContainsFunc(p.VIPs, func(v plan.VIP) bool { return v.Shard == id }) {
			left[id] = rows.NoOrdinalReason()
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left
}

// Apply implements dataplane.Dataplane.
func (d *Dataplane) Apply(_ context.Context, changes []dataplane.Change) map[world.Key]error {
	failed := map[world.Key]error{}
	d.zone.do(func() []func() {
		wants, have := map[rows.Ref]rows.Row{}, map[rows.Ref]rows.Row{}
		for _, c := range changes {
			for _, other := range d.restricted.Replace(d.plans[c.Key], c.Want) {
				d.admitting[other] = true
			}
			if d.plans[c.Key] = c.Want; c.Want == nil {
				delete(d.plans, c.Key)
			}
		}
		d.addAdmitting(wants, have)
		for _, c := range changes {
			own := d.zone.selected(func(r rows.Row) bool { return r.ExternalIDs()[rows.KeyService] == c.Key.String() })
			maps.Copy(have, own)
			if err := d.serviceRows(c.Want, own, wants); err != nil {
				failed[c.Key] = fmt.Errorf("write load balancers: %w", err)
				maps.Copy(wants, own) // they stay
			}
		}
		d.checkComplete()
		if d.builder != nil {
			d.builder.SetEgress(d.egress())
			add(wants, d.builder.LocalnetRows())
			maps.Copy(wants, d.nodeRows())
			if d.complete {
				maps.Copy(have, d.zone.selected(isNodeRow))
			}
		}
		calls, err := d.commit(wants, have)
		if err == nil {
			clear(d.admitting)
		}
		for _, c := range changes {
			switch {
			case err != nil:
				failed[c.Key] = fmt.Errorf("write load balancers: %w", err)
			case failed[c.Key] == nil:
				d.await(c)
			}
		}
		return calls
	})
	return failed
}

// addAdmitting adds the ACLs of Services that change because of others.
func (d *Dataplane) addAdmitting(wants, have map[rows.Ref]rows.Row) {
	for key := range d.admitting {
		if p := d.plans[key]; p != nil && d.builder != nil {
			maps.Copy(have, d.zone.selected(func(r rows.Row) bool {
				return r.Table == rows.ACL && r.ExternalIDs()[rows.KeyService] == key.String()
			}))
			add(wants, d.builder.ACLs(p))
		}
	}
}

// serviceRows adds the rows of a plan. own are those that its Service has.
func (d *Dataplane) serviceRows(p *plan.Service, own, wants map[rows.Ref]rows.Row) error {
	if p == nil {
		return nil
	}
	if d.builder == nil {
		return fmt.Errorf("shards are not configured yet")
	}
	all, err := d.builder.Service(p, func(id string) map[string]string {
		vips, _ := own[rows.Ref{Table: rows.LoadBalancer, ID: id}].Columns["vips"].(map[string]string)
		return vips
	})
	if err != nil {
		return err
	}
	add(wants, all)
	return d.unnumbered(p)
}

// await records that a Service waits for the last transaction.
func (d *Dataplane) await(c dataplane.Change) {
	if c.Want == nil || d.zone.seen >= d.zone.written {
		delete(d.pending, c.Key)
		return
	}
	since := time.Now()
	if before, waits := d.pending[c.Key]; waits {
		since = before.since
	}
	d.pending[c.Key] = pending{d.zone.written, since}
}

// kept calls keep for the Services that the zone has, and returns the answers. Those that it gets meanwhile are kept.
// The caller's lock, which keep needs, may be held while Pending waits for that of the fabric.
func (d *Dataplane) kept(keep func(world.Key) bool) func(world.Key) bool {
	answers := map[world.Key]bool{}
	d.locked(func() {
		for key := range d.plans {
			answers[key] = true
		}
		for _, r := range d.zone.rows {
			if key, ok := parseKey(r.ExternalIDs()[rows.KeyService]); ok {
				answers[key] = true
			}
		}
	})
	for key := range answers {
		answers[key] = keep(key)
	}
	return func(key world.Key) bool {
		answer, known := answers[key]
		return answer || !known
	}
}

// Prune implements dataplane.Dataplane.
func (d *Dataplane) Prune(_ context.Context, keep func(world.Key) bool) (err error) {
	keep = d.kept(keep)
	d.zone.do(func() []func() {
		maps.DeleteFunc(d.plans, func(key world.Key, p *plan.Service) bool {
			if !keep(key) {
				d.restricted.Replace(p, nil)
			}
			return !keep(key)
		})
		gone := d.zone.selected(func(r rows.Row) bool {
			key, ok := parseKey(r.ExternalIDs()[rows.KeyService])
			return r.ExternalIDs()[rows.KeyOwnerType] == rows.OwnerService && (!ok || !keep(key))
		})
		d.complete = d.complete || d.builder != nil
		wants := map[rows.Ref]rows.Row{}
		if d.complete {
			wants = d.nodeRows()
			d.builder.SetEgress(d.egress())
			add(wants, d.builder.LocalnetRows())
			maps.Copy(gone, d.zone.selected(isNodeRow))
		}
		var calls []func()
		calls, err = d.commit(wants, gone)
		return calls
	})
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	return nil
}

// egress returns the hosts that translate addresses. Services without a plan keep what they have as long as some plans
// may be missing.
func (d *Dataplane) egress() rows.Egress {
	had := map[string][]string{}
	for _, r := range d.zone.rows {
		if domain, ok := plan.DomainOfLocalnetPort(r.Name()); ok && !d.complete {
			had[domain], _ = r.Columns["addresses"].([]string)
		}
	}
	return rows.EgressOf(maps.Values(d.plans), had)
}

// checkComplete checks whether each Service in the database has a plan here.
func (d *Dataplane) checkComplete() {
	known := true
	for _, r := range d.zone.rows {
		if key, ok := parseKey(r.ExternalIDs()[rows.KeyService]); ok && r.Table == rows.LoadBalancer {
			known = known && d.plans[key] != nil
		}
	}
	d.complete = d.complete || known && d.builder != nil
}

func isNodeRow(r rows.Row) bool { return r.ExternalIDs()[rows.KeyOwnerType] == rows.OwnerNode }

// nodeRows returns the rows of the nodes that have backends.
func (d *Dataplane) nodeRows() map[rows.Ref]rows.Row {
	backends := map[string][]rows.ShardBackend{}
	for _, key := range slices.SortedFunc(maps.Keys(d.plans), world.Key.Compare) {
		rows.ForEachBackend(d.plans[key], func(node string, b rows.ShardBackend) {
			backends[node] = append(backends[node], b)
		})
	}
	out := map[rows.Ref]rows.Row{}
	for _, node := range slices.Sorted(maps.Keys(backends)) {
		add(out, d.builder.NodeRows(node, backends[node], func(id string) map[string]string {
			if d.complete {
				return nil
			}
			vips, _ := d.zone.rows[rows.Ref{Table: rows.LoadBalancer, ID: id}].Columns["vips"].(map[string]string)
			return vips
		}))
	}
	return out
}

func add(all map[rows.Ref]rows.Row, some []rows.Row) {
	for _, r := range some {
		all[rows.Ref{Table: r.Table, ID: r.ID}] = r
	}
}

// selected returns the rows that we own and for which keep returns true.
func (z *Zone) selected(keep func(rows.Row) bool) map[rows.Ref]rows.Row {
	out := map[rows.Ref]rows.Row{}
	for ref, r := range z.rows {
		if isOwned(ref, r) && keep(r) {
			out[ref] = r
		}
	}
	return out
}

// isOwned reports whether the external_ids of a row name us as the owner, as package ovn recognizes it.
func isOwned(ref rows.Ref, r rows.Row) bool {
	ids := r.ExternalIDs()
	return ids[rows.KeyController] == rows.Controller && ids[rows.KeyPrimaryID] == ref.ID
}

// put writes a row, or deletes it if it is nil.
func (z *Zone) put(ref rows.Ref, r *rows.Row) {
	old, had := z.rows[ref]
	switch {
	case r == nil:
		delete(z.rows, ref)
		z.writes = append(z.writes, "delete "+rowtest.Line(old))
		return
	case had:
		z.writes = append(z.writes, "update "+rowtest.Line(*r))
	default:
		z.writes = append(z.writes, "insert "+rowtest.Line(*r))
	}
	z.rows[ref] = *r
}

// commit writes the rows in wants that differ, deletes those in have that are not wanted, and returns the calls that
// report it.
func (d *Dataplane) commit(wants, have map[rows.Ref]rows.Row) ([]func(), error) {
	z := d.zone
	if z.noNB || d.cut {
		return nil, errNotConnected
	}
	var changed []rows.Ref
	for ref, r := range wants {
		if old, exists := z.rows[ref]; !exists || !equal(old, r) {
			changed = append(changed, ref)
		}
	}
	for ref := range have {
		if _, wanted := wants[ref]; !wanted {
			changed = append(changed, ref)
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	if err := d.options.Fence(); err != nil {
		return nil, err
	}
	slices.SortFunc(changed, compareRefs)
	reordered := false
	for _, ref := range changed {
		r, wanted := wants[ref]
		if wanted {
			z.put(ref, &r)
		} else {
			z.put(ref, nil)
		}
		reordered = reordered || ref.Table == rows.HAChassis
	}
	z.written++
	z.translateLater()
	calls := []func(){func() { d.options.Transacted(nil) }}
	if reordered {
		calls = append(calls, z.notify(ovn.ShardStates)...)
	}
	return calls, nil
}

// equal reports whether two rows are equal, including their owner.
func equal(a, b rows.Row) bool {
	return rowtest.Line(a) == rowtest.Line(b) && maps.Equal(a.ExternalIDs(), b.ExternalIDs())
}
