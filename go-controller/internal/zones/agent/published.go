// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// published is what the controller and OVN-Kubernetes publish, as last read.
type published struct {
	nodes   map[string]*world.Node
	objects map[string]*corev1.Node
	domains map[string]*v1alpha1.L2Domain
	plans   map[string]*publishedPlan
	// clusterSubnets are those of OVN-Kubernetes. All agents have the same in the same order, because aliases depend on
	// it.
	clusterSubnets []netip.Prefix
	// handovers are the planned moves of shards to this node.
	handovers map[world.ShardID]world.Handover
	// orders are the gateways of the shards as of the last call of desired. deferred are the shards whose published order
	// waits, until when.
	orders   map[world.ShardID][]string
	deferred map[world.ShardID]time.Time
	now      func() time.Time
	// shards are the shards that the zone has, as of the last call of desired. One with false is published, but the zone
	// knows none of its gateways, and leaves it out.
	shards map[world.ShardID]bool
	// unread are the Services whose plans could never be read, as of the last call of desired. What the zone has of them
	// must stay: an agent of another release may have programmed it.
	unread map[world.Key]struct{}
	// changed are the Services of the ServicePlans that have changed since then, by the name of the ServicePlan. whole is
	// set if anything else has changed.
	changed map[string]world.Key
	whole   bool
	pace    pace
}

// publishedPlan is a ServicePlan as it was decoded: the plan of the controller, in this process. The runner has the
// same one, without the addresses whose shards are not published yet. If it could not be decoded, problem is why, and
// plan is the last good one, or nil.
type publishedPlan struct {
	key     world.Key
	version uint64
	plan    *plan.Service
	problem string
	// here is whether the plan has a backend on the node of the agent, nil before that is known.
	here *bool
}

func newPublished(clusterSubnets []netip.Prefix) published {
	return published{clusterSubnets: clusterSubnets, nodes: map[string]*world.Node{}, objects: map[string]*corev1.Node{},
		domains: map[string]*v1alpha1.L2Domain{}, plans: map[string]*publishedPlan{},
		changed: map[string]world.Key{}, orders: map[world.ShardID][]string{}, deferred: map[world.ShardID]time.Time{},
		now: time.Now, whole: true}
}

func (p *published) setNode(old, now *corev1.Node) bool {
	if now == nil {
		delete(p.nodes, old.Name)
		delete(p.objects, old.Name)
		p.outdate(false)
		return true
	}
	was, is := p.nodes[now.Name], convert.Node(now, convert.Options{})
	relevant := was == nil || was.Chassis != is.Chassis || was.Zone != is.Zone || was.GatewayBridge != is.GatewayBridge ||
		was.SharedGateway != is.SharedGateway || !slices.Equal(was.PodSubnets, is.PodSubnets) ||
		!slices.Equal(was.Transit, is.Transit) || !slices.Equal(was.Hosts, is.Hosts) ||
		!p.sameForSelectors(p.objects[now.Name].Labels, now.Labels)
	p.nodes[now.Name], p.objects[now.Name] = is, now
	if relevant {
		p.outdate(false)
	}
	return relevant
}

// sameForSelectors reports whether two sets of labels of a node are the same for the selectors of the L2Domains.
func (p *published) sameForSelectors(was, now map[string]string) bool {
	if maps.Equal(was, now) {
		return true
	}
	differs := func(key string) bool {
		a, had := was[key]
		b, has := now[key]
		return had != has || a != b
	}
	for _, d := range p.domains {
		for _, s := range d.Spec.NodeSelectors {
			if slices.ContainsFunc(slices.Collect(maps.Keys(s.MatchLabels)), differs) || slices.ContainsFunc(s.MatchExpressions,
				func(r metav1.LabelSelectorRequirement) bool { return differs(r.Key) }) {
				return false
			}
		}
	}
	return true
}

// setNetwork takes the cluster subnets from OpenShift's Network. While it is gone, or has none, it keeps the last ones:
// OVN keeps its routes, too.
func (p *published) setNetwork(now *unstructured.Unstructured) bool {
	if now == nil {
		return false
	}
	nets := convert.ReadNetworkConfig(now).ClusterSubnets
	if len(nets) == 0 || slices.Equal(nets, p.clusterSubnets) {
		return false
	}
	p.clusterSubnets = nets
	p.outdate(true)
	return true
}

func (p *published) setDomain(old, now *v1alpha1.L2Domain) bool {
	if now == nil {
		delete(p.domains, old.Name)
		p.outdate(true)
		return true
	}
	was := p.domains[now.Name]
	p.domains[now.Name] = now
	if sameForZones(was, now) {
		return false
	}
	p.outdate(!sameOrders(was, now))
	return true
}

// sameForZones reports whether two versions of an L2Domain are the same for zones; was may be nil. Most writes of its
// status change only what administrators read, such as the numbers of addresses.
func sameForZones(was, now *v1alpha1.L2Domain) bool {
	return was != nil && equality.Semantic.DeepEqual(was.Spec, now.Spec) &&
		slices.EqualFunc(was.Status.Shards, now.Status.Shards, func(a, b v1alpha1.ShardStatus) bool {
			a.Addresses, b.Addresses = 0, 0
			return equality.Semantic.DeepEqual(a, b)
		}) && isMoving(was) == isMoving(now) &&
		slices.Equal(excluded(was, v1alpha1.ExcludedDraining), excluded(now, v1alpha1.ExcludedDraining)) &&
		slices.Equal(excluded(was, v1alpha1.ExcludedFaulty), excluded(now, v1alpha1.ExcludedFaulty))
}

// isMoving reports whether shards of an L2Domain move on request.
func isMoving(d *v1alpha1.L2Domain) bool {
	return d.Status.Move != nil && d.Status.Move.State == v1alpha1.MoveInProgress
}

// excluded returns the nodes that are excluded for a reason according to the status of an L2Domain.
func excluded(d *v1alpha1.L2Domain, reason string) []string {
	var names []string
	for _, n := range d.Status.ExcludedNodes {
		if n.Reason == reason {
			names = append(names, n.Name)
		}
	}
	return names
}

// setPlan stores a ServicePlan. One without the name of its Service is no plan: it would compete with that of the
// Service until the controller deletes it.
func (p *published) setPlan(old, now *v1alpha1.ServicePlan) bool {
	name := cmp.Or(now, old).Name
	was := p.plans[name]
	if now == nil || zones.Name(world.Key{Namespace: now.Spec.Namespace, Name: now.Spec.Name}) != name {
		if was != nil {
			p.changed[name] = was.key
			delete(p.plans, name)
		}
		return was != nil
	}
	decoded, err := zones.Decode(&now.Spec)
	is := &publishedPlan{key: world.Key{Namespace: now.Spec.Namespace, Name: now.Spec.Name},
		version: zones.Version(now), plan: decoded}
	if err != nil {
		klog.ErrorS(err, "Failed to read ServicePlan", "name", now.Name)
		is.problem = err.Error()
		if was != nil {
			is.plan = was.plan
		}
	}
	p.changed[name], p.plans[name] = is.key, is
	return true
}

// hasInterconnect reports whether the cluster is served by zones. Otherwise the controller programs the database of
// most nodes, or will do so, and no zone must have anything: two gateways would answer.
func (p *published) hasInterconnect() bool {
	all := world.ZonesOf(slices.Collect(maps.Values(p.nodes)), true)
	return all.Interconnect
}

// withdrawn returns what the zone of a node must contain once the Node has been deleted: nothing. The machine may go on
// running with the order of gateways of before, in which it is active, while the other zones have another gateway.
func withdrawn(node string) *plan.Topology { return &plan.Topology{Zone: &plan.Zone{Node: node}} }

// desired returns what the zone of a node must contain, or false if the databases of the node are not its own, or the
// cluster subnets are unknown. The plans lack those that can't be read (unread). bridges are the bridges of the node.
// The cluster's ClusterSubnets are those that are published.
func (p *published) desired(node string, cluster world.Cluster, bridges world.Bridges) (
	*plan.Topology, map[world.Key]*plan.Service, bool,
) {
	p.shards, p.unread = map[world.ShardID]bool{}, map[world.Key]struct{}{}
	defer p.pruneOrders()
	own := p.nodes[node]
	if own == nil || own.Chassis == "" || !own.HasOwnZone() || len(p.clusterSubnets) == 0 {
		return nil, nil, false
	}
	cluster.ClusterSubnets = p.clusterSubnets
	f := &plan.Topology{Cluster: cluster, Zone: &plan.Zone{Node: node, Chassis: own.Chassis}}
	nodes := slices.Collect(maps.Values(p.nodes))
	hostsOf, podSubnetsOf := world.HostsOf(nodes), world.PodSubnetsOf(nodes)
	for _, n := range p.nodes {
		if n.Chassis != "" {
			f.Nodes = append(f.Nodes, plan.Node{Name: n.Name, Chassis: n.Chassis, Hosts: hostsOf(n),
				PodSubnets: podSubnetsOf(n), Transit: n.Transit})
		}
	}
	slices.SortFunc(f.Nodes, func(a, b plan.Node) int { return cmp.Compare(a.Name, b.Name) })
	if !p.hasInterconnect() {
		clear(p.changed)
		return f, map[world.Key]*plan.Service{}, true
	}
	for _, name := range slices.Sorted(maps.Keys(p.domains)) {
		d := convert.Domain(p.domains[name], nil, slices.Collect(maps.Values(p.objects)))
		if len(d.Problems) > 0 {
			continue
		}
		f.Domains = append(f.Domains, p.domain(d, own, bridges))
	}
	plans := make(map[world.Key]*plan.Service, len(p.plans))
	for _, o := range p.plans {
		if o.plan != nil {
			plans[o.key] = p.withShards(o)
		} else {
			p.unread[o.key] = struct{}{}
		}
	}
	clear(p.changed)
	p.whole = false
	return f, plans, true
}

// changes returns the plans of the Services that have changed since the last call, or since desired; nil for none. It
// returns false if more than plans has changed: then desired returns what the zone must contain.
func (p *published) changes() (map[world.Key]*plan.Service, bool) {
	if p.whole {
		return nil, false
	}
	plans := make(map[world.Key]*plan.Service, len(p.changed))
	for name, key := range p.changed {
		switch o := p.plans[name]; {
		case o == nil:
			plans[key] = nil
		case o.plan != nil:
			plans[key] = p.withShards(o)
		} // otherwise it was never read, which is no removal
	}
	clear(p.changed)
	return plans, true
}

// withShards returns a plan without the addresses whose shards the zone does not have: a ServicePlan and the status of
// its L2Domain are read independently.
func (p *published) withShards(o *publishedPlan) *plan.Service {
	if !slices.ContainsFunc(o.plan.VIPs, func(v plan.VIP) bool { return !p.shards[v.Shard] }) {
		return o.plan
	}
	return o.plan.Only(func(v plan.VIP) bool { return p.shards[v.Shard] })
}

// domain returns a domain with its published shards, and records them in p.shards.
func (p *published) domain(d *world.Domain, own *world.Node, bridges world.Bridges) plan.Domain {
	out := plan.Domain{Name: d.Name, PhysicalNetwork: d.PhysicalNetwork, VLAN: d.VLAN, Subnets: d.Subnets,
		Detect: d.Detect, DetectMultiplier: d.DetectMultiplier, Announce: d.Announce}
	sharedBridge := false
	// The port on the bridge of OVN-Kubernetes' own gateway must exist for the whole life of the domain, and on a node
	// that is no longer selected until its shards have moved.
	if bridge := bridges[d.PhysicalNetwork]; bridge != "" && bridge == own.GatewayBridge &&
		(slices.Contains(d.Nodes, own.Name) || isGateway(d, own.Name)) {
		out.Residents = []string{own.Chassis}
		sharedBridge = own.SharedGateway
	}
	for _, index := range slices.Sorted(maps.Keys(d.Ordinals)) {
		id := world.ShardID{Domain: d.Name, Index: index}
		shard := plan.Shard{ID: id, Ordinal: d.Ordinals[index], Handover: p.handovers[id]}
		for _, name := range p.orderOf(id, d.Gateways[index], own.Name) {
			// Another node whose Node has the chassis of this one does not make this one a gateway.
			if n := p.nodes[name]; n != nil && n.Chassis != "" && (n.Chassis != own.Chassis || n.Name == own.Name) {
				shard.Gateways = append(shard.Gateways, plan.Gateway{Node: n.Name, Chassis: n.Chassis,
					SharedBridge: sharedBridge && n.Name == own.Name})
			}
		}
		for _, addr := range d.Anchors[index] {
			at := slices.IndexFunc(d.Subnets, func(s world.Subnet) bool { return s.Prefix.Contains(addr) })
			if at >= 0 {
				shard.Anchors = append(shard.Anchors, netip.PrefixFrom(addr, d.Subnets[at].Prefix.Bits()))
			}
		}
		if len(shard.Anchors) > 0 {
			if p.shards[id] = len(shard.Gateways) > 0; p.shards[id] {
				out.Shards = append(out.Shards, shard)
			}
		}
	}
	return out
}

// isGateway reports whether a node is a gateway of a published shard of a domain.
func isGateway(d *world.Domain, node string) bool {
	for _, order := range d.Gateways {
		if slices.Contains(order, node) {
			return true
		}
	}
	return false
}

// podSubnets returns the pod subnets of a node, nil if it is unknown.
func (p *published) podSubnets(node string) []netip.Prefix {
	if n := p.nodes[node]; n != nil && n.Chassis != "" {
		return n.PodSubnets
	}
	return nil
}

// shardsOf returns the shards that are published, and those of which a node is a gateway.
func (p *published) shardsOf(node string) (all, own map[world.ShardID]bool) {
	all, own = map[world.ShardID]bool{}, map[world.ShardID]bool{}
	for name, d := range p.domains {
		for _, s := range d.Status.Shards {
			id := world.ShardID{Domain: name, Index: int(s.Index)}
			if s.Ordinal != nil {
				all[id] = true
			}
			if slices.Contains(s.Gateways, node) {
				own[id] = true
			}
		}
	}
	return all, own
}

// activeGateways returns the published active gateways of shards.
func (p *published) activeGateways() map[world.ShardID]string {
	active := map[world.ShardID]string{}
	for name, d := range p.domains {
		for _, s := range d.Status.Shards {
			active[world.ShardID{Domain: name, Index: int(s.Index)}] = s.Active
		}
	}
	return active
}
