// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// egressLabel is what OVN-Kubernetes begins the label NAMESPACE-NAME with that it sets on the host of an EgressService.
const egressLabel = "egress-service.k8s.ovn.org/"

// throughHost returns what does not move when a node drains: connections that pods open from the address of their
// Service, if the node translates them. It is empty if there are none. OVN-Kubernetes selects the host, and follows no
// drain of ours. The label shows it to users who must not read EgressServices.
func throughHost(cluster *objects.Objects, n *corev1.Node) string {
	var through []string
	for _, s := range cluster.Services {
		if _, host := n.Labels[egressLabel+s.Namespace+"-"+s.Name]; host && s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			through = append(through, s.Namespace+"/"+s.Name)
		}
	}
	if len(through) == 0 {
		return ""
	}
	return "Connections that pods open from the address of " + world.Count(len(through), "Service") + " go through node " +
		n.Name + " (EgressService: " + strings.Join(through, ", ") + "), and do not move: they end when it stops. Set " +
		"spec.nodeSelector of the EgressService before, so that OVN-Kubernetes selects another node."
}
