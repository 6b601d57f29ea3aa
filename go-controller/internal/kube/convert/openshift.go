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

// What OpenShift's two kinds Network say is another component's to judge: what can't be
// read there is as if it were not there. The annotations are ours, and judged.

// networkTypeOVN is the network that has subnets of its own, with these defaults
// (OVN-Kubernetes, config.go: join, transit and masquerade of each family).
const networkTypeOVN = "OVNKubernetes"

// NetworkConfig is what Network "cluster" of config.openshift.io/v1 says; the zero value if
// there is none.
type NetworkConfig struct {
	// AutoAssignCIDRs are spec.externalIP.autoAssignCIDRs, as written.
	AutoAssignCIDRs []string
	// PodNets and ServiceNets are those in effect and those to come.
	PodNets, ServiceNets []netip.Prefix
	// NetworkType is the one in effect, or before there is one the one to come.
	NetworkType string
}

// ReadNetworkConfig reads a Network of config.openshift.io/v1.
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
		out.PodNets = Union(out.PodNets, f.cidrs(part, "clusterNetwork"))
		out.ServiceNets = Union(out.ServiceNets, prefixes(f.texts(part, "serviceNetwork")...))
	}
	return out
}

// NetworkOperator is what Network "cluster" of operator.openshift.io/v1 says.
type NetworkOperator struct {
	// Mode is the annotation of that name, as written; Moded: it is there.
	Mode  string
	Moded bool
	// Release is the annotation release-on-disable.
	Release bool
	// PodNets and ServiceNets are those that the operator shall set up, InternalNets those
	// that the network then has for itself.
	PodNets, ServiceNets, InternalNets []netip.Prefix
}

// ReadNetworkOperator reads a Network of operator.openshift.io/v1.
func ReadNetworkOperator(o *unstructured.Unstructured) NetworkOperator {
	f := fields(o.Object)
	out := NetworkOperator{
		Release:     o.GetAnnotations()[v1alpha1.AnnotationReleaseOnDisable] == "true",
		PodNets:     f.cidrs("spec", "clusterNetwork"),
		ServiceNets: prefixes(f.texts("spec", "serviceNetwork")...),
	}
	out.Mode, out.Moded = o.GetAnnotations()[v1alpha1.AnnotationMode]
	if f.text("spec", "defaultNetwork", "type") != networkTypeOVN {
		return out
	}
	ovn := func(path ...string) string {
		return f.text(append([]string{"spec", "defaultNetwork", "ovnKubernetesConfig"}, path...)...)
	}
	// The first one that is set counts; the last one is the default.
	for _, choices := range [][]string{
		{ovn("ipv4", "internalJoinSubnet"), ovn("v4InternalSubnet"), "100.64.0.0/16"},
		{ovn("ipv6", "internalJoinSubnet"), ovn("v6InternalSubnet"), "fd98::/64"},
		{ovn("ipv4", "internalTransitSwitchSubnet"), "100.88.0.0/16"},
		{ovn("ipv6", "internalTransitSwitchSubnet"), "fd97::/64"},
		{ovn("gatewayConfig", "ipv4", "internalMasqueradeSubnet"), "169.254.169.0/29"},
		{ovn("gatewayConfig", "ipv6", "internalMasqueradeSubnet"), "fd69::/125"},
	} {
		set := slices.IndexFunc(choices, func(text string) bool { return text != "" })
		out.InternalNets = append(out.InternalNets, prefixes(choices[set])...)
	}
	return out
}

// Switch is what holds after a word of the operator's Network, nil for none: before it, last did.
func Switch(last world.Switch, said *NetworkOperator, o Options) world.Switch {
	last.Refused = ""
	switch {
	case said == nil:
		return last
	case !said.Moded:
		return DefaultSwitch(o)
	}
	mode, ok := world.ParseMode(said.Mode)
	if !ok {
		last.Refused = fmt.Sprintf("%s: %q is none of %s; the mode stays %s", byAnnotation, said.Mode, modeNames(), last.Mode)
		return last
	}
	return world.Switch{Mode: mode, By: byAnnotation, Release: said.Release}
}

// byAnnotation names the word of the administrator of an OpenShift cluster.
const byAnnotation = "annotation " + v1alpha1.AnnotationMode + ` of Network "cluster" (operator.openshift.io)`

// DefaultSwitch is what holds where nobody says anything.
func DefaultSwitch(o Options) world.Switch {
	return world.Switch{Mode: o.Mode, By: "--enable-service-load-balancers"}
}

// RememberedSwitch is what the status of a pool remembers; false if nothing.
func RememberedSwitch(p *v1alpha1.IPAddressPool) (world.Switch, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type != v1alpha1.ConditionModeAccepted {
			continue
		}
		for _, m := range world.Modes() {
			if ModeReason(m) == c.Reason {
				return world.Switch{Mode: m, By: byAnnotation}, true
			}
		}
	}
	return world.Switch{}, false
}

// Remembered reports whether a switch is to be kept in statuses: it is known from nowhere else
// once the annotation is spoilt or gone with its object.
func Remembered(s *world.Switch) bool { return s.By == byAnnotation || s.Refused != "" }

// ModeReason spells a mode as a condition's reason may be.
func ModeReason(m world.Mode) string { return strings.ReplaceAll(m.String(), "+", "And") }

func modeNames() string {
	var names []string
	for _, m := range world.Modes() {
		names = append(names, m.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Union appends to a list of networks those of another one that it lacks.
func Union(a, b []netip.Prefix) []netip.Prefix {
	for _, p := range b {
		if !slices.Contains(a, p) {
			a = append(slices.Clip(a), p)
		}
	}
	return a
}

// fields are those of an object without a type of its own.
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

// cidrs are the fields of that name of a list of objects.
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
