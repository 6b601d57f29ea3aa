// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// An address may pass from one Service to another in one Apply, which may take many transactions. If two load balancers
// of a router have the same address and port, OVN uses any of them, and clients of the new Service may reach endpoints
// of the former one, perhaps another tenant's. Changes by which load balancers lose addresses or ports are therefore
// written first.

// handOver takes addresses and ports that change hands from load balancers of Services without a plan, and returns the
// changes in the order in which they are to be written.
func (d *Dataplane) handOver(ctx context.Context, changes []dataplane.Change) []dataplane.Change {
	_, v, err := d.nb.current()
	if err != nil {
		return changes
	}
	if err := errors.Join(d.commit(ctx, d.superseded(v, changes))...); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to take addresses from Services without a plan, which are pruned later")
	}
	return givenUpFirst(v, changes)
}

// givenUpFirst returns changes with those first that take addresses or ports from a Service.
func givenUpFirst(v view, changes []dataplane.Change) []dataplane.Change {
	first, rest := make([]dataplane.Change, 0, len(changes)), make([]dataplane.Change, 0, len(changes))
	for _, c := range changes {
		if givesUp(v, c) {
			first = append(first, c)
		} else {
			rest = append(rest, c)
		}
	}
	return append(first, rest...)
}

func givesUp(v view, c dataplane.Change) bool {
	if c.Want == nil {
		return true
	}
	wants := map[frontend]bool{}
	addFrontends(wants, c.Want)
	return slices.ContainsFunc(v.withID(rows.LoadBalancer, rows.KeyService, c.Key.String()), func(r record) bool {
		lb, ok := r.model.(*nbdb.LoadBalancer)
		return ok && hasFrontend(lb, func(f frontend) bool { return !wants[f] })
	})
}

// superseded returns the functions that take what Services get by the changes from load balancers of Services without a
// plan. Until everything in the database is known, these may be Services that were deleted while no process ran, which
// Prune removes, but only after all pending changes. Others have their plan soon and serve what stays theirs meanwhile.
func (d *Dataplane) superseded(v view, changes []dataplane.Change) []opsFunc {
	if d.safeToPrune {
		return nil
	}
	wants := map[frontend]bool{}
	for _, c := range changes {
		if c.Want != nil {
			addFrontends(wants, c.Want)
		}
	}
	passes := func(f frontend) bool { return wants[f] }
	found := map[world.Key]bool{}
	v.each(rows.LoadBalancer, func(_ string, m model.Model) {
		lb, ok := m.(*nbdb.LoadBalancer)
		if !ok || !isOwned(m) || lb.ExternalIDs[rows.KeyOwnerType] != rows.OwnerService {
			return
		}
		key, ok := parseKey(lb.ExternalIDs[rows.KeyService])
		if ok && d.desired.plan(key) == nil && hasFrontend(lb, passes) {
			found[key] = true
		}
	})
	var opsFuncs []opsFunc
	for _, key := range slices.SortedFunc(maps.Keys(found), world.Key.Compare) {
		opsFuncs = append(opsFuncs, d.takeFrom(key, passes))
	}
	return opsFuncs
}

// takeFrom returns the changes that take frontends from a Service without a plan: from its load balancers, and from its
// ACLs, which would otherwise decide about the clients of another Service. If an ACL is not as we write them, the
// Service loses all its rows.
func (d *Dataplane) takeFrom(key world.Key, passes func(frontend) bool) opsFunc {
	return func(b *batch) error {
		left, lost := 0, map[frontend]bool{} // without ports
		var ops []ovsdb.Operation
		for _, r := range b.view.withID(rows.LoadBalancer, rows.KeyService, key.String()) {
			lb, ok := r.model.(*nbdb.LoadBalancer)
			if !ok {
				continue
			}
			stays := maps.Clone(lb.Vips)
			maps.DeleteFunc(stays, func(vip, _ string) bool {
				f := frontendOf(lb, vip)
				if passes(f) {
					lost[f.withoutPort()] = true
				}
				return passes(f)
			})
			if left += len(stays); len(stays) < len(lb.Vips) {
				ops = append(ops, mutateMap(r, "vips", lb.Vips, stays))
			}
		}
		if left == 0 {
			return d.serviceOps(key)(b)
		}
		keep := func(protocol string, at netip.AddrPort) bool {
			f := frontend{protocol, at}
			return !passes(f) && !lost[f]
		}
		for _, r := range b.view.withID(rows.ACL, rows.KeyService, key.String()) {
			match, ok := rows.KeepPorts(r.string("match"), keep)
			if !ok {
				return d.serviceOps(key)(b)
			}
			if match == "" {
				if err := b.remove(r); err != nil {
					return err
				}
			} else if match != r.string("match") {
				ops = append(ops, ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: r.table, Where: byUUID(r.uuid),
					Row: ovsdb.Row{"match": match}})
			}
		}
		b.ops = append(b.ops, ops...)
		return nil
	}
}

// frontend is what clients of a load balancer connect to.
type frontend struct {
	protocol string // as in the table Load_Balancer
	at       netip.AddrPort
}

func (f frontend) withoutPort() frontend {
	return frontend{f.protocol, netip.AddrPortFrom(f.at.Addr(), 0)}
}

func addFrontends(to map[frontend]bool, p *plan.Service) {
	for i := range p.Listeners {
		l := &p.Listeners[i]
		to[frontend{strings.ToLower(string(l.Protocol)), netip.AddrPortFrom(l.VIP, l.Port)}] = true
	}
}

// frontendOf returns the frontend of a load balancer's key in the column vips, the zero frontend if it has none.
func frontendOf(lb *nbdb.LoadBalancer, vip string) frontend {
	at, err := netip.ParseAddrPort(vip)
	if err != nil || lb.Protocol == nil {
		return frontend{}
	}
	return frontend{*lb.Protocol, at}
}

func hasFrontend(lb *nbdb.LoadBalancer, fits func(frontend) bool) bool {
	for vip := range lb.Vips {
		if f := frontendOf(lb, vip); f.at.IsValid() && fits(f) {
			return true
		}
	}
	return false
}
