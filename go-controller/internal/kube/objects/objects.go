// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Objects are the API objects of a cluster. Lists are in any order.
type Objects struct {
	Services   []*corev1.Service
	Slices     []*discoveryv1.EndpointSlice
	Nodes      []*corev1.Node
	Namespaces []*corev1.Namespace

	Pools          []*v1alpha1.IPAddressPool
	Domains        []*v1alpha1.L2Domain
	Peers          []*v1alpha1.BGPPeer
	Advertisements []*v1alpha1.BGPAdvertisement
	Profiles       []*v1alpha1.BFDProfile
	Communities    []*v1alpha1.Community
	NodeStatuses   []*v1alpha1.BGPNodeStatus

	// Leases are those of guards and agents, by the name of their node.
	Leases []*coordinationv1.Lease
	// Leader is the Lease of the leading controller; nil if there is none, or if controllers run without leader
	// election.
	Leader *coordinationv1.Lease
	// Pods are those of OVN-Kubernetes, and of frr-k8s.
	Pods []*corev1.Pod
	// Policies are the NetworkPolicies of the namespaces of Services that are explained; nil if they were not read.
	Policies []*networkingv1.NetworkPolicy

	// Those of frr-k8s, which clusters without it do not have.
	FRRConfigurations []*frr.Configuration
	FRRNodes          []*frr.NodeState
	FRRSessions       []*frr.SessionState

	// EgressIPs are those of OVN-Kubernetes, which a cluster may lack. UnreadEgressIPs is set if the user may not list
	// them: their addresses are taken for free ones, unless the conditions of Services show more.
	EgressIPs       []*unstructured.Unstructured
	UnreadEgressIPs bool

	// Claims are the IPAddressClaims of external pools; nil if they were not read, or if the API server has none.
	Claims *world.Claims

	// EditedSecrets are the Secrets in namespaces of passwords that an edit sets, as NAMESPACE/NAME, without their
	// contents.
	EditedSecrets map[string]bool
	// AbsentSecrets are Secrets that do not exist although BGPPeers refer to them, as NAMESPACE/NAME. Others may be
	// absent, too: the controller reports those (SecretNotFound).
	AbsentSecrets map[string]bool

	// Unread are the resources that the user may not list, by their plural names, and LeaderLease. Their lists are empty.
	Unread []string
}

// LeaderName is the name of the Lease of the leading controller (dist/manifests/controller), and LeaderLease the name
// in Unread if the user may not read it.
const (
	LeaderName  = "ovnkube-slb"
	LeaderLease = "leases/" + LeaderName
)

// The namespaces of dist/manifests: that of OVN-Kubernetes' own manifests, and ours on OpenShift, where the Pods of
// OVN-Kubernetes are in another one.
const (
	defaultNamespace   = "ovn-kubernetes"
	openShiftNamespace = "ovnkube-slb"
	openShiftPods      = "openshift-ovn-kubernetes"
)

// ControllerNamespaces returns the namespaces in which controllers may run.
func ControllerNamespaces() []string { return []string{defaultNamespace, openShiftNamespace} }

// OVNNamespaces returns the namespaces in which the Pods of OVN-Kubernetes may be.
func OVNNamespaces() []string { return []string{defaultNamespace, openShiftPods} }

// ControllerNamespace returns the namespace of the controller, or that of dist/manifests while none leads.
func (o *Objects) ControllerNamespace() string {
	switch {
	case o.Leader != nil:
		return o.Leader.Namespace
	case slices.ContainsFunc(o.Pods, func(p *corev1.Pod) bool { return p.Namespace == openShiftPods }):
		return openShiftNamespace
	}
	return defaultNamespace
}

// Service returns a Service; nil if there is none.
func (o *Objects) Service(key world.Key) *corev1.Service {
	for _, s := range o.Services {
		if s.Namespace == key.Namespace && s.Name == key.Name {
			return s
		}
	}
	return nil
}

// Named returns the object with a name in a list of cluster-scoped objects; the zero value if there is none.
func Named[T metav1.Object](list []T, name string) T {
	at := slices.IndexFunc(list, func(o T) bool { return o.GetName() == name })
	if at < 0 {
		var none T
		return none
	}
	return list[at]
}

// SlicesOf returns the EndpointSlices of a Service.
func (o *Objects) SlicesOf(key world.Key) []*discoveryv1.EndpointSlice {
	var own []*discoveryv1.EndpointSlice
	for _, s := range o.Slices {
		if s.Namespace == key.Namespace && s.Labels[discoveryv1.LabelServiceName] == key.Name {
			own = append(own, s)
		}
	}
	return own
}

// Clone returns a copy whose lists can be changed. The objects are shared.
func (o *Objects) Clone() *Objects {
	out := *o
	out.Services, out.Slices = slices.Clone(o.Services), slices.Clone(o.Slices)
	out.Nodes, out.Namespaces = slices.Clone(o.Nodes), slices.Clone(o.Namespaces)
	out.Pools, out.Domains = slices.Clone(o.Pools), slices.Clone(o.Domains)
	out.Peers, out.Advertisements = slices.Clone(o.Peers), slices.Clone(o.Advertisements)
	out.Profiles, out.Communities = slices.Clone(o.Profiles), slices.Clone(o.Communities)
	out.NodeStatuses = slices.Clone(o.NodeStatuses)
	out.FRRConfigurations = slices.Clone(o.FRRConfigurations)
	out.FRRNodes, out.FRRSessions = slices.Clone(o.FRRNodes), slices.Clone(o.FRRSessions)
	out.Leases, out.Pods, out.Policies = slices.Clone(o.Leases), slices.Clone(o.Pods), slices.Clone(o.Policies)
	out.EgressIPs = slices.Clone(o.EgressIPs)
	out.EditedSecrets, out.AbsentSecrets = maps.Clone(o.EditedSecrets), maps.Clone(o.AbsentSecrets)
	return &out
}
