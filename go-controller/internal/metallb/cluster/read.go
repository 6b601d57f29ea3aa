// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb"
)

// hostCIDRs is the annotation with the addresses and prefix lengths of a node, which OVN-Kubernetes writes.
const hostCIDRs = "k8s.ovn.org/host-cidrs"

// resources are MetalLB's resources, with the versions in which they may be served, the newest first.
func resources() map[string][]string {
	return map[string][]string{
		"ipaddresspools": {"v1beta1"}, "l2advertisements": {"v1beta1"}, "bgppeers": {"v1beta2", "v1beta1"},
		"bgpadvertisements": {"v1beta1"}, "bfdprofiles": {"v1beta1"}, "communities": {"v1beta1"},
	}
}

// ReadMetalLB returns MetalLB's objects in a namespace. If there are none, it returns the ConfigMap of MetalLB up to
// 0.12. It is an error if there is nothing.
func ReadMetalLB(ctx context.Context, client dynamic.Interface, namespace string) ([]*unstructured.Unstructured,
	error) {
	var out []*unstructured.Unstructured
	for resource, versions := range resources() {
		for _, version := range versions {
			gvr := schema.GroupVersionResource{Group: metallb.Group, Version: version, Resource: resource}
			list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // not served
			}
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
			}
			for i := range list.Items {
				out = append(out, &list.Items[i])
			}
			break
		}
	}
	configMaps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	names := []string{"bgpextras"}
	if len(out) == 0 {
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
		out = append(out, o)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("namespace %s has no objects of MetalLB (%s) and no ConfigMap config", namespace,
			metallb.Group)
	}
	return out, nil
}

// AddFacts adds the Services and the networks of the nodes to the input of a conversion.
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
	for _, n := range nodes.Items {
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
