// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// MaxSourceRanges is the maximum number of source ranges of a Service, of both families, after adjacent and overlapping
// ones were merged. Each node has two flows for each range, address and protocol: one for fragments.
const MaxSourceRanges = 2000

// MaxAddresses is the maximum number of addresses of a Service, those of spec.externalIPs included, each counted for
// each protocol. Each of them takes up to six rows, ten in a zone with in-ports. The rows of a Service are written in
// one transaction: one of 20,000 rows took 5 s, and with 99,000 the server was silent for longer than a connection to
// it lasts.
const MaxAddresses = 2500

// MaxSlicePorts is the maximum number of ports in the EndpointSlices of a Service that have endpoints, counted for each
// slice. An EndpointSlice may have 20,000, whatever ports the Service has, and each change of an endpoint looks at all.
// A Service with as many ports of its own has more backends than a Service may have by default.
const MaxSlicePorts = 100_000

// sourceRangeCost is how many backends a source range counts for: flows on each node take that much more memory than
// the backends of a group.
const sourceRangeCost = 20

// Demand is how much OVN must hold for a Service.
type Demand struct {
	// Backends is addresses x ports x endpoints, ready or not, with at least one endpoint per port.
	Backends int
	// ListedRanges are the source ranges of the Service, and SourceRanges those that are left after they were merged.
	// ACLRanges counts the latter for each address and protocol to which they apply.
	ListedRanges, SourceRanges, ACLRanges int
	// Addresses are the addresses of the Service, counted for each protocol.
	Addresses int
	// SlicePorts is what MaxSlicePorts limits.
	SlicePorts int
}

// Work is how much there is to examine when a plan is made, in backends.
func (d Demand) Work() int { return d.Backends + d.SlicePorts }

func (d Demand) cost() int { return d.Backends + sourceRangeCost*d.ACLRanges }

// DemandOf returns the demand of a Service with these addresses. Its cost grows with the size of the Service and of its
// slices, not with their product.
func DemandOf(s *world.Service, vips []VIP) Demand {
	if len(vips) == 0 {
		return Demand{}
	}
	d := Demand{SlicePorts: slicePorts(s), ListedRanges: s.ListedRanges}
	for _, list := range s.SourceRanges {
		d.SourceRanges += len(list)
	}
	protocols := map[world.Protocol]bool{}
	for _, p := range s.Ports {
		protocols[p.Protocol] = true
	}
	d.Addresses = len(vips) * len(protocols)
	backends := map[world.Family]int{}
	for _, vip := range vips {
		f := world.FamilyOf(vip.Addr)
		if _, counted := backends[f]; !counted {
			of := targetsOf(s, f)
			for _, port := range s.Ports {
				backends[f] += max(1, of[idOf(port)].endpoints())
			}
		}
		d.Backends += backends[f]
		d.ACLRanges += len(protocols) * len(s.SourceRanges[f])
	}
	return d
}

// Excess is the limit that a Service exceeds. The zero value means that it exceeds none.
type Excess struct {
	Limit Limit
	// Demand is the Service's own.
	Demand Demand
}

// Limit identifies a limit of world.Limits.
type Limit uint8

// The limits, in the order in which they are checked.
const (
	NoLimit Limit = iota
	RangesOfService
	AddressesOfService
	SlicePortsOfService
	BackendsOfService
	BackendsOfNamespace
	BackendsOfCluster
)

// Budget reports which Services fit into the limits. It is empty without Services.
type Budget struct {
	limits world.Limits
	total  int
	used   map[string]int // by namespace
	// full are the namespaces in which Services exceed the limit of the namespace. shared is set if the limit of the
	// cluster is exceeded.
	full   map[string]bool
	shared bool
	// share is the most that a namespace gets, but for what others leave. advanced is what Advance gave each beyond the
	// limit of the cluster.
	share    int
	advanced map[string]int
}

// ServiceDemand is a Service with its demand.
type ServiceDemand struct {
	Key    world.Key
	Demand Demand
}

// NewBudget decides which Services get what they need, and returns the limits that the others exceed. oldestFirst are
// all Services in order of precedence.
//
// A Service gets all that it needs or nothing: a part would serve some clients and not others. Within a namespace,
// older Services come first. If all namespaces together need more than the cluster programs, the largest ones are
// reduced to an equal share and what is left by others (Divide), so that no namespace loses anything to another one
// that needs more.
func NewBudget(limits world.Limits, oldestFirst []ServiceDemand) (*Budget, map[world.Key]Excess) {
	excess := map[world.Key]Excess{}
	var fit []ServiceDemand
	for _, c := range oldestFirst {
		if own := beyondOwn(limits, c.Demand); own.Limit != NoLimit {
			excess[c.Key] = own
		} else {
			fit = append(fit, c)
		}
	}
	b := &Budget{limits: limits, full: map[string]bool{}, advanced: map[string]int{}}
	b.share = orUnlimited(limits.NamespaceBackends)
	b.grant(fit, BackendsOfNamespace, excess, func(c ServiceDemand) bool {
		return b.used[c.Key.Namespace]+c.Demand.cost() <= b.share
	})
	if b.shared = b.total > orUnlimited(limits.Backends); b.shared {
		fit = slices.DeleteFunc(fit, func(c ServiceDemand) bool { return excess[c.Key].Limit != NoLimit })
		claims := make([]Claim[world.Key], len(fit))
		for i, c := range fit {
			claims[i] = Claim[world.Key]{Namespace: c.Key.Namespace, Key: c.Key, Cost: c.Demand.cost()}
		}
		var granted map[world.Key]bool
		granted, b.share = Divide(claims, limits.Backends)
		b.grant(fit, BackendsOfCluster, excess, func(c ServiceDemand) bool { return granted[c.Key] })
	}
	return b, excess
}

// orUnlimited returns a limit of world.Limits as a number that is not exceeded if there is none.
func orUnlimited(limit int) int {
	if limit == 0 {
		return math.MaxInt
	}
	return limit
}

// grant counts the Services that fit, oldest first. The others exceed the limit.
func (b *Budget) grant(oldestFirst []ServiceDemand, limit Limit, excess map[world.Key]Excess,
	fits func(ServiceDemand) bool) {
	b.total, b.used = 0, map[string]int{}
	for _, c := range oldestFirst {
		if !fits(c) {
			excess[c.Key] = Excess{limit, c.Demand}
			b.full[c.Key.Namespace] = true
			continue
		}
		b.used[c.Key.Namespace] += c.Demand.cost()
		b.total += c.Demand.cost()
	}
}

// beyondOwn returns the limit that a Service exceeds by itself.
func beyondOwn(limits world.Limits, d Demand) Excess {
	switch {
	case d.SourceRanges > MaxSourceRanges, d.ListedRanges > world.MaxListedRanges:
		return Excess{RangesOfService, d}
	case d.Addresses > MaxAddresses:
		return Excess{AddressesOfService, d}
	case d.SlicePorts > MaxSlicePorts:
		return Excess{SlicePortsOfService, d}
	case limits.ServiceBackends > 0 && d.Backends > limits.ServiceBackends:
		return Excess{BackendsOfService, d}
	}
	return Excess{}
}

// Replace changes the demand of one Service, which is zero before it exists and after it is gone, and returns the limit
// that it exceeds by itself. If it returns false, the change may affect other Services, and a new Budget must be
// computed.
func (b *Budget) Replace(namespace string, was, is Demand) (Excess, bool) {
	more := b.counted(is) - b.counted(was)
	within := func(used, limit int) bool { return used+more <= orUnlimited(limit) }
	if b.shared || b.full[namespace] || !within(b.used[namespace], b.limits.NamespaceBackends) ||
		!within(b.total, b.limits.Backends) {
		return Excess{}, false
	}
	b.used[namespace] += more
	b.total += more
	return beyondOwn(b.limits, is), true
}

// Advance changes the demand of one Service that exceeds no limit if Replace did not, and returns the limit that it
// exceeds by itself now. A new Budget must be computed afterwards: it may give the Service nothing, or others more.
// Advance returns false if the Service must wait for that.
//
// What is given in advance is bounded, because the plans of all namespaces may grow before there is a new Budget: no
// namespace exceeds its share, and the limit of the cluster is exceeded by 1 % for one namespace and by 10 % for all.
func (b *Budget) Advance(namespace string, was, is Demand) (Excess, bool) {
	more := b.counted(is) - b.counted(was)
	if limit := orUnlimited(b.limits.Backends); more > 0 && b.total+more > limit {
		b.advanced[namespace] += more
		if b.advanced[namespace] > limit/100 || b.total+more > limit+limit/10 {
			return Excess{}, false
		}
	}
	if more > 0 && b.used[namespace]+more > b.share {
		return Excess{}, false
	}
	b.used[namespace] += more
	b.total += more
	return beyondOwn(b.limits, is), true
}

// counted returns what a Service that exceeds no limit by itself takes of the limits that it shares with others.
func (b *Budget) counted(d Demand) int {
	if beyondOwn(b.limits, d).Limit != NoLimit {
		return 0
	}
	return d.cost()
}
