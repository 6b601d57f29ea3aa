// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Options defines which Services are ours, which annotations are read, which taints announce that a node drains, and
// which dataplanes are enabled.
type Options struct {
	// DefaultClass also serves Services without spec.loadBalancerClass, in addition to those of our own class.
	DefaultClass bool
	// Classes are served as our own class is.
	Classes []string
	// MetalLBAnnotations also reads the annotations under metallb.io and metallb.universe.tf.
	MetalLBAnnotations bool
	// DrainTaints are keys of taints that announce a node's outage.
	DrainTaints []string
	// Mode is the mode in force if OpenShift does not set one.
	Mode world.Mode
	// OpenShiftSDN reports whether the kernels of the nodes hold the addresses and there is no OVN.
	OpenShiftSDN bool
	// Former is the version of the Service that was converted last, if it is known. What is expensive to read is taken
	// from there if it is unchanged.
	Former *Former
}

// Former is a Service with its conversion.
type Former struct {
	Object *corev1.Service
	World  *world.Service
}

// Service converts a Service, whose endpoints have already been converted. It returns false if the Service is not ours
// to serve: it has another type or class, or is being deleted.
func Service(s *corev1.Service, endpoints []*world.Slice, o Options) (*world.Service, bool) {
	if !Ours(s, o) {
		return nil, false
	}
	r := serviceReader{service: s, options: o, out: &world.Service{
		Key:             world.Key{Namespace: s.Namespace, Name: s.Name},
		UID:             string(s.UID),
		Created:         s.CreationTimestamp.Time,
		Labels:          s.Labels,
		Selector:        s.Spec.Selector,
		Families:        families(s),
		FamilyPolicy:    familyPolicy(s),
		Assigned:        Assigned(s),
		AssignedHosts:   AssignedHosts(s),
		ListsPorts:      len(s.Status.LoadBalancer.Ingress) > 0 && len(s.Status.LoadBalancer.Ingress[0].Ports) > 0,
		Contested:       contested(s),
		NamesClass:      s.Spec.LoadBalancerClass != nil,
		ExternalIPs:     externalIPs(s),
		Ports:           servicePorts(s),
		SessionAffinity: s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
		LocalPolicy:     s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,

		HeldExternalIPs: HeldExternalIPs(s),
	}}
	r.out.Given, r.out.GivenFrom = listed(s, v1alpha1.ConditionAllocated)
	r.readRequests()
	r.readSourceRanges()
	r.readKeepConnections()
	r.readLimits()
	r.out.Slices = endpoints
	return r.out, true
}

// Ours reports whether a Service has type LoadBalancer and a class that we serve, and is not being deleted.
func Ours(s *corev1.Service, o Options) bool {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.DeletionTimestamp != nil {
		return false
	}
	if s.Spec.LoadBalancerClass == nil {
		return o.DefaultClass
	}
	return *s.Spec.LoadBalancerClass == v1alpha1.LoadBalancerClass || slices.Contains(o.Classes, *s.Spec.LoadBalancerClass)
}

// Assigned returns the addresses in the status of a Service, in their order.
func Assigned(s *corev1.Service) []netip.Addr {
	var addrs []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(ingress.IP); err == nil {
			addrs = append(addrs, a.Unmap())
		}
	}
	return addrs
}

// AssignedHosts returns the host names in the status of a Service that stand there without an address, in their order.
func AssignedHosts(s *corev1.Service) []string {
	var hosts []string
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if ingress.Hostname != "" && ingress.IP == "" {
			hosts = append(hosts, ingress.Hostname)
		}
	}
	return hosts
}

// contested reports whether the status shows that an address is withheld because another host answers for it, or that
// one was before nothing announced it: then Announced has another reason, and only Allocated that one.
func contested(s *corev1.Service) bool {
	conflicts := func(c *metav1.Condition) bool { return c != nil && c.Reason == v1alpha1.ReasonAddressConflict }
	announced := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
	return announced != nil && announced.Status == metav1.ConditionFalse && (conflicts(announced) ||
		conflicts(meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated)))
}

// Given returns the addresses that we allocated according to the status of a Service. A user who may write Services but
// not their status cannot forge them.
func Given(s *corev1.Service) []netip.Addr {
	addrs, _ := listed(s, v1alpha1.ConditionAllocated)
	return addrs
}

// fromPool returns those of the addresses that we allocated that come from a pool according to the status.
func fromPool(s *corev1.Service, pool string) []netip.Addr {
	var from []netip.Addr
	addrs, pools := listed(s, v1alpha1.ConditionAllocated)
	for i, a := range addrs {
		if pools[i] == pool {
			from = append(from, a)
		}
	}
	return from
}

// HeldExternalIPs returns the addresses of spec.externalIPs that a Service holds according to its status.
func HeldExternalIPs(s *corev1.Service) []netip.Addr {
	addrs, _ := listed(s, v1alpha1.ConditionExternalIPs)
	return addrs
}

// listed returns the addresses, separated by ", ", at the beginning of the message of a condition that is True, and for
// each the name of its pool, which may follow it or, if it is that of all, the last one; otherwise it is empty.
func listed(s *corev1.Service, condition string) (addrs []netip.Addr, pools []string) {
	c := meta.FindStatusCondition(s.Status.Conditions, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil, nil
	}
	for rest, more := c.Message, true; more; {
		word, after := untilAny(rest, ",; ")
		a, err := netip.ParseAddr(word)
		if err != nil {
			break
		}
		pool := ""
		if named, ok := strings.CutPrefix(after, FromPool); ok {
			pool, after = untilAny(named, ",; ")
		}
		addrs, pools = append(addrs, a.Unmap()), append(pools, pool)
		rest, more = strings.CutPrefix(after, ", ")
	}
	if n := len(pools) - 1; n > 0 && strings.Join(pools[:n], "") == "" {
		for i := range pools {
			pools[i] = pools[n]
		}
	}
	return addrs, pools
}

// FromPool precedes the name of the pool behind an address, or behind several addresses of one pool, in the message of
// ConditionAllocated.
const FromPool = " from pool "

// untilAny divides a text before the first of some characters.
func untilAny(text, characters string) (before, after string) {
	if at := strings.IndexAny(text, characters); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}

// families returns the families in spec.ipFamilies. For API servers before dual stack, and for objects written by hand,
// they are derived from the cluster IPs.
func families(s *corev1.Service) []world.Family {
	var out []world.Family
	for _, f := range s.Spec.IPFamilies {
		if f == corev1.IPv6Protocol {
			out = append(out, world.IPv6)
		} else {
			out = append(out, world.IPv4)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, text := range append(slices.Clone(s.Spec.ClusterIPs), s.Spec.ClusterIP) {
		a, err := netip.ParseAddr(text)
		if err == nil && !slices.Contains(out, world.FamilyOf(a)) {
			out = append(out, world.FamilyOf(a))
		}
	}
	if len(out) > 0 {
		return out
	}
	return []world.Family{world.IPv4}
}

func familyPolicy(s *corev1.Service) world.FamilyPolicy {
	if s.Spec.IPFamilyPolicy == nil {
		return world.SingleStack
	}
	switch *s.Spec.IPFamilyPolicy {
	case corev1.IPFamilyPolicyPreferDualStack:
		return world.PreferDualStack
	case corev1.IPFamilyPolicyRequireDualStack:
		return world.RequireDualStack
	case corev1.IPFamilyPolicySingleStack:
	}
	return world.SingleStack
}

func servicePorts(s *corev1.Service) []world.Port {
	ports := make([]world.Port, 0, len(s.Spec.Ports))
	for _, p := range s.Spec.Ports {
		ports = append(ports, world.Port{
			Name:     p.Name,
			Protocol: world.Protocol(cmp.Or(p.Protocol, corev1.ProtocolTCP)),
			Port:     uint16(p.Port), //nolint:gosec // the API server admits 1-65535
		})
	}
	return ports
}

// serviceReader collects the requests of the user and the problems found in them.
type serviceReader struct {
	service *corev1.Service
	options Options
	out     *world.Service
}

func (r *serviceReader) problem(format string, args ...any) {
	r.out.Problems = appendRemark(r.out.Problems, format, args)
}

func (r *serviceReader) limit(format string, args ...any) {
	r.out.Limits = appendRemark(r.out.Limits, format, args)
}

// maxRemarks is the maximum number of remarks of one kind about a Service. A field can have a hundred thousand invalid
// entries, and a condition has 1024 bytes.
const maxRemarks = 10

// appendRemark appends a remark with the beginnings of its values, unless there are many.
func appendRemark(list []string, format string, args []any) []string {
	if len(list) == maxRemarks {
		return list
	}
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = Truncate(text, maxForeignText)
		}
	}
	return append(list, fmt.Sprintf(format, args...))
}

// setting is the name and the value of a field or annotation.
type setting struct{ field, value string }

func annotationField(name string) string { return fmt.Sprintf("metadata.annotations[%s]", name) }

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

// readKeepConnections reads the annotation. Another value than true or false keeps connections, and is a limit.
func (r *serviceReader) readKeepConnections() {
	keep, wrong := KeepConnections(r.service)
	r.out.ConnectionsMayEnd = !keep
	if wrong != "" {
		r.out.Limits = append(r.out.Limits, wrong)
	}
}

// KeepConnections returns the value of the annotation, and what is wrong with it; empty if nothing is.
func KeepConnections(s *corev1.Service) (keep bool, wrong string) {
	switch value := strings.TrimSpace(s.Annotations[v1alpha1.AnnotationKeepConnections]); value {
	case "", "true":
		return true, ""
	case "false":
		return false, ""
	default:
		return true, fmt.Sprintf("%s: %q is neither true nor false: connections are kept",
			annotationField(v1alpha1.AnnotationKeepConnections), Truncate(value, maxForeignText))
	}
}

func sameAddrs(a, b []netip.Addr) bool {
	return slices.Equal(
		slices.SortedFunc(slices.Values(a), netip.Addr.Compare),
		slices.SortedFunc(slices.Values(b), netip.Addr.Compare))
}

// readLimits adds a limit for each field that is only partly supported, if that does no harm to the user.
func (r *serviceReader) readLimits() {
	spec := &r.service.Spec
	if n := len(r.out.ExternalIPs); n > maxExternalIPs {
		r.limit("spec.externalIPs: %d addresses are more than the limit of %d, so none of them is announced", n,
			maxExternalIPs)
		r.out.ExternalIPs = nil
	} else if length := len(ListExternalIPs(r.out.ExternalIPs)); length > maxExternalIPsText {
		r.limit("spec.externalIPs: %d addresses take %d bytes in the condition ExternalIPs, more than the limit of %d, so "+
			"none of them is announced", n, length, maxExternalIPsText)
		r.out.ExternalIPs = nil
	}
	layer2 := func(format string, args ...any) {
		r.out.Layer2Limits = append(r.out.Layer2Limits, fmt.Sprintf(format, args...))
	}
	if r.out.LocalPolicy {
		layer2("spec.externalTrafficPolicy: Local is served like Cluster by L2Domains: endpoints on all nodes take " +
			"traffic; " +
			"they see the client's own address all the same")
	}
	if c := spec.SessionAffinityConfig; r.out.SessionAffinity && c != nil && c.ClientIP != nil &&
		c.ClientIP.TimeoutSeconds != nil &&
		*c.ClientIP.TimeoutSeconds != corev1.DefaultClientIPServiceAffinitySeconds {
		layer2("spec.sessionAffinityConfig.clientIP.timeoutSeconds: %d: a client keeps its endpoint for as long as "+
			"the set of endpoints stays the same", *c.ClientIP.TimeoutSeconds)
	}
	if r.out.SessionAffinity && slices.Contains(r.out.Families, world.IPv6) {
		layer2("spec.sessionAffinity: ClientIP has an effect over IPv6 only where OVN can hash IPv6 addresses (later than " +
			"23.03)")
	}
	if spec.TrafficDistribution != nil {
		r.limit("spec.trafficDistribution: %s has no effect on traffic from outside the cluster", *spec.TrafficDistribution)
	}
}
