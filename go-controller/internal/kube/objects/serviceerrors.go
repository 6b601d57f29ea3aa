// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
)

// serviceErrors returns errors for which the API server would refuse a Service: values that it does not know, ports,
// and addresses. There are others (ValidateServiceCreate in k8s.io/kubernetes), for example about ports without a name.
// The API server sets what a Service lacks.
func serviceErrors(old, next map[string]any) []string {
	var s corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(next, &s); err != nil {
		return nil // Setting the object fails with the same error.
	}
	spec := field.NewPath("spec")
	errs := append(classChange(old, next),
		unknownValue(spec.Child("type"), s.Spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
			corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort),
		unknownValue(spec.Child("sessionAffinity"), s.Spec.SessionAffinity, corev1.ServiceAffinityClientIP,
			corev1.ServiceAffinityNone),
		unknownValue(spec.Child("externalTrafficPolicy"), s.Spec.ExternalTrafficPolicy,
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal))
	errs = append(errs, portErrors(spec.Child("ports"), s.Spec.Ports)...)
	present, _, _ := unstructured.NestedStringSlice(old, "spec", "loadBalancerSourceRanges")
	for i, value := range s.Spec.LoadBalancerSourceRanges {
		if _, err := netip.ParsePrefix(strings.TrimSpace(value)); err != nil && !slices.Contains(present, value) {
			errs = append(errs, field.Invalid(spec.Child("loadBalancerSourceRanges").Index(i), value,
				"must be a valid CIDR value").Error())
		}
	}
	present, _, _ = unstructured.NestedStringSlice(old, "spec", "externalIPs")
	for i, value := range s.Spec.ExternalIPs {
		if !convert.ParseExternalIP(value).IsValid() && !slices.Contains(present, value) {
			errs = append(errs, field.Invalid(spec.Child("externalIPs").Index(i), value,
				"must be a valid IP address").Error())
		}
	}
	return slices.DeleteFunc(errs, func(e string) bool { return e == "" })
}

// portErrors returns errors about the ports of a Service.
func portErrors(at *field.Path, ports []corev1.ServicePort) (errs []string) {
	type id struct {
		protocol corev1.Protocol
		port     int32
	}
	seen := map[id]bool{}
	for i, p := range ports {
		path := at.Index(i)
		for _, why := range validation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(path.Child("port"), p.Port, why).Error())
		}
		errs = append(errs, unknownValue(path.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
			corev1.ProtocolUDP))
		key := id{p.Protocol, p.Port}
		if key.protocol == "" {
			key.protocol = corev1.ProtocolTCP
		}
		if seen[key] {
			errs = append(errs, field.Duplicate(path, fmt.Sprintf("%d/%s", key.port, key.protocol)).Error())
		}
		seen[key] = true
	}
	return errs
}

// unknownValue returns the error about a value that is none of those that the API server knows, empty if it is one.
func unknownValue[T ~string](at *field.Path, value T, known ...T) string {
	if value == "" || slices.Contains(known, value) {
		return ""
	}
	return field.NotSupported(at, value, known).Error()
}
