// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

// fieldOwner names this package in server-side apply.
const fieldOwner = "lab-kubelet"

// Node is a lab node as it is registered with the API server.
type Node struct {
	Name string
	// Labels and Annotations are set in addition to [NodeLabel] and kubernetes.io/hostname.
	Labels, Annotations map[string]string
	// IPs are the node's internal addresses, and PodCIDRs its subnets of the cluster network. Both have at most one entry
	// per family, primary family first.
	IPs      []netip.Addr
	PodCIDRs []netip.Prefix
}

// Register creates or updates the Node object and sets its condition Ready to True.
func Register(ctx context.Context, client kubernetes.Interface, node Node) error {
	spec := applycorev1.NodeSpec()
	for _, cidr := range node.PodCIDRs {
		spec.WithPodCIDRs(cidr.String())
	}
	if len(node.PodCIDRs) > 0 {
		spec.WithPodCIDR(node.PodCIDRs[0].String()) // The API requires it to equal the first of the list.
	}
	object := applycorev1.Node(node.Name).
		WithLabels(node.Labels).
		WithLabels(map[string]string{NodeLabel: "true", corev1.LabelHostname: node.Name}).
		WithAnnotations(node.Annotations).
		WithSpec(spec)
	apply := metav1.ApplyOptions{FieldManager: fieldOwner, Force: true}
	if _, err := client.CoreV1().Nodes().Apply(ctx, object, apply); err != nil {
		return fmt.Errorf("register node %s: %w", node.Name, err)
	}
	addresses := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	for _, ip := range node.IPs {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	status := map[string]any{"addresses": addresses, "conditions": []corev1.NodeCondition{readyCondition(true)}}
	// A JSON merge patch replaces the lists. The other patch types merge addresses by type, which permits only one address
	// per type.
	if err := patchStatus(ctx, client, node.Name, types.MergePatchType, status); err != nil {
		return fmt.Errorf("register node %s: status: %w", node.Name, err)
	}
	return nil
}

// SetNodeReady sets the Node's condition Ready, which has no other writer here. It sets True, or Unknown as the node
// lifecycle controller of a cluster does when a node's heartbeats stop. Pods on a Node that is not Ready are not Ready.
func SetNodeReady(ctx context.Context, client kubernetes.Interface, name string, ready bool) error {
	status := map[string]any{"conditions": []corev1.NodeCondition{readyCondition(ready)}}
	if err := patchStatus(ctx, client, name, types.StrategicMergePatchType, status); err != nil {
		return fmt.Errorf("set node %s ready=%t: %w", name, ready, err)
	}
	return nil
}

func readyCondition(ready bool) corev1.NodeCondition {
	condition := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "LabNodeUp",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}
	if !ready {
		condition.Status, condition.Reason = corev1.ConditionUnknown, "LabNodeDown"
	}
	return condition
}

func patchStatus(ctx context.Context, client kubernetes.Interface, name string, kind types.PatchType,
	status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, name, kind, patch, metav1.PatchOptions{FieldManager: fieldOwner}, "status")
	return err
}
