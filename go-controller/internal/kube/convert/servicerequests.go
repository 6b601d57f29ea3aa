// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// annotation returns a setting from our annotation or else, if enabled, from MetalLB's.
func (r *serviceReader) annotation(ours string, metallb ...string) (setting, bool) {
	names := []string{ours}
	if r.options.MetalLBAnnotations {
		names = append(names, metallb...)
	}
	for _, name := range names {
		if value := strings.TrimSpace(r.service.Annotations[name]); value != "" {
			return setting{annotationField(name), value}, true
		}
	}
	return setting{}, false
}

func (r *serviceReader) readRequests() {
	if pool, ok := r.annotation(v1alpha1.AnnotationAddressPool,
		v1alpha1.AnnotationMetalLBAddressPool, v1alpha1.AnnotationMetalLBLegacyAddressPool); ok {
		// No pool has a name that is truncated.
		r.out.RequestedPool, r.out.PoolRequestedBy = Truncate(pool.value, maxForeignText), pool.field
		r.out.FromRequested = fromPool(r.service, r.out.RequestedPool)
	}
	if key, ok := r.annotation(v1alpha1.AnnotationAllowSharedIP,
		v1alpha1.AnnotationMetalLBAllowSharedIP, v1alpha1.AnnotationMetalLBLegacyAllowSharedIP); ok {
		r.out.SharingKey = shortKey(key.value)
	}
	r.readAddresses()
}

// shortKey returns a key that is equal for equal keys only. It has at most maxForeignText bytes: a pass looks each key
// up as often as its Services have ports.
func shortKey(key string) string {
	if len(key) <= maxForeignText {
		return key
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key)))
}

// readAddresses reads the requested addresses.
func (r *serviceReader) readAddresses() {
	request, annotated := r.annotation(v1alpha1.AnnotationLoadBalancerIPs,
		v1alpha1.AnnotationMetalLBLoadBalancerIPs, v1alpha1.AnnotationMetalLBLegacyLoadBalancerIPs)
	if annotated {
		r.out.Requested, r.out.RequestedBy = r.requested(request), request.field
	}
	field := setting{"spec.loadBalancerIP", r.service.Spec.LoadBalancerIP}
	if field.value == "" {
		return
	}
	addrs := r.requested(field)
	switch {
	case !annotated:
		r.out.Requested, r.out.RequestedBy = addrs, field.field
	case addrs != nil && r.out.Requested != nil && !sameAddrs(addrs, r.out.Requested):
		r.problem("%s: %q asks for other addresses than %s: %q; keep one of them",
			field.field, field.value, request.field, request.value)
	}
}

// requested parses a comma-separated list of addresses of the Service's families, at most one per family. It returns
// nil and adds a problem if the list is invalid.
func (r *serviceReader) requested(s setting) []netip.Addr {
	var addrs []netip.Addr
	for text := range strings.SplitSeq(s.value, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		switch {
		case err != nil:
			r.problem("%s: %q is not an IP address", s.field, strings.TrimSpace(text))
			return nil
		case a.Zone() != "" || a.Is4In6():
			r.problem("%s: %q is neither a plain IPv4 nor a plain IPv6 address", s.field, strings.TrimSpace(text))
			return nil
		case !slices.Contains(r.out.Families, world.FamilyOf(a)):
			r.problem("%s: %q is an %s address, but the Service has the families %v (spec.ipFamilies)",
				s.field, a, world.FamilyOf(a), r.out.Families)
			return nil
		case slices.ContainsFunc(addrs, func(b netip.Addr) bool { return world.FamilyOf(a) == world.FamilyOf(b) }):
			r.problem("%s: %q has more than one %s address", s.field, s.value, world.FamilyOf(a))
			return nil
		}
		addrs = append(addrs, a)
	}
	return addrs
}

func sameAddrs(a, b []netip.Addr) bool {
	return slices.Equal(
		slices.SortedFunc(slices.Values(a), netip.Addr.Compare),
		slices.SortedFunc(slices.Values(b), netip.Addr.Compare))
}
