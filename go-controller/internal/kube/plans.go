// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// NewPlanInformer returns an informer for ServicePlans. It calls on as newInformer does.
func NewPlanInformer(ours *Clients, on func(old, now *v1alpha1.ServicePlan)) cache.Controller {
	return newInformer(ours.Plans, &v1alpha1.ServicePlan{}, whole[*v1alpha1.ServicePlan], on)
}

// WaitForInformer returns true once an informer has read the objects that existed at the start, and false if ctx is
// done first.
func WaitForInformer(ctx context.Context, c cache.Controller) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.HasSynced)
}

// NewNodeInformer returns an informer for all Nodes. It calls on as newInformer does.
func NewNodeInformer(kube kubernetes.Interface, on func(old, now *corev1.Node)) cache.Controller {
	return newInformer(kube.CoreV1().Nodes(), &corev1.Node{}, trimmedNode, on)
}

// NewDomainInformer returns an informer for L2Domains. It calls on as newInformer does.
func NewDomainInformer(ours *Clients, on func(old, now *v1alpha1.L2Domain)) cache.Controller {
	return newInformer(ours.Domains, &v1alpha1.L2Domain{}, whole[*v1alpha1.L2Domain], on)
}

// NewNetworkConfigInformer returns an informer for Network "cluster" of config.openshift.io, which only OpenShift has.
// It calls on as newInformer does.
func NewNetworkConfigInformer(ours *Clients, on func(old, now *unstructured.Unstructured)) cache.Controller {
	return newInformer(only[*unstructured.UnstructuredList]{ours.NetworkConfigs, openShiftNetwork},
		&unstructured.Unstructured{}, whole[*unstructured.Unstructured], on)
}
