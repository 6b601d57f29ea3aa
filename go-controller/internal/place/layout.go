// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Layout is the shards of all domains and the nodes that may be their gateways.
type Layout struct {
	// Domains are sorted by name.
	Domains []*Domain
	// UnsupportedReason is why no domain can be served in this cluster. It is empty if domains can be served.
	UnsupportedReason string
	// primaryNetworks are the namespaces of Snapshot.PrimaryNetworks.
	primaryNetworks map[string]bool
	// Interconnect is set if each node has its own databases, which its agent programs.
	Interconnect bool
	// TunnelsDown are the nodes that OVN can't reach from most of the others, and what shows it (world.TunnelsDown). It
	// moves no shard: OVN has detected it, and fails over by itself.
	TunnelsDown map[string]world.TunnelFault
	// mode is how domains are served if they can be, modeMessage what that follows from.
	mode        world.ServingMode
	modeMessage string
	// byAge has the same domains, oldest first. byPool maps a pool to the domain that serves it.
	byAge  []*Domain
	byPool map[string]*Domain
}

// Domain is a layer 2 domain with its shards.
type Domain struct {
	Spec *world.Domain
	// Shards are in order of their index. There are none if the domain has no gateway.
	Shards []Shard
	// Excluded are the domain's nodes that must not be gateways, by name.
	Excluded []ExcludedNode
	// Pools are the pools of its spec that the domain serves, sorted. They exist and belong to no older domain.
	Pools []string
	// Problems are about the pools that the domain does not serve, in addition to the problems of its spec.
	Problems []string
	// Warnings are weaknesses of a domain that works. Unmatched are the preferences without effect, which may be as
	// intended: they are written before nodes have labels.
	Warnings, Unmatched []string
	// TooFewGateways is set if the domain may not survive the loss of a gateway.
	TooFewGateways bool
	// NoGateway is why the domain has no shards. DisabledReason is set if layer 2 is disabled. Unserved is why the
	// domain can't be served in this cluster. Each is empty if it does not apply.
	NoGateway, DisabledReason, Unserved string
	// TunnelsDown is set if OVN can't reach some nodes, so that connections to their endpoints fail.
	TunnelsDown bool
	// Unobserved is set if the loss of the uplink of a gateway would not be detected.
	Unobserved bool
	// AllDraining is set if every gateway of the domain is draining.
	AllDraining bool
	// BlockedReason is why no new address of the domain may be published now. It is empty if addresses may be
	// published.
	BlockedReason string
	// Move is the progress of the request to move shards (Spec.Move), the zero value without one.
	Move world.MoveResult
	// Stale describes, by node, the flows that keep requests for addresses from OVN. RecentlyStale contains the nodes for
	// which such flows count although they ended a short while ago (Spec.RecentlyStale), and which have no fault.
	Stale         map[string]string
	RecentlyStale map[string]bool
	// Mode is how the domain is served, ModeMessage what that follows from. They are empty if it is not served.
	Mode        world.ServingMode
	ModeMessage string
	seeds       []uint64
	// residents are the chassis of the nodes on which the domain is on the bridge of OVN-Kubernetes' own gateway.
	residents []string
	// sharedBridges contains the gateways among the residents whose gateway mode is shared, by node.
	sharedBridges map[string]bool
	// refreshables are the addresses whose stale flows may count, nil until some are needed.
	refreshables map[netip.Addr]bool
	// portFaults describe, by node, how such a bridge keeps the requests for all addresses from OVN.
	portFaults map[string]string
	// withoutGuard are the gateways among the residents without a guard that reports on the bridge.
	withoutGuard []string
	// held are the nodes that the domain no longer selects and that have not released shards, by index of the shard.
	held map[int]*world.Node
}

// Shard is a unit of failover with its gateways in order of preference.
type Shard struct {
	ID       world.ShardID
	Gateways []plan.Gateway
}

// IsGateway reports whether a node is a gateway of a shard.
func (d *Domain) IsGateway(node string) bool {
	return slices.ContainsFunc(d.Shards, func(s Shard) bool {
		return slices.ContainsFunc(s.Gateways, func(g plan.Gateway) bool { return g.Node == node })
	})
}

// ExcludedNode is a node that must not be a gateway, and why.
type ExcludedNode struct {
	Node    string
	Reason  Reason
	Message string
}

// defaultShards is the number of shards of a domain that does not set it. It is a constant: if the number followed
// the nodes, a new node would move addresses, and clients that have cached the previous MAC address of an address could
// not reach it for a while.
const defaultShards = 8

// Compute computes the shards of all domains.
func Compute(w *world.Snapshot) *Layout {
	pools := make(map[string]bool, len(w.Pools))
	for _, p := range w.Pools {
		pools[p.Name] = true
	}
	zones := world.ZonesOf(w.Nodes, w.Cluster.NoDatabase)
	l := &Layout{byPool: make(map[string]*Domain), UnsupportedReason: unserved(&w.Cluster, &zones),
		Interconnect: zones.Interconnect && w.Cluster.NoDatabase, primaryNetworks: w.PrimaryNetworks}
	nodes := make(map[string]*world.Node, len(w.Nodes))
	for _, n := range w.Nodes {
		// In central mode, agents do not report. The last reports of those that did before are still in their Leases.
		if n.Agent != nil && !l.Interconnect {
			bare := *n
			bare.Agent = nil
			n = &bare
		}
		nodes[n.Name] = n
	}
	if !w.Cluster.OpenShiftSDN { // It has no OVN.
		l.TunnelsDown = world.TunnelsDown(w.Nodes, w.Domains)
	}
	l.mode, l.modeMessage = serving(&w.Cluster, &zones)
	for _, spec := range w.Domains {
		l.byAge = append(l.byAge, l.compute(spec, nodes, &zones, w))
	}
	slices.SortFunc(l.byAge, func(a, b *Domain) int {
		return cmp.Or(a.Spec.Created.Compare(b.Spec.Created), cmp.Compare(a.Spec.Name, b.Spec.Name))
	})
	for _, d := range l.byAge {
		l.assignPools(d, pools)
	}
	l.Domains = slices.SortedFunc(slices.Values(l.byAge), func(a, b *Domain) int {
		return cmp.Compare(a.Spec.Name, b.Spec.Name)
	})
	return l
}

// assignPools assigns a domain the pools that no older domain has.
func (l *Layout) assignPools(d *Domain, exists map[string]bool) {
	for _, pool := range slices.Sorted(slices.Values(d.Spec.Pools)) {
		older := l.byPool[pool]
		switch {
		case !exists[pool]:
			d.Problems = append(d.Problems, fmt.Sprintf("pool %q does not exist", pool))
		case older == nil:
			l.byPool[pool] = d
			d.Pools = append(d.Pools, pool)
		case older != d:
			d.Problems = append(d.Problems, fmt.Sprintf("pool %q belongs to L2Domain %q, the older one", pool, older.Spec.Name))
		}
	}
}

func (l *Layout) compute(spec *world.Domain, nodes map[string]*world.Node, zones *world.Zones,
	w *world.Snapshot) *Domain {
	d := &Domain{Spec: spec, portFaults: map[string]string{}, sharedBridges: map[string]bool{},
		Stale: map[string]string{}, RecentlyStale: map[string]bool{}}
	if s := &w.Cluster.ModeSetting; !s.Mode.Layer2() {
		d.DisabledReason = s.Off("layer 2 is")
		d.decideMove(nil, w)
		return d
	}
	if d.Unserved = cmp.Or(l.UnsupportedReason, d.otherMode(l.mode, zones.Central, w)); d.Unserved != "" {
		d.decideMove(nil, w)
		return d
	}
	count := spec.Shards
	if count <= 0 {
		count = defaultShards
	}
	d.seeds = make([]uint64, count)
	for i := range d.seeds {
		d.seeds[i] = seed(spec.Name, i)
	}
	members := d.members(nodes, zones, w)
	d.held = d.heldGateways(nodes, zones, w)
	d.Mode, d.ModeMessage = l.mode, l.modeMessage
	if text := d.bridgesText(members, w); text != "" {
		d.ModeMessage += "; " + text
	}
	d.setBlocked(members)
	d.decideMove(members, w)
	if len(members) == 0 {
		d.NoGateway = d.noGatewayReason()
		return d
	}
	d.addWarnings(members, w.Cluster.OpenShiftSDN)
	if !w.Cluster.OpenShiftSDN {
		d.addSlowDetection(w.Nodes, l.Interconnect)
		d.addTunnelsDown(l.TunnelsDown)
		d.addUnobserved(members)
		d.addHeld()
	}
	serves := make(map[*world.Node]bool, len(members))
	for i, order := range d.orders(members, w.ShardStates) {
		shard := Shard{ID: world.ShardID{Domain: spec.Name, Index: i}}
		d.addMissed(members, shard.ID.Index, w.ShardStates[shard.ID])
		order = d.reporting(order, w.ShardStates[shard.ID])
		if most := spec.MaxGateways; most > 0 {
			if active := w.ShardStates[shard.ID].Active; d.moveTarget(i) != "" ||
				d.Spec.Preempt && active != "" && active != order[0].Name {
				most = max(most, 2) // the gateways before and after the move
			}
			order = order[:min(len(order), most)]
		}
		if n := d.held[i]; n != nil { // in addition to gateways.max: it is about to leave
			order = slices.Concat([]*world.Node{n}, order)
		}
		for _, n := range order {
			serves[n] = true
			shard.Gateways = append(shard.Gateways, plan.Gateway{Node: n.Name, Chassis: n.Chassis,
				Interface: d.KernelInterface(n), SharedBridge: d.sharedBridges[n.Name]})
		}
		d.Shards = append(d.Shards, shard)
	}
	d.excludeMembers(members, serves)
	return d
}

// reporting returns the members that may be gateways of a shard that has none yet: those whose agents report, with
// interconnect, and can program them, unless none does. A gateway whose agent stopped reporting, or whose zone can't be
// changed, keeps the shards that it has, but gets no new ones.
func (d *Domain) reporting(order []*world.Node, c world.ShardState) []*world.Node {
	if len(c.Order) > 0 {
		return order
	}
	on := slices.DeleteFunc(slices.Clone(order), func(n *world.Node) bool {
		return n.Agent != nil && (n.Agent.Silent || n.Agent.Unwritable != "")
	})
	if len(on) == 0 {
		return order
	}
	return on
}

// unserved returns why no segment can be served in this cluster, or an empty string.
func unserved(c *world.Cluster, zones *world.Zones) string {
	const instead = "; to advertise its addresses instead, select the pool by a BGPAdvertisement"
	switch {
	case c.OpenShiftSDN:
		return ""
	case zones.Interconnect && !c.NoDatabase:
		return fmt.Sprintf("OVN-Kubernetes runs in interconnect mode: each zone (%s) has its own "+
			"northbound database, and --nb-address names one of them; leave it empty and run ovnkube-slb node --enable-l2 on "+
			"every node", zones) + instead
	case zones.Interconnect && !zones.HasAgents:
		return fmt.Sprintf("OVN-Kubernetes runs in interconnect mode: each zone (%s) has its own "+
			"northbound database, and no node has an agent that programs it (ovnkube-slb node --enable-l2)", zones) + instead
	case zones.Interconnect && zones.NoOverlay:
		return "OVN-Kubernetes has no overlay for the default network (transport no-overlay): the zones have no transit " +
			"switch, by which OVN reaches the pods of other nodes" + instead
	case zones.Interconnect:
		return ""
	case c.NoDatabase && zones.Central != "":
		return fmt.Sprintf("no northbound database is configured (--nb-address), so no segment is served: %s in zone %q of "+
			"OVN-Kubernetes (k8s.ovn.org/zone-name), not in zones of their own",
			ofAll(zones.InCentral, zones.Nodes, "is", "are"), zones.Central) + instead
	case c.NoDatabase:
		return "no northbound database is configured (--nb-address), so no segment is served" + instead
	}
	return ""
}

// ShardOf returns the shard that an address of a pool is in according to its hash. It returns false if no working
// domain has the pool. An empty pool name stands for an address in no pool; such an address is in the domain whose
// subnet contains it.
func (l *Layout) ShardOf(pool string, a netip.Addr) (world.ShardID, bool) {
	d := l.domain(pool, a)
	if d == nil || len(d.Spec.Problems) > 0 || len(d.Shards) == 0 {
		return world.ShardID{}, false
	}
	return d.shard(a), true
}

// ConfiguredShardOf is ShardOf for callers that do not know all nodes: it does not check whether the domain works.
func (l *Layout) ConfiguredShardOf(pool string, a netip.Addr) (world.ShardID, bool) {
	d := l.domain(pool, a)
	if d == nil || len(d.Spec.Problems) > 0 || d.DisabledReason != "" || d.Unserved != "" {
		return world.ShardID{}, false
	}
	return d.shard(a), true
}

// ConfiguredShardFor is ConfiguredShardOf for an address of a Service with these labels. It returns false if the domain
// does not select them.
func (l *Layout) ConfiguredShardFor(labels map[string]string, pool string, a netip.Addr) (world.ShardID, bool) {
	id, ok := l.ConfiguredShardOf(pool, a)
	return id, ok && l.domain(pool, a).selects(labels)
}

// NotSelecting returns the domain that has an address and does not select Services with these labels, and a message
// that says so; empty if it selects them.
func (l *Layout) NotSelecting(labels map[string]string, pool string, a netip.Addr) (domain, message string) {
	if d := l.domain(pool, a); d != nil && !d.selects(labels) {
		return d.Spec.Name, d.notSelected()
	}
	return "", ""
}

// HasDomain reports whether there is an L2Domain for an address of a pool, whatever its state is.
func (l *Layout) HasDomain(pool string, a netip.Addr) bool { return l.domain(pool, a) != nil }

func (d *Domain) shard(a netip.Addr) world.ShardID {
	return world.ShardID{Domain: d.Spec.Name, Index: shardFor(d.seeds, a)}
}

func (l *Layout) domain(pool string, a netip.Addr) *Domain {
	if pool != "" {
		return l.byPool[pool]
	}
	for _, d := range l.byAge {
		if _, ok := d.subnet(a); ok {
			return d
		}
	}
	return nil
}
