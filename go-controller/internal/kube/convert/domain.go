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

// What the CRD's defaults say, for objects that did not pass through them. Without a
// number of shards package place has its own.
const (
	defaultMaxGateways = 5
	defaultDetect      = 200 * time.Millisecond
	defaultMultiplier  = 3
)

// Domain reads an L2Domain and resolves its selectors. Names are sorted; those of pools
// that do not exist are kept, for package place to tell. Subnets that can't be read are
// problems of the domain.
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

	out.Pools = slices.Clone(spec.IPAddressPools)
	poolSelector := selector(spec.IPAddressPoolSelectors)
	everyPool := len(spec.IPAddressPools) == 0 && len(spec.IPAddressPoolSelectors) == 0
	for _, p := range pools {
		if everyPool || poolSelector(p.Labels) {
			out.Pools = append(out.Pools, p.Name)
		}
	}
	nodeSelector := selector(spec.NodeSelectors)
	for _, n := range nodes {
		if len(spec.NodeSelectors) == 0 || nodeSelector(n.Labels) {
			out.Nodes = append(out.Nodes, n.Name)
		}
	}
	slices.Sort(out.Pools)
	out.Pools = slices.Compact(out.Pools)
	slices.Sort(out.Nodes)
	return out
}

// selector matches labels that one of the terms takes. A term that can't be read is a
// problem of the domain and takes none.
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
