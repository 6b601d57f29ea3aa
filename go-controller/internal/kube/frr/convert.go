// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// success is the result that frr-k8s writes if there is no error.
const success = "success"

// Bounded returns a text of frr-k8s, or of its webhook, for messages.
func Bounded(text string) string { return convert.Bounded(text) }

// Read converts an FRRConfiguration.
func Read(c *Configuration, nodes []*corev1.Node) *world.FRRConfiguration {
	out := &world.FRRConfiguration{Name: c.Name, Spec: c.Spec}
	if _, ours := c.Labels[frrapi.LabelPeer]; ours {
		if out.Peer = c.Annotations[frrapi.AnnotationPeer]; out.Peer == "" {
			out.Peer = c.Labels[frrapi.LabelPeer]
		}
		if out.Peer == "" {
			out.Peer = "-" // no BGPPeer has this name, so that the object is not one of others
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(labelSelector(c.Spec.NodeSelector))
	if err != nil {
		out.Invalid = Bounded(err.Error())
		return out
	}
	for _, n := range nodes {
		if selector.Matches(labels.Set(n.Labels)) {
			out.Nodes = append(out.Nodes, n.Name)
		}
	}
	slices.Sort(out.Nodes)
	return out
}

func labelSelector(s frrapi.Selector) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, r := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key,
			Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values})
	}
	return out
}

// Trimmed reads the configuration in an FRRNodeState and removes its text. It changes an FRRNodeState only once.
func Trimmed(s *NodeState) *NodeState {
	if s.Running == nil {
		s.Running = frrapi.ParseRunning(s.Status.RunningConfig)
		s.Status.RunningConfig = ""
	}
	return s
}

// ReadNode converts a trimmed FRRNodeState.
func ReadNode(s *NodeState) *world.FRRNode {
	out := &world.FRRNode{Running: s.Running}
	switch {
	case s.Status.LastConversionResult != "" && s.Status.LastConversionResult != success:
		out.Problem = "frr-k8s does not use the present FRRConfigurations: " + Bounded(s.Status.LastConversionResult)
	case s.Status.LastReloadResult != "" && s.Status.LastReloadResult != success:
		out.Problem = "FRR did not load its configuration: " + Bounded(s.Status.LastReloadResult)
	}
	return out
}

// Password returns the password in a Secret as frr-k8s would use it, or "".
func Password(s *corev1.Secret) string {
	if s.Type != corev1.SecretTypeBasicAuth {
		return ""
	}
	return string(s.Data[corev1.BasicAuthPasswordKey])
}
