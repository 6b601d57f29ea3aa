// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/model"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// drift looks at rows of ours that changed, our own writes among them, and reports Rows
// if they are not as wanted.
type drift struct {
	d    *Dataplane
	wake chan struct{}
	// bereaved: a port of ours has gone, see reapOrphans.
	bereaved chan struct{}

	mu       sync.Mutex
	suspects suspects
}

// suspects are the parts of the database to look at.
type suspects struct {
	// ground: rows of domains and shards. footing: what those and the nodes' rows depend on, which others write.
	ground    bool
	footing   bool
	nodes     map[string]bool
	services  map[world.Key]bool
	balancers map[string]bool // UUIDs
}

func newDrift(d *Dataplane) *drift {
	return &drift{d: d, wake: make(chan struct{}, 1), bereaved: make(chan struct{}, 1)}
}

var _ cache.EventHandler = (*drift)(nil)

// OnAdd implements cache.EventHandler. What we waited for may have come.
func (f *drift) OnAdd(_ string, m model.Model) {
	switch row := m.(type) {
	case *nbdb.HAChassis:
		f.d.changed(Carriers)
	case *nbdb.LogicalRouter:
		f.footing(row.Name == rows.ClusterRouter)
	case *nbdb.LogicalSwitch:
		f.footing(row.Name == rows.JoinSwitch)
	case *nbdb.LogicalRouterPort:
		f.footing(foundation(row))
	}
}

// foundation tells whether our ground depends on a port.
func foundation(port *nbdb.LogicalRouterPort) bool {
	return port.Name == rows.ClusterRouterPort || strings.HasPrefix(port.Name, rows.PodPortPrefix) ||
		strings.HasPrefix(port.Name, rows.GatewayPortPrefix) || strings.HasPrefix(port.Name, rows.ExternalPortPrefix)
}

// OnUpdate implements cache.EventHandler.
func (f *drift) OnUpdate(_ string, before, m model.Model) {
	switch row := m.(type) {
	case *nbdb.HAChassis:
		f.d.changed(Carriers)
	case *nbdb.NBGlobal:
		if old, ok := before.(*nbdb.NBGlobal); ok && !old.Equals(row) {
			f.note(func(s *suspects) { s.ground = true })
		}
	case *nbdb.LogicalRouterPort:
		f.footing(foundation(row))
	case *nbdb.LogicalRouter:
		if old, ok := before.(*nbdb.LogicalRouter); ok {
			f.detached(old.LoadBalancer, row.LoadBalancer)
			if alikeButBalancers(old, row) {
				return
			}
		}
	}
	f.look(before)
}

// OnDelete implements cache.EventHandler.
func (f *drift) OnDelete(table string, m model.Model) {
	switch table {
	case rows.HAChassis:
		f.d.changed(Carriers)
	case rows.RouterPort:
		if ours(m) {
			select {
			case f.bereaved <- struct{}{}:
			default:
			}
		}
	}
	f.look(m)
}

// look notes the part of the database that a row of ours belongs to.
func (f *drift) look(m model.Model) {
	ids := externalIDs(m)
	if ids[rows.KeyController] != rows.Controller {
		return
	}
	f.note(func(s *suspects) {
		switch ids[rows.KeyOwnerType] {
		case rows.OwnerNode:
			s.nodes[ids[rows.KeyNode]] = true
		case rows.OwnerService:
			if key, ok := parseKey(ids[rows.KeyService]); ok {
				s.services[key] = true
			}
		default:
			s.ground = true
		}
	})
}

func (f *drift) footing(yes bool) {
	if yes {
		f.note(func(s *suspects) { s.ground, s.footing = true, true })
	}
}

// alikeButBalancers tells whether two versions of a router differ in its load balancers
// only, and the epoch that counts their changes.
func alikeButBalancers(before, after *nbdb.LogicalRouter) bool {
	bare := func(row nbdb.LogicalRouter) *nbdb.LogicalRouter {
		row.LoadBalancer, row.ExternalIDs = nil, maps.Clone(row.ExternalIDs)
		delete(row.ExternalIDs, rows.KeyEpoch)
		return &row
	}
	return bare(*before).Equals(bare(*after))
}

// detached notes load balancers that a router no longer has.
func (f *drift) detached(before, after []string) {
	if len(before) == 0 {
		return
	}
	still := make(map[string]bool, len(after))
	for _, uuid := range after {
		still[uuid] = true
	}
	f.note(func(s *suspects) {
		for _, uuid := range before {
			if !still[uuid] {
				s.balancers[uuid] = true
			}
		}
	})
}

func (f *drift) note(add func(*suspects)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.suspects.nodes == nil {
		f.suspects = suspects{nodes: map[string]bool{}, services: map[world.Key]bool{}, balancers: map[string]bool{}}
	}
	add(&f.suspects)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// driftShare bounds the part of the time that goes into looking: writes wait meanwhile, and
// while thousands of rows are written, all of them are suspects.
const driftShare = 10

// Another client that rewrites our rows in a loop is a fight: after driftBurst repairs, with no quiet of driftQuiet
// between two of them, each waits twice as long as the one before. Who edits rows by hand is repaired at once.
const (
	driftBurst      = 64
	driftQuiet      = 30 * time.Second
	firstDriftPause = time.Second
	lastDriftPause  = time.Minute
)

// driftBackoff is how long to wait between reports. The zero value has seen none.
type driftBackoff struct {
	count int
	pause time.Duration
	last  time.Time
}

// reported returns for how long no row is looked at after a report.
func (b *driftBackoff) reported(now time.Time) time.Duration {
	if now.Sub(b.last) > max(driftQuiet, 2*b.pause) {
		*b = driftBackoff{}
	}
	b.last = now
	if b.count++; b.count > driftBurst {
		b.pause = min(max(2*b.pause, firstDriftPause), lastDriftPause)
	}
	return b.pause
}

func (f *drift) run(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	var backoff driftBackoff
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		start := time.Now()
		f.mu.Lock()
		s := f.suspects
		f.suspects = suspects{}
		f.mu.Unlock()
		var wait time.Duration
		switch what, fight := f.d.differs(s); {
		case fight:
			wait = backoff.reported(time.Now())
			klog.FromContext(ctx).Info("Rows of ours were changed by others", "rows", what, "nextLookIn", wait)
			f.d.changed(Rows)
		case what != "":
			klog.FromContext(ctx).Info("What rows of ours depend on was changed by others", "rows", what)
			f.d.changed(Rows)
		}
		pause.Reset(max(wait, driftShare*time.Since(start)))
	}
}

// differs compares suspects with what is wanted and says what is amiss, empty for nothing. It is a fight if the rows
// are not those that were written, and none if other rows are wanted because OVN-Kubernetes made a node's ports, say.
func (d *Dataplane) differs(s suspects) (what string, fight bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer clear(d.want.apart)
	_, v, err := d.nb.current()
	if err != nil {
		return "", false // the next connection reports Rows
	}
	pendingIn := func(b *batch, units ...unit) bool {
		return slices.ContainsFunc(units, func(u unit) bool { return u(b) != nil || b.size() > 0 })
	}
	b := newBatch(v)
	if s.ground && d.fabric != nil {
		ground, err := rows.Lay(d.fabric, facts(v))
		if err == nil && pendingIn(b, d.groundUnits(v, ground)...) {
			return "shards", d.ground != nil && pendingIn(newBatch(v), d.groundUnits(v, d.ground)...)
		}
		for name := range d.want.nodes {
			if s.footing && err == nil && pendingIn(b, d.returns(ground, name)) {
				return "router of node " + name, d.ground != nil && pendingIn(newBatch(v), d.node(name))
			}
		}
	}
	for uuid := range s.balancers {
		if d.loose(v, uuid) {
			return "load balancers of a router", true
		}
	}
	for key := range s.services {
		if d.want.plans[key] != nil && pendingIn(b, d.service(key)) {
			return "load balancers of " + key.String(), true
		}
	}
	for name := range s.nodes {
		if d.want.nodes[name] != nil && pendingIn(b, d.node(name)) {
			return "router of node " + name, true
		}
	}
	return "", false
}

// loose tells whether a load balancer of ours is not on its router.
func (d *Dataplane) loose(v view, uuid string) bool {
	m := v.Table(rows.LoadBalancer).Row(uuid)
	if m == nil {
		return false
	}
	home := rows.Home(rows.LoadBalancer, externalIDs(m))
	router, ok := v.named(home.Table, home.Name)
	return ok && !slices.Contains(router.texts(home.Column), uuid)
}

// externalIDs reads them from a model.
func externalIDs(m model.Model) map[string]string {
	switch row := m.(type) {
	case *nbdb.ACL:
		return row.ExternalIDs
	case *nbdb.AddressSet:
		return row.ExternalIDs
	case *nbdb.BFD:
		return row.ExternalIDs
	case *nbdb.HAChassis:
		return row.ExternalIDs
	case *nbdb.HAChassisGroup:
		return row.ExternalIDs
	case *nbdb.LoadBalancer:
		return row.ExternalIDs
	case *nbdb.LogicalRouter:
		return row.ExternalIDs
	case *nbdb.LogicalRouterPolicy:
		return row.ExternalIDs
	case *nbdb.LogicalRouterPort:
		return row.ExternalIDs
	case *nbdb.LogicalRouterStaticRoute:
		return row.ExternalIDs
	case *nbdb.LogicalSwitch:
		return row.ExternalIDs
	case *nbdb.LogicalSwitchPort:
		return row.ExternalIDs
	case *nbdb.NBGlobal:
		return row.ExternalIDs
	}
	return nil
}

// parseKey reads what world.Key.String wrote.
func parseKey(s string) (world.Key, bool) {
	namespace, name, ok := strings.Cut(s, "/")
	return world.Key{Namespace: namespace, Name: name}, ok
}
