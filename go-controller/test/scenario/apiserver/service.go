// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// firstNodePort and lastNodePort are the API server's default --service-node-port-range.
const firstNodePort, lastNodePort = 30000, 32767

// serviceAdmission sets the defaults of Services, and allocates their cluster IPs and node ports, the lowest free ones.
type serviceAdmission struct{ typed }

func (a serviceAdmission) admit(s *Server, old, obj map[string]any, status bool) error {
	var is, was corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &is); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if old != nil {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(old, &was); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	if status && is.Namespace == s.faults.full {
		return errTooLarge()
	}
	defaultService(&is)
	var errs field.ErrorList
	if is.Spec.Type != corev1.ServiceTypeLoadBalancer && len(is.Status.LoadBalancer.Ingress) > 0 && status {
		errs = append(errs, field.Forbidden(field.NewPath("status", "loadBalancer", "ingress"),
			"may only be used when `spec.type` is \"LoadBalancer\""))
	}
	if class, had := is.Spec.LoadBalancerClass, was.Spec.LoadBalancerClass; old != nil &&
		is.Spec.Type == corev1.ServiceTypeLoadBalancer && was.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		(class == nil) != (had == nil) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "loadBalancerClass"), class, "may not change once set"))
	}
	if len(is.Spec.Ports) == 0 && is.Spec.ClusterIP != corev1.ClusterIPNone {
		errs = append(errs, field.Required(field.NewPath("spec", "ports"), ""))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), is.Name, errs)
	}
	if is.Spec.Type != corev1.ServiceTypeLoadBalancer {
		is.Status.LoadBalancer = corev1.LoadBalancerStatus{}
		is.Spec.LoadBalancerClass, is.Spec.AllocateLoadBalancerNodePorts = nil, nil
	}
	s.allocateClusterIPs(&was, &is)
	s.allocateNodePorts(&was, &is)
	return replace(obj, &is)
}

// errTooLarge is what an API server answers if etcd refuses an object because of its size: etcd's error as it is
// (ErrorToAPIStatus in k8s.io/apiserver/pkg/endpoints/handlers/responsewriters).
func errTooLarge() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusInternalServerError, Message: "etcdserver: request is too large"}}
}

// defaultService sets the defaults of an API server (pkg/apis/core/v1/defaults.go there).
func defaultService(s *corev1.Service) {
	spec, yes := &s.Spec, true
	set(&spec.Type, corev1.ServiceTypeClusterIP)
	set(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		set(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	local := corev1.ServiceInternalTrafficPolicyCluster
	if spec.InternalTrafficPolicy == nil {
		spec.InternalTrafficPolicy = &local
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer || spec.Type == corev1.ServiceTypeNodePort ||
		len(spec.ExternalIPs) > 0 {
		set(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer && spec.AllocateLoadBalancerNodePorts == nil {
		spec.AllocateLoadBalancerNodePorts = &yes
	}
	mode := corev1.LoadBalancerIPModeVIP
	for i := range s.Status.LoadBalancer.Ingress {
		if in := &s.Status.LoadBalancer.Ingress[i]; in.IP != "" && in.IPMode == nil {
			in.IPMode = &mode
		}
	}
}

func set[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// allocateClusterIPs sets the families and cluster IPs of a Service in a cluster whose first family is IPv4.
func (s *Server) allocateClusterIPs(was, is *corev1.Service) {
	spec := &is.Spec
	single := corev1.IPFamilyPolicySingleStack
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = &single
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if *spec.IPFamilyPolicy != single && len(spec.IPFamilies) == 1 {
		other := corev1.IPv6Protocol
		if spec.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		spec.IPFamilies = append(spec.IPFamilies, other)
	}
	if *spec.IPFamilyPolicy == single {
		spec.IPFamilies = spec.IPFamilies[:1]
	}
	if spec.ClusterIP == corev1.ClusterIPNone {
		spec.ClusterIPs = []string{corev1.ClusterIPNone}
		return
	}
	had := was.Spec.ClusterIPs
	spec.ClusterIPs = nil
	for i := range spec.IPFamilies {
		if i < len(had) && i < len(was.Spec.IPFamilies) && was.Spec.IPFamilies[i] == spec.IPFamilies[i] {
			spec.ClusterIPs = append(spec.ClusterIPs, had[i])
		} else {
			spec.ClusterIPs = append(spec.ClusterIPs, s.freeClusterIP(spec.IPFamilies[i]))
		}
	}
	spec.ClusterIP = spec.ClusterIPs[0]
}

// freeClusterIP returns the lowest free cluster IP of a family.
func (s *Server) freeClusterIP(family corev1.IPFamily) string {
	a := s.ServiceSubnets[0].Addr()
	if family == corev1.IPv6Protocol {
		a = s.ServiceSubnets[1].Addr()
	}
	used := map[netip.Addr]bool{}
	s.eachService(func(o *corev1.Service) {
		for _, text := range o.Spec.ClusterIPs {
			if taken, err := netip.ParseAddr(text); err == nil {
				used[taken] = true
			}
		}
	})
	for a = a.Next().Next(); used[a]; a = a.Next() { // the first one is that of the API server
	}
	return a.String()
}

func (s *Server) allocateNodePorts(was, is *corev1.Service) {
	spec := &is.Spec
	wants := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer &&
		*spec.AllocateLoadBalancerNodePorts
	needsHealth := spec.Type == corev1.ServiceTypeLoadBalancer &&
		spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	var used map[int32]bool
	next := func() int32 {
		if used == nil {
			used = s.usedNodePorts()
		}
		for port := int32(firstNodePort); port <= lastNodePort; port++ {
			if !used[port] {
				used[port] = true
				return port
			}
		}
		return 0
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if !wants {
			p.NodePort = 0
			continue
		}
		if before := slices.IndexFunc(was.Spec.Ports, func(o corev1.ServicePort) bool {
			return o.Port == p.Port && o.Protocol == p.Protocol
		}); p.NodePort == 0 && before >= 0 {
			p.NodePort = was.Spec.Ports[before].NodePort
		}
		if p.NodePort == 0 {
			p.NodePort = next()
		}
	}
	switch {
	case !needsHealth:
		spec.HealthCheckNodePort = 0
	case spec.HealthCheckNodePort == 0:
		if spec.HealthCheckNodePort = was.Spec.HealthCheckNodePort; spec.HealthCheckNodePort == 0 {
			spec.HealthCheckNodePort = next()
		}
	}
}

func (s *Server) usedNodePorts() map[int32]bool {
	used := map[int32]bool{}
	s.eachService(func(o *corev1.Service) {
		used[o.Spec.HealthCheckNodePort] = true
		for _, p := range o.Spec.Ports {
			used[p.NodePort] = true
		}
	})
	return used
}

// eachService calls use for each stored Service. s.mu must be held.
func (s *Server) eachService(use func(*corev1.Service)) {
	for _, obj := range s.tableOf("services").objects {
		var o corev1.Service
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &o); err != nil {
			panic(fmt.Sprintf("stored Service: %v", err)) // It was converted from a Service.
		}
		use(&o)
	}
}
