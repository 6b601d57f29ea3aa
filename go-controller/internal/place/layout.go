// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Layout says which shards there are and who may carry them.
type Layout struct {
	// Domains are sorted by name.
	Domains []*Domain
	// byAge has the same ones, the oldest first; byPool those that carry a pool.
	byAge  []*Domain
	byPool map[string]*Domain
}

// Domain is a layer 2 domain with its shards.
type Domain struct {
	Spec *world.Domain
	// Shards are in order of their index; none if the domain has no gateway.
	Shards []Shard
	// LeftOut are the domain's nodes that shall carry nothing, by name.
	LeftOut []LeftOut
	// Pools are those of its spec that it carries, sorted: they exist, and no older
	// domain has them.
	Pools []string
	// Problems are what is wrong between this domain and the rest of the world, beyond
	// the problems that its spec has by itself: no gateway, or pools that it does not get.
	Problems []string
	// Remarks are weaknesses of a domain that works.
	Remarks []string
	// noGateway says why the domain has no shards.
	noGateway string
	seeds     []uint64
}

// Shard is a unit of failover with its gateways by falling preference.
type Shard struct {
	ID       world.ShardID
	Gateways []plan.Gateway
}

// LeftOut is a node that shall carry nothing, and why.
type LeftOut struct {
	Node    string
	Reason  Reason
	Message string
}

// defaultShards is how many shards a domain has that does not say how many it wants. A
// constant: with a number that followed the nodes, a new node would move addresses, and
// clients that know an address by its former MAC would lose it for a while.
const defaultShards = 8

// Lay lays out the shards of all domains.
func Lay(w *world.Snapshot) *Layout {
	nodes := make(map[string]*world.Node, len(w.Nodes))
	for _, n := range w.Nodes {
		nodes[n.Name] = n
	}
	pools := make(map[string]bool, len(w.Pools))
	for _, p := range w.Pools {
		pools[p.Name] = true
	}
	l := &Layout{byPool: make(map[string]*Domain)}
	for _, spec := range w.Domains {
		l.byAge = append(l.byAge, lay(spec, nodes, w.Carriers))
	}
	slices.SortFunc(l.byAge, func(a, b *Domain) int {
		return cmp.Or(a.Spec.Created.Compare(b.Spec.Created), cmp.Compare(a.Spec.Name, b.Spec.Name))
	})
	for _, d := range l.byAge {
		l.claim(d, pools)
	}
	l.Domains = slices.SortedFunc(slices.Values(l.byAge), func(a, b *Domain) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
	return l
}

// claim gives a domain the pools that no older one has.
func (l *Layout) claim(d *Domain, exists map[string]bool) {
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

func lay(spec *world.Domain, nodes map[string]*world.Node, carriers map[world.ShardID]world.Carrier) *Domain {
	d := &Domain{Spec: spec}
	members := d.members(nodes)
	if len(members) == 0 {
		d.noGateway = d.whyNone()
		d.Problems = append(d.Problems, d.noGateway)
		return d
	}
	d.remark(members)
	count := spec.Shards
	if count <= 0 {
		count = defaultShards
	}
	d.seeds = make([]uint64, count)
	for i := range d.seeds {
		d.seeds[i] = seed(spec.Name, i)
	}
	orders := d.orders(members)
	serves := make(map[*world.Node]bool, len(members))
	for i, order := range orders {
		shard := Shard{ID: world.ShardID{Domain: spec.Name, Index: i}}
		if !spec.Preempt {
			order = keepCarrier(order, d.fittest(members), carriers[shard.ID])
		}
		if spec.MaxGateways > 0 {
			order = order[:min(len(order), spec.MaxGateways)]
		}
		for _, n := range order {
			serves[n] = true
			shard.Gateways = append(shard.Gateways, plan.Gateway{Node: n.Name, Chassis: n.Chassis})
		}
		d.Shards = append(d.Shards, shard)
	}
	for _, n := range members {
		switch {
		case d.fault(n) != "":
			d.leaveOut(n.Name, ReasonFaulty, fmt.Sprintf("node %q reports: %s", n.Name, d.fault(n)))
		case n.Draining != "":
			d.leaveOut(n.Name, ReasonDraining, fmt.Sprintf("node %q drains: %s", n.Name, n.Draining))
		case !serves[n]:
			d.leaveOut(n.Name, ReasonEnoughGateways, fmt.Sprintf("gateways.max is %d, and every shard has that many others", spec.MaxGateways))
		}
	}
	slices.SortFunc(d.LeftOut, func(a, b LeftOut) int { return cmp.Compare(a.Node, b.Node) })
	return d
}

// members returns the nodes that may be gateways, by name, and leaves out the others.
func (d *Domain) members(nodes map[string]*world.Node) []*world.Node {
	var list []*world.Node
	for _, name := range slices.Compact(slices.Sorted(slices.Values(d.Spec.Nodes))) {
		switch n := nodes[name]; {
		case n == nil:
			d.leaveOut(name, ReasonNoChassis, fmt.Sprintf("node %q does not exist", name))
		case n.Chassis == "":
			d.leaveOut(name, ReasonNoChassis, fmt.Sprintf("OVN-Kubernetes has not told the chassis of node %q yet", name))
		default:
			list = append(list, n)
		}
	}
	return list
}

func (d *Domain) leaveOut(node string, reason Reason, message string) {
	d.LeftOut = append(d.LeftOut, LeftOut{node, reason, message})
}

func (d *Domain) whyNone() string {
	if len(d.LeftOut) == 0 {
		return "no node is selected, so there is no gateway"
	}
	return fmt.Sprintf("none of the %d nodes selected can be a gateway: %s", len(d.LeftOut), d.LeftOut[0].Message)
}

func (d *Domain) remark(members []*world.Node) {
	n := len(members)
	if d.Spec.MaxGateways > 0 {
		n = min(n, d.Spec.MaxGateways)
	}
	if n < v1alpha1.MinGatewaysForFailover {
		d.Remarks = append(d.Remarks, fmt.Sprintf(
			"fewer than %d gateways: a shard has %d, and the last one left takes over only while it hears another chassis",
			v1alpha1.MinGatewaysForFailover, n))
	}
	switch best := d.fittest(members)[0]; d.fitness(best) {
	case fit:
	case leaving:
		d.Remarks = append(d.Remarks, "all gateways are draining, and carry on for want of others")
	case faulty:
		d.Remarks = append(d.Remarks, "all gateways are faulty, and carry on for want of others: "+d.fault(best))
	}
}

// orders returns the members in the order that each shard prefers them, the fitter ones
// before the others.
func (d *Domain) orders(members []*world.Node) [][]*world.Node {
	var groups [faulty + 1][]int
	for i, n := range members {
		f := d.fitness(n)
		groups[f] = append(groups[f], i)
	}
	weight := make([][]uint64, len(d.seeds))
	for i, s := range d.seeds {
		weight[i] = make([]uint64, len(members))
		for j, n := range members {
			weight[i][j] = mix(fnv(s, n.Name))
		}
	}
	orders := make([][]*world.Node, len(d.seeds))
	for _, group := range groups {
		for i, ranks := range order(weight, group, d.Spec.MaxGateways) {
			for _, j := range ranks {
				orders[i] = append(orders[i], members[j])
			}
		}
	}
	return orders
}

// keepCarrier puts the gateway that carries the shard first, if none is fitter. While
// nobody is known to carry it for good, that is the one which OVN is told to prefer: a
// gateway that returns may claim a shard for a moment, and must not keep it for that.
func keepCarrier(order, fittest []*world.Node, c world.Carrier) []*world.Node {
	preferred := append(slices.Clone(c.Order), c.Active)
	if c.Settled {
		preferred = append([]string{c.Active}, c.Order...)
	}
	for _, chassis := range preferred {
		i := slices.IndexFunc(fittest, func(n *world.Node) bool { return n.Chassis == chassis })
		if i < 0 {
			continue
		}
		kept := make([]*world.Node, 0, len(order)+1)
		kept = append(kept, fittest[i])
		for _, n := range order {
			if n != fittest[i] {
				kept = append(kept, n)
			}
		}
		return kept
	}
	return order
}

// ShardOf returns the shard that an address of a pool is in by its hash; false if no
// working domain has the pool. The zero pool stands for an address in none; such an
// address is in the domain whose subnet has it.
func (l *Layout) ShardOf(pool string, a netip.Addr) (world.ShardID, bool) {
	d := l.domain(pool, a)
	if d == nil || len(d.Spec.Problems) > 0 || len(d.seeds) == 0 {
		return world.ShardID{}, false
	}
	return d.shard(a), true
}

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

// subnet returns the subnet of the domain that has the address.
func (d *Domain) subnet(a netip.Addr) (netip.Prefix, bool) {
	for _, s := range d.Spec.Subnets {
		if s.Prefix.Contains(a) {
			return s.Prefix, true
		}
	}
	return netip.Prefix{}, false
}
