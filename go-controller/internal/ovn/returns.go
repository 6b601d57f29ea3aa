// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// policy are the changes of the policy of a way back whose backends are there.
func (d *Dataplane) policy(r rows.Return) unit {
	return func(b *batch) error {
		want, ok := d.ground.Policy(r)
		if _, exists := b.view.row(rows.AddressSet, r.ID()); !ok || !exists {
			return nil
		}
		return b.ensure(want)
	}
}

// wayBack are the changes of a way back that concern some backends.
func (d *Dataplane) wayBack(r rows.Return, addrs map[netip.Addr]bool) unit {
	return func(b *batch) error {
		uses := d.want.uses[r]
		have, ok := b.view.row(rows.AddressSet, r.ID())
		if len(uses) == 0 || !ok || d.ground == nil {
			return d.exactWayBack(r, d.complete)(b)
		}
		if err := d.policy(r)(b); err != nil {
			return err
		}
		missing, stale := map[string]bool{}, map[string]bool{}
		for a := range addrs {
			if uses[a] > 0 {
				missing[a.String()] = true
			} else if d.complete {
				stale[a.String()] = true
			}
		}
		var drop []string
		for _, a := range have.texts("addresses") {
			delete(missing, a)
			if stale[a] {
				drop = append(drop, a)
			}
		}
		b.edit(set{have.table, have.uuid, "addresses"}, missing, drop)
		return nil
	}
}

// exactWayBack are the changes that make a way back hold what is used and no more.
func (d *Dataplane) exactWayBack(r rows.Return, mayRemove bool) unit {
	return func(b *batch) error {
		if uses := d.want.uses[r]; len(uses) > 0 {
			if d.ground == nil {
				return errNoGround
			}
			wants := []rows.Row{r.AddressSet(slices.Collect(maps.Keys(uses)))}
			if policy, ok := d.ground.Policy(r); ok {
				wants = append(wants, policy)
			}
			return ensureAll(wants)(b)
		}
		if !mayRemove {
			return nil
		}
		for _, table := range []string{rows.Policy, rows.AddressSet} {
			for _, have := range b.view.withID(table, rows.KeyPrimaryID, r.ID()) {
				if err := b.remove(have); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// allWaysBack are the changes that make all ways back exact.
func (d *Dataplane) allWaysBack(v view) []unit {
	var units []unit
	wanted := map[rows.Ref]bool{}
	for r := range d.want.uses {
		wanted[rows.Ref{Table: rows.AddressSet, ID: r.ID()}] = true
		wanted[rows.Ref{Table: rows.Policy, ID: r.ID()}] = true
		units = append(units, d.exactWayBack(r, true))
	}
	return append(units, removeOthers(v, wanted, rows.OwnerReturn))
}

// settle makes all ways back exact as soon as every Service that the database knows has
// been applied or pruned; from then on Apply may take addresses away.
func (d *Dataplane) settle(ctx context.Context) error {
	_, v, err := d.nb.current()
	if d.complete || d.ground == nil || err != nil {
		return nil // the next call will do
	}
	for _, r := range v.owned(rows.LoadBalancer) {
		if key, _ := parseKey(r.externalIDs()[rows.KeyService]); d.want.plans[key] == nil {
			return nil
		}
	}
	if err := errors.Join(d.commit(ctx, d.allWaysBack(v))...); err != nil {
		return err
	}
	d.complete = true
	return nil
}
