// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// readSourceRanges fails closed: an invalid range admits no client.
func (r *serviceReader) readSourceRanges() {
	source := listedRanges(r.service)
	if source.value == "" {
		return
	}
	r.out.ListedRanges = strings.Count(source.value, ",") + 1
	if r.out.ListedRanges > world.MaxListedRanges {
		r.out.SourceRanges = MergeRanges([]netip.Prefix{{}})
		return
	}
	if f := r.options.Former; f != nil && len(f.World.Problems) == 0 && listedRanges(f.Object) == source {
		r.out.SourceRanges = f.World.SourceRanges
		r.limitFamilies(source)
		return
	}
	var ranges []netip.Prefix
	for text := range strings.SplitSeq(source.value, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || p.Addr().Is4In6() {
			r.problem("%s: %q is not a CIDR", source.field, strings.TrimSpace(text))
			p = netip.Prefix{} // admits no client; without any range all clients would be admitted
		}
		ranges = append(ranges, p.Masked())
	}
	r.out.SourceRanges = MergeRanges(ranges)
	r.limitFamilies(source)
}

// limitFamilies adds the limit of each family that no range admits.
func (r *serviceReader) limitFamilies(source setting) {
	for _, f := range r.out.Families {
		if admitted, restricted := r.out.SourceRanges[f]; restricted && len(admitted) == 0 {
			r.limit("%s: %q has no %s range, so layer 2 admits no client over %s", source.field, source.value, f, f)
		}
	}
}

// ListedRanges returns the source ranges of a Service as they are written.
func ListedRanges(s *corev1.Service) []string {
	source := listedRanges(s)
	if source.value == "" {
		return nil
	}
	ranges := strings.Split(source.value, ",")
	for i := range ranges {
		ranges[i] = strings.TrimSpace(ranges[i])
	}
	return ranges
}

func listedRanges(s *corev1.Service) setting {
	if list := strings.Join(s.Spec.LoadBalancerSourceRanges, ","); list != "" {
		return setting{"spec.loadBalancerSourceRanges", list}
	}
	name := corev1.AnnotationLoadBalancerSourceRangesKey
	return setting{annotationField(name), strings.TrimSpace(s.Annotations[name])}
}

// MergeRanges returns source ranges as world.Service.SourceRanges has them.
func MergeRanges(ranges []netip.Prefix) map[world.Family][]netip.Prefix {
	if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Bits() != 0 }) {
		return nil
	}
	builders := map[world.Family]*netipx.IPSetBuilder{world.IPv4: {}, world.IPv6: {}}
	for _, p := range ranges {
		if p.IsValid() {
			builders[world.FamilyOf(p.Addr())].AddPrefix(p)
		}
	}
	out := map[world.Family][]netip.Prefix{}
	for f, b := range builders {
		set, err := b.IPSet()
		if err != nil { // impossible: only valid prefixes were added
			panic(err)
		}
		admitted := set.Prefixes()
		if len(admitted) != 1 || admitted[0].Bits() != 0 {
			out[f] = admitted
		}
	}
	return out
}
