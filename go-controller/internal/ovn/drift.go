// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/model"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// drift compares changed rows that we own, including our own writes, with the desired rows, and reports Rows if they
// differ.
type drift struct {
	d *Dataplane
	// differs is d.differs, except in tests.
	differs func(pendingChecks) (what string, foreign bool)
	wake    chan struct{}
	// orphaned signals that a port we own was deleted; see deleteOrphans.
	orphaned chan struct{}

	mu       sync.Mutex
	suspects pendingChecks
}

// pendingChecks are the parts of the database to check.
type pendingChecks struct {
	// topology is set if rows of domains or shards may have changed.
	topology bool
	// inputs is set if rows of other owners may have changed that those rows and the rows of nodes depend on.
	inputs   bool
	nodes    map[string]bool
	services map[world.Key]bool
	// added are Services that have new rows. Only those without a plan are checked.
	added     map[world.Key]bool
	balancers map[string]bool // UUIDs
}

func newDrift(d *Dataplane) *drift {
	return &drift{d: d, differs: d.differs, wake: make(chan struct{}, 1), orphaned: make(chan struct{}, 1)}
}

var _ cache.EventHandler = (*drift)(nil)

// OnAdd implements cache.EventHandler. A new row may be one that our rows depend on, or one of a Service that has no
// plan: a write of a former leader may arrive late.
func (d *drift) OnAdd(_ string, m model.Model) {
	if ids := externalIDs(m); ids[rows.KeyController] == rows.Controller && ids[rows.KeyOwnerType] == rows.OwnerService {
		if key, ok := parseKey(ids[rows.KeyService]); ok {
			d.addSuspects(func(s *pendingChecks) { s.added[key] = true })
		}
	}
	switch row := m.(type) {
	case *nbdb.HAChassis:
		d.d.changed(ShardStates)
	case *nbdb.LogicalRouter:
		d.inputsChanged(row.Name == rows.ClusterRouter)
	case *nbdb.LogicalSwitch:
		d.inputsChanged(row.Name == rows.JoinSwitch || strings.HasPrefix(row.Name, rows.ExternalSwitchPrefix))
	case *nbdb.LogicalRouterPort:
		d.inputsChanged(isTopologyPort(row))
		d.transitChanged(row)
	}
}

// isTopologyPort reports whether our topology depends on a port.
func isTopologyPort(port *nbdb.LogicalRouterPort) bool {
	return port.Name == rows.ClusterRouterPort || strings.HasPrefix(port.Name, rows.PodPortPrefix) ||
		strings.HasPrefix(port.Name, rows.GatewayPortPrefix) || strings.HasPrefix(port.Name, rows.ExternalPortPrefix) ||
		strings.HasPrefix(port.Name, rows.TransitPortPrefix)
}

// transitChanged reports that the node may have got or lost its port on the transit switch.
func (d *drift) transitChanged(m model.Model) {
	if port, ok := m.(*nbdb.LogicalRouterPort); ok && strings.HasPrefix(port.Name, rows.TransitPortPrefix) {
		d.d.changed(Chassis)
	}
}

// OnUpdate implements cache.EventHandler.
func (d *drift) OnUpdate(_ string, before, m model.Model) {
	switch row := m.(type) {
	case *nbdb.HAChassis:
		d.d.changed(ShardStates)
	case *nbdb.NBGlobal:
		if old, ok := before.(*nbdb.NBGlobal); ok && !old.Equals(row) {
			d.addSuspects(func(s *pendingChecks) { s.topology = true })
		}
	case *nbdb.LogicalRouterPort:
		d.inputsChanged(isTopologyPort(row))
	case *nbdb.AddressSet:
		if raised(before, row) {
			return
		}
	case *nbdb.LogicalRouter:
		if old, ok := before.(*nbdb.LogicalRouter); ok {
			d.detached(old.LoadBalancer, row.LoadBalancer)
			if equalExceptBalancers(old, row) {
				return
			}
		}
	}
	d.recordOwner(before)
}

// OnDelete implements cache.EventHandler.
func (d *drift) OnDelete(table string, m model.Model) {
	switch table {
	case rows.HAChassis:
		d.d.changed(ShardStates)
	case rows.RouterPort:
		d.transitChanged(m)
		if isOwned(m) {
			select {
			case d.orphaned <- struct{}{}:
			default:
			}
		}
	}
	d.recordOwner(m)
}

// recordOwner records the part of the database that a row we own belongs to.
func (d *drift) recordOwner(m model.Model) {
	ids := externalIDs(m)
	if ids[rows.KeyController] != rows.Controller {
		return
	}
	d.addSuspects(func(s *pendingChecks) {
		switch ids[rows.KeyOwnerType] {
		case rows.OwnerNode:
			s.nodes[ids[rows.KeyNode]] = true
		case rows.OwnerService:
			if key, ok := parseKey(ids[rows.KeyService]); ok {
				s.services[key] = true
			}
		default:
			s.topology = true
		}
	})
}

func (d *drift) inputsChanged(yes bool) {
	if yes {
		d.addSuspects(func(s *pendingChecks) { s.topology, s.inputs = true, true })
	}
}

// equalExceptBalancers reports whether two versions of a router differ only in their load balancers.
func equalExceptBalancers(before, after *nbdb.LogicalRouter) bool {
	bare := func(row nbdb.LogicalRouter) *nbdb.LogicalRouter {
		row.LoadBalancer = nil
		return &row
	}
	return bare(*before).Equals(bare(*after))
}

// detached records load balancers that a router no longer has.
func (d *drift) detached(before, after []string) {
	if len(before) == 0 {
		return
	}
	still := make(map[string]bool, len(after))
	for _, uuid := range after {
		still[uuid] = true
	}
	d.addSuspects(func(s *pendingChecks) {
		for _, uuid := range before {
			if !still[uuid] {
				s.balancers[uuid] = true
			}
		}
	})
}

func (d *drift) addSuspects(add func(*pendingChecks)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.suspects.nodes == nil {
		d.suspects = pendingChecks{nodes: map[string]bool{}, services: map[world.Key]bool{},
			added: map[world.Key]bool{}, balancers: map[string]bool{}}
	}
	add(&d.suspects)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// driftShare limits the share of time spent on checks. A check blocks writes, and while thousands of rows are being
// written, all of them are suspects.
const driftShare = 10

func (d *drift) run(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	var backoff dataplane.DriftBackoff
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		}
		start := time.Now()
		d.mu.Lock()
		s := d.suspects
		d.suspects = pendingChecks{}
		d.mu.Unlock()
		var wait time.Duration
		switch what, foreign := d.differs(s); {
		case foreign:
			wait = backoff.Reported(time.Now())
			klog.FromContext(ctx).Info("Another client changed rows we own", "rows", what, "nextCheckIn", wait)
			d.d.changed(Rows)
		case what != "":
			klog.FromContext(ctx).Info("Another client changed rows that ours depend on", "rows", what)
			d.d.changed(Rows)
		}
		pause.Reset(max(wait, driftShare*time.Since(start)))
	}
}

// differs compares suspects with the desired rows. It returns a description of the first difference, or an empty
// string. foreign is true if the rows are not the ones that were written. It is false if the desired rows have changed,
// for example because OVN-Kubernetes created the ports of a node.
func (d *Dataplane) differs(s pendingChecks) (what string, foreign bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer clear(d.desired.splitPlans)
	_, v, err := d.nb.current()
	if err != nil {
		return "", false // the next connection reports Rows
	}
	pendingIn := func(b *batch, opsFuncs ...opsFunc) bool {
		return slices.ContainsFunc(opsFuncs, func(add opsFunc) bool { return add(b) != nil || b.size() > 0 })
	}
	b := newBatch(v)
	if s.topology && d.topology != nil {
		builder, err := rows.NewBuilder(d.topology, facts(v))
		if err == nil && pendingIn(b, d.topologyOps(v, builder)...) {
			return "shards", d.builder != nil && pendingIn(newBatch(v), d.topologyOps(v, d.builder)...)
		}
		for name := range d.desired.nodes {
			if s.inputs && err == nil && pendingIn(b, d.nodeOpsWith(builder, name)) {
				return "router of node " + name, d.builder != nil && pendingIn(newBatch(v), d.nodeOps(name))
			}
		}
	}
	for uuid := range s.balancers {
		if d.isDetached(v, uuid) {
			return "load balancers of a router", true
		}
	}
	for key := range d.checked(s) {
		if pendingIn(b, d.serviceOps(key)) {
			return "load balancers of " + key.String(), true
		}
	}
	for name := range s.nodes {
		if d.desired.nodes[name] != nil && pendingIn(b, d.nodeOps(name)) {
			return "router of node " + name, true
		}
	}
	return "", false
}

// checked returns the Services whose rows are to be checked.
func (d *Dataplane) checked(s pendingChecks) map[world.Key]bool {
	out := map[world.Key]bool{}
	for key := range s.services {
		if d.pruned || d.desired.plan(key) != nil {
			out[key] = true
		}
	}
	for key := range s.added {
		if d.pruned && d.desired.plan(key) == nil {
			out[key] = true
		}
	}
	return out
}

// isDetached reports whether a load balancer we own is missing from its router.
func (d *Dataplane) isDetached(v view, uuid string) bool {
	m := v.Table(rows.LoadBalancer).Row(uuid)
	if m == nil {
		return false
	}
	ref := rows.ParentOf(rows.LoadBalancer, externalIDs(m))
	router, ok := v.byName(ref.Table, ref.Name)
	return ok && !slices.Contains(router.strings(ref.Column), uuid)
}

// externalIDs returns the external_ids of a model, nil for a table without that column.
func externalIDs(m model.Model) map[string]string {
	if row, ok := m.(interface{ GetExternalIDs() map[string]string }); ok {
		return row.GetExternalIDs()
	}
	return nil
}

// parseKey parses the output of world.Key.String.
func parseKey(s string) (world.Key, bool) {
	namespace, name, ok := strings.Cut(s, "/")
	return world.Key{Namespace: namespace, Name: name}, ok
}
