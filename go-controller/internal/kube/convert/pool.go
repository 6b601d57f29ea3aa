// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// LabelPrimaryNetwork marks a namespace whose pods have a primary user-defined network of OVN-Kubernetes, which is not
// the default one.
const LabelPrimaryNetwork = "k8s.ovn.org/primary-user-defined-network"

// Namespaces are the labels of the cluster's namespaces, by name.
type Namespaces map[string]map[string]string

// Pool converts a pool and resolves its namespace selectors. The valid ranges of a pool with problems are kept, so that
// the Services that have its addresses are still recognized.
func Pool(p *v1alpha1.IPAddressPool, namespaces Namespaces) *world.Pool {
	out := &world.Pool{
		Name:          p.Name,
		Created:       p.CreationTimestamp.Time,
		Ranges:        ranges(p.Spec.Addresses),
		Exclude:       ranges(p.Spec.Exclude),
		AutoAssign:    p.Spec.AutoAssign == nil || *p.Spec.AutoAssign,
		ExternalIPs:   p.Spec.ExternalIPs,
		AvoidBuggyIPs: p.Spec.AvoidBuggyIPs,

		SharedByCluster: p.Spec.Sharing == v1alpha1.SharingCluster,
		Disabled:        p.Spec.Disabled,
		Admission:       admission(p.Spec.ServiceAllocation, namespaces),
		Problems:        problems(p.Validate()),
	}
	if x := p.Spec.ExternalPool; x != nil {
		out.Ranges, out.External = nil, &world.ExternalPool{
			PoolRef: world.PoolRef{APIGroup: x.APIGroup, Kind: x.Kind, Name: x.Name}, Family: world.IPv4}
		if x.IPFamily == v1alpha1.IPv6 {
			out.External.Family = world.IPv6
		}
	}
	if p.Spec.QuotaPerNamespace != nil {
		out.Quota = int(*p.Spec.QuotaPerNamespace)
	}
	for _, r := range p.Spec.Reservations {
		kept := world.Reservation{Service: world.Key{Namespace: r.Namespace, Name: r.Name}}
		for _, text := range r.Addresses {
			if a, err := text.Parse(); err == nil {
				kept.Addrs = append(kept.Addrs, a)
			}
		}
		out.Reservations = append(out.Reservations, kept)
	}
	if d := p.Spec.ReuseDelay; d != nil && d.Duration > 0 {
		out.ReuseDelay, out.Leases = d.Duration, leases(p.Status.Leases)
	}
	return out
}

// NamespaceSelector returns a function that reports whether the namespace selectors of a pool match the labels of a
// namespace. Those of a pool without any match none.
func NamespaceSelector(p *v1alpha1.IPAddressPool) func(map[string]string) bool {
	if p.Spec.ServiceAllocation == nil {
		return selector(nil)
	}
	return selector(p.Spec.ServiceAllocation.NamespaceSelectors)
}

// WithNamespaces returns a copy of the pool that was converted from p, with its namespace selectors resolved again.
func WithNamespaces(converted *world.Pool, p *v1alpha1.IPAddressPool, namespaces Namespaces) *world.Pool {
	out := *converted
	out.Admission = admission(p.Spec.ServiceAllocation, namespaces)
	return &out
}

func leases(list []v1alpha1.AddressLease) []world.Lease {
	out := make([]world.Lease, 0, len(list))
	for i := range list {
		l := &list[i]
		a, err := v1alpha1.IPAddress(l.Address).Parse()
		if err != nil {
			continue // not written by us
		}
		lease := world.Lease{Addr: a, Service: world.Key{Namespace: l.Namespace, Name: l.Name}}
		if l.ReleasedAt != nil {
			lease.Released = l.ReleasedAt.UTC()
		}
		out = append(out, lease)
	}
	return out
}

func admission(s *v1alpha1.ServiceAllocation, namespaces Namespaces) *world.Admission {
	if s == nil {
		return nil
	}
	a := &world.Admission{
		Priority:     int(s.Priority),
		AnyNamespace: len(s.Namespaces) == 0 && len(s.NamespaceSelectors) == 0,
		Namespaces:   slices.Clone(s.Namespaces),
	}
	matches := selector(s.NamespaceSelectors)
	for name, labels := range namespaces {
		if matches(labels) {
			a.Namespaces = append(a.Namespaces, name)
		}
	}
	slices.Sort(a.Namespaces)
	a.Namespaces = slices.Compact(a.Namespaces)
	a.Services = serviceSelectors(s.ServiceSelectors)
	return a
}

// serviceSelectors converts selectors of Services.
func serviceSelectors(selectors []metav1.LabelSelector) []world.Selector {
	var out []world.Selector
	for i := range selectors {
		out = append(out, requirements(&selectors[i]))
	}
	return out
}

// requirements converts a selector. Validate rejects invalid ones.
func requirements(s *metav1.LabelSelector) world.Selector {
	var out world.Selector
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, world.Requirement{Key: key, Values: []string{s.MatchLabels[key]}})
	}
	for _, e := range s.MatchExpressions {
		out = append(out, world.Requirement{
			Key: e.Key, Values: e.Values,
			Not: e.Operator == metav1.LabelSelectorOpNotIn || e.Operator == metav1.LabelSelectorOpDoesNotExist,
		})
	}
	return out
}

func ranges(texts []v1alpha1.AddressRange) []netipx.IPRange {
	var out []netipx.IPRange
	for _, text := range texts {
		if r, err := text.Parse(); err == nil {
			out = append(out, r)
		}
	}
	return out
}

func problems(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}
