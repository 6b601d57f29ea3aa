// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// hostCIDRs is the annotation with the addresses and prefix lengths of a node, which OVN-Kubernetes writes.
const hostCIDRs = "k8s.ovn.org/host-cidrs"

// resource is a resource of MetalLB, with the versions in which it may be served, the newest first.
type resource struct {
	name, group string
	versions    []string
	// configures is set if objects of it mean that MetalLB does not read its ConfigMap.
	configures bool
}

func resources() []resource {
	v1beta1 := []string{"v1beta1"}
	return []resource{
		{"ipaddresspools", metallb.Group, v1beta1, true}, {"l2advertisements", metallb.Group, v1beta1, true},
		{"bgppeers", metallb.Group, []string{"v1beta2", "v1beta1"}, true},
		{"bgpadvertisements", metallb.Group, v1beta1, true}, {"bfdprofiles", metallb.Group, v1beta1, true},
		{"communities", metallb.Group, v1beta1, true},
		{"addresspools", metallb.Group, []string{"v1beta1", "v1alpha1"}, true}, // until 0.14
		{"metallbs", metallb.Group, v1beta1, false},                            // of the operator
		// These may be in another namespace.
		{frr.Configurations, frrapi.Group, v1beta1, false},
	}
}

// ReadMetalLB returns MetalLB's objects in a namespace, the Deployments and DaemonSets of it, and all
// FRRConfigurations. If no object configures MetalLB, it returns the ConfigMap of MetalLB up to 0.12. It is an error if
// there is no configuration.
func ReadMetalLB(ctx context.Context, client dynamic.Interface, namespace string) ([]*unstructured.Unstructured,
	error) {
	var out []*unstructured.Unstructured
	configured := false
	for _, r := range resources() {
		for _, version := range r.versions {
			gvr := schema.GroupVersionResource{Group: r.group, Version: version, Resource: r.name}
			in := namespace
			if r.group == frrapi.Group {
				in = metav1.NamespaceAll
			}
			list, err := client.Resource(gvr).Namespace(in).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // not served
			}
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
			}
			for i := range list.Items {
				out, configured = append(out, &list.Items[i]), configured || r.configures
			}
			break
		}
	}
	configMaps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	names := []string{"bgpextras"}
	if !configured {
		names = []string{"config"} // newer versions ignore it
	}
	for _, name := range names {
		o, err := configMaps.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get ConfigMap %s/%s: %w", namespace, name, err)
		}
		out, configured = append(out, o), true
	}
	if !configured {
		return nil, fmt.Errorf("namespace %s has no objects of MetalLB (%s) and no ConfigMap config", namespace,
			metallb.Group)
	}
	for _, resource := range []string{"deployments", "daemonsets"} {
		gvr := appsv1.SchemeGroupVersion.WithResource(resource)
		list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s in %s: %w", resource, namespace, err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// ReadExisting returns the objects of slb.k8s.ovn.org of the kinds that an import creates. There are none if the API
// server does not serve them.
func ReadExisting(ctx context.Context, client dynamic.Interface) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, resource := range []string{"ipaddresspools", "l2domains", "bgppeers", "bgpadvertisements", "bfdprofiles",
		"communities"} {
		gvr := v1alpha1.GroupVersion().WithResource(resource)
		list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// AddFacts adds the Services, the nodes and their networks to the input of a conversion.
func AddFacts(ctx context.Context, client kubernetes.Interface, in *metallb.Input) error {
	services, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	for i := range services.Items {
		in.Services = append(in.Services, &services.Items[i])
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		in.Nodes = append(in.Nodes, n)
		var texts []string
		if json.Unmarshal([]byte(n.Annotations[hostCIDRs]), &texts) != nil {
			continue // absent, or of another form: the networks of this node are not known
		}
		for _, text := range texts {
			p, err := netip.ParsePrefix(text)
			if err == nil && !slices.Contains(in.NodeNetworks, p.Masked()) {
				in.NodeNetworks = append(in.NodeNetworks, p.Masked())
			}
		}
	}
	return nil
}

// RunningControllers returns the names of MetalLB's Deployments in a namespace that have replicas. MetalLB's controller
// must not run when pools are created: it and ours would both write the statuses of Services.
func RunningControllers(ctx context.Context, client kubernetes.Interface, namespace string) ([]string, error) {
	var out []string
	for _, selector := range []string{"app=metallb,component=controller",
		"app.kubernetes.io/name=metallb,app.kubernetes.io/component=controller"} {
		list, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, fmt.Errorf("list Deployments in %s: %w", namespace, err)
		}
		for _, d := range list.Items {
			wanted := d.Spec.Replicas == nil || *d.Spec.Replicas > 0
			if (wanted || d.Status.Replicas > 0) && !slices.Contains(out, d.Name) {
				out = append(out, d.Name)
			}
		}
	}
	return out, nil
}
