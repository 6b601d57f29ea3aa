// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
