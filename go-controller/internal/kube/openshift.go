// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// openShiftNetwork is the name of the only relevant object of each of OpenShift's two Network kinds.
	openShiftNetwork = "cluster"
	// openShiftPause is the interval at which a controller checks whether the API server has such a kind. The kind can
	// be added to any cluster, and each check costs one small request. There are many nodes, so each node checks only
	// every openShiftNodePause.
	openShiftPause     = 5 * time.Second
	openShiftNodePause = time.Minute
	// discoveryRetry is the time until the next check if the API server did not respond.
	discoveryRetry = time.Second
)

// networkConfigs is the kind of OpenShift's network configuration.
func networkConfigs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "networks"}
}

// networkOperators is the kind of the configuration of OpenShift's network operator.
func networkOperators() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "networks"}
}

// NetworkType reads once which network the cluster has, as OpenShift names it (OVNKubernetes, OpenShiftSDN;
// status.networkType of config.openshift.io/v1 Network "cluster"). It is empty if OpenShift does not report it.
func NetworkType(ctx context.Context, kube kubernetes.Interface, ours *Clients) (string, error) {
	there, err := hasResource(ctx, discovery.ToServerResourcesInterfaceWithContext(kube.Discovery()), networkConfigs())
	if err != nil {
		return "", fmt.Errorf("discover OpenShift APIs: %w", err)
	}
	if !there {
		return "", nil
	}
	list, err := only[*unstructured.UnstructuredList]{ours.NetworkConfigs, openShiftNetwork}.List(ctx,
		metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("read the type of OpenShift's network: %w", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	return convert.ReadNetworkConfig(&list.Items[0]).NetworkType, nil
}

// openShiftFacts are the facts from OpenShift's Network objects.
type openShiftFacts struct {
	config convert.NetworkConfig
	// operator is nil if there is no such object. about refers to it, or to the last one.
	operator *convert.NetworkOperator
	about    corev1.ObjectReference
	// modeSetting is the setting in force; nil before all objects were read.
	modeSetting *world.ModeSetting
}

// setNetworkConfig stores the networks, and whether OpenShift assigns addresses itself (autoAssignCIDRs).
func (f *Facts) setNetworkConfig(o *unstructured.Unstructured) {
	var is convert.NetworkConfig
	if o != nil {
		is = convert.ReadNetworkConfig(o)
	}
	f.mu.Lock()
	was := f.openShift.config
	same := slices.Equal(was.AutoAssignCIDRs, is.AutoAssignCIDRs) && slices.Equal(was.ClusterSubnets, is.ClusterSubnets) &&
		slices.Equal(was.ServiceSubnets, is.ServiceSubnets)
	f.openShift.config = is
	f.changes.others = f.changes.others || !same
	f.mu.Unlock()
	switch gave, gives := len(was.AutoAssignCIDRs) > 0, len(is.AutoAssignCIDRs) > 0; {
	case gives && !slices.Equal(was.AutoAssignCIDRs, is.AutoAssignCIDRs):
		klog.InfoS("Stopped allocation because OpenShift allocates addresses (autoAssignCIDRs)", "autoAssignCIDRs",
			is.AutoAssignCIDRs)
	case gave && !gives:
		klog.InfoS("Resumed allocation because OpenShift no longer allocates addresses")
	}
	if !same {
		f.hooks.Wake()
	}
}

// setNetworkOperator stores the mode and the networks. The operator writes this object frequently.
func (f *Facts) setNetworkOperator(o *unstructured.Unstructured) {
	var is *convert.NetworkOperator
	if o != nil {
		read := convert.ReadNetworkOperator(o)
		is = &read
	}
	f.mu.Lock()
	was := f.openShift.operator
	same := was == is || was != nil && is != nil && was.Mode == is.Mode && was.HasMode == is.HasMode &&
		was.Release == is.Release &&
		slices.Equal(was.ClusterSubnets, is.ClusterSubnets) && slices.Equal(was.ServiceSubnets, is.ServiceSubnets) &&
		slices.Equal(was.InternalSubnets, is.InternalSubnets)
	f.openShift.operator = is
	if o != nil {
		f.openShift.about = corev1.ObjectReference{Kind: o.GetKind(), APIVersion: o.GetAPIVersion(), Name: o.GetName(),
			UID: o.GetUID()}
	}
	if f.openShift.modeSetting != nil {
		f.updateMode()
	}
	f.changes.others = f.changes.others || !same
	f.mu.Unlock()
	if !same {
		f.hooks.Wake()
	}
}

// updateMode computes which setting is in force. The statuses of pools contain the setting that was in force before
// this process started.
func (f *Facts) updateMode() {
	if f.openShift.modeSetting == nil {
		first := convert.DefaultModeSetting(f.convert)
		for _, name := range sortedKeys(f.pools) {
			if s, ok := convert.StoredModeSetting(f.pools[name].object); ok {
				first = s
				break
			}
		}
		f.openShift.modeSetting = &first
	}
	next := convert.ModeSetting(*f.openShift.modeSetting, f.openShift.operator, f.convert)
	f.openShift.modeSetting = &next
}

// Mode returns the mode in force. It is valid once all objects it depends on have been read.
func (f *Facts) Mode() world.Mode {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updateMode()
	return f.openShift.modeSetting.Mode
}

// Interconnect reports whether the zones of OVN-Kubernetes have their own databases, although one is configured.
func (f *Facts) Interconnect() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	nodes := make([]*world.Node, 0, len(f.nodes))
	for _, n := range f.nodes {
		nodes = append(nodes, n.world)
	}
	zones := world.ZonesOf(nodes, false)
	return zones.Interconnect
}

// addOpenShift adds the facts from OpenShift to the facts about the cluster.
func (f *Facts) addOpenShift(c *world.Cluster) {
	f.updateMode()
	c.ModeSetting = *f.openShift.modeSetting
	config, operator := f.openShift.config, f.openShift.operator
	if operator == nil {
		operator = &convert.NetworkOperator{}
	}
	c.AutoAssignCIDRs = config.AutoAssignCIDRs
	c.ClusterSubnets = convert.Union(convert.Union(c.ClusterSubnets, config.ClusterSubnets), operator.ClusterSubnets)
	c.ServiceSubnets = convert.Union(convert.Union(c.ServiceSubnets, config.ServiceSubnets), operator.ServiceSubnets)
	c.InternalSubnets = operator.InternalSubnets
}

// ModeChanged queues an Event about OpenShift's Network object if the mode in force changed or the mode annotation was
// rejected.
func (e *Events) ModeChanged(f *Facts, was *world.ModeSetting, is world.ModeSetting) {
	f.mu.Lock()
	about := f.openShift.about
	f.mu.Unlock()
	if about.Name == "" {
		return
	}
	if was != nil && was.Mode != is.Mode {
		e.queue.add(event{&about, corev1.EventTypeNormal, v1alpha1.EventModeChanged,
			"mode " + is.Mode.String() + " instead of " + was.Mode.String() + ", by " + is.By})
	}
	if is.Refused != "" && (was == nil || was.Refused != is.Refused) {
		e.queue.add(event{&about, corev1.EventTypeWarning, v1alpha1.EventModeRefused, status.Truncate(is.Refused)})
	}
}
