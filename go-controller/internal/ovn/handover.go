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

// handOver takes addresses that change hands from load balancers of Services without a plan, and returns the changes in
// the order in which they are to be written.
func (d *Dataplane) handOver(ctx context.Context, changes []dataplane.Change) []dataplane.Change {
	_, v, err := d.nb.current()
	if err != nil {
		return changes
	}
	var opsFuncs []opsFunc
	for _, key := range d.superseded(v, changes) {
		opsFuncs = append(opsFuncs, d.serviceOps(key))
	}
	if err := errors.Join(d.commit(ctx, opsFuncs)...); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to end load balancers of Services that are gone, which are pruned later")
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

// superseded returns the Services without a plan whose load balancers have an address and port that a Service gets by
// the changes. Until everything in the database is known, these may be Services that were deleted while no process ran.
// Prune, which removes them, waits for pending changes.
func (d *Dataplane) superseded(v view, changes []dataplane.Change) []world.Key {
	if d.safeToPrune {
		return nil
	}
	wants := map[frontend]bool{}
	for _, c := range changes {
		if c.Want != nil {
			addFrontends(wants, c.Want)
		}
	}
	found := map[world.Key]bool{}
	v.each(rows.LoadBalancer, func(_ string, m model.Model) {
		lb, ok := m.(*nbdb.LoadBalancer)
		if !ok || !isOwned(m) || lb.ExternalIDs[rows.KeyOwnerType] != rows.OwnerService {
			return
		}
		key, ok := parseKey(lb.ExternalIDs[rows.KeyService])
		if ok && d.desired.plans[key] == nil && hasFrontend(lb, func(f frontend) bool { return wants[f] }) {
			found[key] = true
		}
	})
	return slices.SortedFunc(maps.Keys(found), world.Key.Compare)
}

// frontend is what clients of a load balancer connect to.
type frontend struct {
	protocol string // as in the table Load_Balancer
	at       netip.AddrPort
}

func addFrontends(to map[frontend]bool, p *plan.Service) {
	for i := range p.Listeners {
		l := &p.Listeners[i]
		to[frontend{strings.ToLower(string(l.Protocol)), netip.AddrPortFrom(l.VIP, l.Port)}] = true
	}
}

func hasFrontend(lb *nbdb.LoadBalancer, fits func(frontend) bool) bool {
	if lb.Protocol == nil {
		return false
	}
	for vip := range lb.Vips {
		if at, err := netip.ParseAddrPort(vip); err == nil && fits(frontend{*lb.Protocol, at}) {
			return true
		}
	}
	return false
}
