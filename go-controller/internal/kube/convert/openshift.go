// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// OpenShift's two kinds Network are validated by another component, so invalid values in them are ignored. The
// annotations are ours, and are validated here.

// networkTypeOVN is the network type that has internal subnets. ReadNetworkOperator contains their defaults
// (OVN-Kubernetes, config.go: join, transit and masquerade of each family).
const networkTypeOVN = "OVNKubernetes"

// NetworkConfig is the content of Network "cluster" of config.openshift.io/v1; the zero value if there is none.
type NetworkConfig struct {
	// AutoAssignCIDRs are spec.externalIP.autoAssignCIDRs, as written.
	AutoAssignCIDRs []string
	// ClusterSubnets and ServiceSubnets are the networks in effect and those configured for the future.
	ClusterSubnets, ServiceSubnets []netip.Prefix
	// NetworkType is the type in effect or, before there is one, the configured type.
	NetworkType string
}

// ReadNetworkConfig converts a Network of config.openshift.io/v1.
func ReadNetworkConfig(o *unstructured.Unstructured) NetworkConfig {
	f := fields(o.Object)
	out := NetworkConfig{
		AutoAssignCIDRs: f.texts("spec", "externalIP", "autoAssignCIDRs"),
		NetworkType:     f.text("status", "networkType"),
	}
	if out.NetworkType == "" {
		out.NetworkType = f.text("spec", "networkType")
	}
	for _, part := range []string{"status", "spec"} {
		out.ClusterSubnets = Union(out.ClusterSubnets, f.cidrs(part, "clusterNetwork"))
		out.ServiceSubnets = Union(out.ServiceSubnets, prefixes(f.texts(part, "serviceNetwork")...))
	}
	return out
}

// NetworkOperator is the content of Network "cluster" of operator.openshift.io/v1.
type NetworkOperator struct {
	// Mode is the value of v1alpha1.AnnotationMode, as written. HasMode reports whether the annotation is present.
	Mode    string
	HasMode bool
	// Release reports whether v1alpha1.AnnotationReleaseOnDisable is "true".
	Release bool
	// ClusterSubnets and ServiceSubnets are the networks that the operator is configured to set up. InternalSubnets are
	// the networks that the cluster network then uses internally.
	ClusterSubnets, ServiceSubnets, InternalSubnets []netip.Prefix
}

// ReadNetworkOperator converts a Network of operator.openshift.io/v1.
func ReadNetworkOperator(o *unstructured.Unstructured) NetworkOperator {
	f := fields(o.Object)
	out := NetworkOperator{
		Release:        o.GetAnnotations()[v1alpha1.AnnotationReleaseOnDisable] == "true",
		ClusterSubnets: f.cidrs("spec", "clusterNetwork"),
		ServiceSubnets: prefixes(f.texts("spec", "serviceNetwork")...),
	}
	out.Mode, out.HasMode = o.GetAnnotations()[v1alpha1.AnnotationMode]
	if f.text("spec", "defaultNetwork", "type") != networkTypeOVN {
		return out
	}
	ovn := func(path ...string) string {
		return f.text(append([]string{"spec", "defaultNetwork", "ovnKubernetesConfig"}, path...)...)
	}
	// The first value that is set takes precedence. The last value is the default.
	for _, choices := range [][]string{
		{ovn("ipv4", "internalJoinSubnet"), ovn("v4InternalSubnet"), "100.64.0.0/16"},
		{ovn("ipv6", "internalJoinSubnet"), ovn("v6InternalSubnet"), "fd98::/64"},
		{ovn("ipv4", "internalTransitSwitchSubnet"), "100.88.0.0/16"},
		{ovn("ipv6", "internalTransitSwitchSubnet"), "fd97::/64"},
		{ovn("gatewayConfig", "ipv4", "internalMasqueradeSubnet"), "169.254.169.0/29"},
		{ovn("gatewayConfig", "ipv6", "internalMasqueradeSubnet"), "fd69::/125"},
	} {
		set := slices.IndexFunc(choices, func(text string) bool { return text != "" })
		out.InternalSubnets = append(out.InternalSubnets, prefixes(choices[set])...)
	}
	return out
}

// ModeSetting returns the setting in force. operator is the operator's Network, nil if there is none, and last is the
// setting that was in force before.
func ModeSetting(last world.ModeSetting, operator *NetworkOperator, o Options) world.ModeSetting {
	last.Refused = ""
	switch {
	case operator == nil:
		return last
	case !operator.HasMode:
		return DefaultModeSetting(o)
	}
	mode, ok := world.ParseMode(operator.Mode)
	if !ok {
		last.Refused = fmt.Sprintf("%s: %q is none of %s; the mode stays %s", byAnnotation, operator.Mode, modeNames(),
			last.Mode)
		return last
	}
	return world.ModeSetting{Mode: mode, By: byAnnotation, Release: operator.Release}
}

// byAnnotation is the source of a mode that the administrator of an OpenShift cluster has set.
const byAnnotation = "annotation " + v1alpha1.AnnotationMode + ` of Network "cluster" (operator.openshift.io)`

// DefaultModeSetting returns the setting in force if no annotation sets a mode.
func DefaultModeSetting(o Options) world.ModeSetting {
	return world.ModeSetting{Mode: o.Mode, By: "--enable-service-load-balancers"}
}

// StoredModeSetting returns the setting stored in the status of a pool; false if there is none.
func StoredModeSetting(p *v1alpha1.IPAddressPool) (world.ModeSetting, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type != v1alpha1.ConditionModeAccepted {
			continue
		}
		for _, m := range world.Modes() {
			if ModeReason(m) == c.Reason {
				return world.ModeSetting{Mode: m, By: byAnnotation}, true
			}
		}
	}
	return world.ModeSetting{}, false
}

// MustStore reports whether a setting must be stored in statuses: once the annotation is invalid or its object is
// deleted, it can be read from nowhere else.
func MustStore(s *world.ModeSetting) bool { return s.By == byAnnotation || s.Refused != "" }

// ModeReason returns a mode in the form of a condition's reason.
func ModeReason(m world.Mode) string { return strings.ReplaceAll(m.String(), "+", "And") }

func modeNames() string {
	var names []string
	for _, m := range world.Modes() {
		names = append(names, m.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Union returns a with the networks of b that it lacks.
func Union(a, b []netip.Prefix) []netip.Prefix {
	for _, p := range b {
		if !slices.Contains(a, p) {
			a = append(slices.Clip(a), p)
		}
	}
	return a
}

// fields are the fields of an object that has no Go type of its own.
type fields map[string]any

func (f fields) text(path ...string) string {
	text, _, err := unstructured.NestedString(f, path...)
	if err != nil {
		return ""
	}
	return text
}

func (f fields) texts(path ...string) []string {
	list, _, err := unstructured.NestedStringSlice(f, path...)
	if err != nil {
		return nil
	}
	return list
}

// cidrs returns the field cidr of each object in a list.
func (f fields) cidrs(path ...string) []netip.Prefix {
	list, _, err := unstructured.NestedSlice(f, path...)
	if err != nil {
		return nil
	}
	var out []netip.Prefix
	for _, entry := range list {
		if o, ok := entry.(map[string]any); ok {
			out = append(out, prefixes(fields(o).text("cidr"))...)
		}
	}
	return out
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}
