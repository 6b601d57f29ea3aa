// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Defaults of the CRD, for objects to which they were not applied. The default number of shards is in package place.
const (
	defaultMaxGateways = 5
	defaultDetect      = 200 * time.Millisecond
	defaultMultiplier  = 3
)

// Domain converts an L2Domain and resolves its selectors. Names are sorted. Names of pools that do not exist are kept
// and reported by package place. Invalid subnets are problems of the domain.
func Domain(d *v1alpha1.L2Domain, pools []*v1alpha1.IPAddressPool, nodes []*corev1.Node) *world.Domain {
	spec := &d.Spec
	out := &world.Domain{
		Name:             d.Name,
		Created:          d.CreationTimestamp.Time,
		PhysicalNetwork:  spec.PhysicalNetwork,
		VLAN:             int(spec.VLAN),
		MaxGateways:      int(cmp.Or(spec.Gateways.Max, defaultMaxGateways)),
		Shards:           int(spec.Gateways.Shards),
		Detect:           defaultDetect,
		DetectMultiplier: int(cmp.Or(spec.Failover.Multiplier, defaultMultiplier)),
		Preempt:          spec.Failover.Preempt,
		Problems:         problems(d.Validate()),
	}
	if i := spec.Failover.DetectInterval; i != nil {
		out.Detect = i.Duration
	}
	if i := spec.AnnounceInterval; i != nil {
		out.Announce = i.Duration
	}
	for _, s := range spec.Subnets {
		prefix, err := netip.ParsePrefix(s.CIDR)
		if err != nil {
			continue
		}
		gateway, err := s.Gateway.Parse()
		if err != nil {
			gateway = netip.Addr{}
		}
		out.Subnets = append(out.Subnets, world.Subnet{Prefix: prefix.Masked(), Gateway: gateway})
	}

	out.Anchors, out.Ordinals, out.Gateways, out.Active = Anchors(d), Ordinals(d), Gateways(d), active(d)
	out.Move, out.Moved = Move(d)
	out.Served = servedIn(d)
	out.Pools = chosenPools(spec.IPAddressPools, spec.IPAddressPoolSelectors, pools)
	out.Nodes = chosenNodes(spec.NodeSelectors, nodes)
	out.Services = serviceSelectors(spec.ServiceSelectors)
	for _, p := range spec.Gateways.Preferred {
		out.Preferred = append(out.Preferred, world.Preference{Weight: int(p.Weight),
			Nodes: chosenNodes([]metav1.LabelSelector{p.Preference}, nodes)})
	}
	return out
}

// chosenPools returns the names of the pools that are listed or match a selector, or of all pools if there are neither
// names nor selectors. The result is sorted and has no duplicates. Listed pools need not exist.
func chosenPools(names []string, selectors []metav1.LabelSelector, pools []*v1alpha1.IPAddressPool) []string {
	chosen := slices.Clone(names)
	takes := selector(selectors)
	every := len(names) == 0 && len(selectors) == 0
	for _, p := range pools {
		if every || takes(p.Labels) {
			chosen = append(chosen, p.Name)
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen)
}

// chosenNodes returns the sorted names of the nodes that match a selector, or of all nodes if there is none.
func chosenNodes(selectors []metav1.LabelSelector, nodes []*corev1.Node) []string {
	var chosen []string
	takes := selector(selectors)
	for _, n := range nodes {
		if len(selectors) == 0 || takes(n.Labels) {
			chosen = append(chosen, n.Name)
		}
	}
	slices.Sort(chosen)
	return chosen
}

// servedIn returns the mode in which a domain is or was served. Versions without status.mode publish ordinals only with
// interconnect.
func servedIn(d *v1alpha1.L2Domain) world.ServingMode {
	if d.Status.Mode == "" && slices.ContainsFunc(d.Status.Shards, func(s v1alpha1.ShardStatus) bool {
		return s.Ordinal == nil
	}) {
		return world.ServedCentrally
	}
	return world.ServingMode(d.Status.Mode)
}

// Anchors returns the external addresses of a domain's shards from its status, by index; nil if there are none.
func Anchors(d *v1alpha1.L2Domain) map[int][]netip.Addr {
	if d == nil {
		return nil
	}
	var anchors map[int][]netip.Addr
	for _, s := range d.Status.Shards {
		for _, text := range s.Anchors {
			if a, err := v1alpha1.IPAddress(text).Parse(); err == nil {
				if anchors == nil {
					anchors = map[int][]netip.Addr{}
				}
				anchors[int(s.Index)] = append(anchors[int(s.Index)], a)
			}
		}
	}
	return anchors
}

// Ordinals returns the ordinals of a domain's shards from its status, by index; nil if there are none.
func Ordinals(d *v1alpha1.L2Domain) map[int]int {
	if d == nil {
		return nil
	}
	var ordinals map[int]int
	for _, s := range d.Status.Shards {
		if s.Ordinal != nil {
			if ordinals == nil {
				ordinals = map[int]int{}
			}
			ordinals[int(s.Index)] = int(*s.Ordinal)
		}
	}
	return ordinals
}

// Gateways returns the gateways of a domain's shards from its status, by index; nil if there are none.
func Gateways(d *v1alpha1.L2Domain) map[int][]string {
	if d == nil || len(d.Status.Shards) == 0 {
		return nil
	}
	gateways := make(map[int][]string, len(d.Status.Shards))
	for _, s := range d.Status.Shards {
		gateways[int(s.Index)] = s.Gateways
	}
	return gateways
}

// active returns the active gateways of a domain's shards from its status, by index; nil if there are none.
func active(d *v1alpha1.L2Domain) map[int]string {
	var active map[int]string
	for _, s := range d.Status.Shards {
		if s.Active != "" {
			if active == nil {
				active = map[int]string{}
			}
			active[int(s.Index)] = s.Active
		}
	}
	return active
}

// Move returns the request to move shards of a domain, nil without one, and the progress of the last request.
func Move(d *v1alpha1.L2Domain) (*world.MoveRequest, world.MoveResult) {
	var last world.MoveResult
	if m := d.Status.Move; m != nil {
		last = world.MoveResult{Text: m.Request, State: world.MoveState(m.State), Message: m.Message}
	}
	text, ok := d.Annotations[v1alpha1.AnnotationMove]
	if !ok {
		return nil, last
	}
	out := &world.MoveRequest{Text: text[:min(len(text), v1alpha1.MaxMoveRequest)]}
	r, err := v1alpha1.ParseMoveRequest(text)
	if err != nil {
		out.Problem = err.Error()
		return out, last
	}
	out.Node = r.Node
	for _, index := range r.Shards {
		out.Shards = append(out.Shards, int(index))
	}
	return out, last
}

// selector returns a function that reports whether labels match at least one of the terms. An invalid term is a problem
// of the domain and matches nothing.
func selector(terms []metav1.LabelSelector) func(map[string]string) bool {
	var parsed []labels.Selector
	for i := range terms {
		if s, err := metav1.LabelSelectorAsSelector(&terms[i]); err == nil {
			parsed = append(parsed, s)
		}
	}
	return func(l map[string]string) bool {
		return slices.ContainsFunc(parsed, func(s labels.Selector) bool { return s.Matches(labels.Set(l)) })
	}
}
