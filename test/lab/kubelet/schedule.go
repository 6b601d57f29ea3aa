// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// scheduler binds Pods one at a time. It remembers its decisions until the informer has observed them. Otherwise, all
// Pods of a burst would be placed on the same empty node.
type scheduler struct {
	mu      sync.Mutex
	assumed map[types.UID]string
}

func (a *agent) bind(ctx context.Context, pod *corev1.Pod) error {
	a.sched.mu.Lock()
	defer a.sched.mu.Unlock()
	nodes, err := a.nodes.List(everything())
	if err != nil {
		return err
	}
	pods, err := a.pods.List(everything())
	if err != nil {
		return err
	}
	if a.sched.assumed[pod.UID] != "" {
		return nil // Bound, but the informer has not observed it yet.
	}
	node := choose(pod, nodes, a.sched.assume(pods))
	if node == "" { // A change of a Node enqueues the Pod again.
		klog.FromContext(ctx).Info("Pod waits: no Ready lab node may take it", "pod", klog.KObj(pod), "nodeSelector",
			pod.Spec.NodeSelector)
		return nil
	}
	err = a.Client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind Pod %s/%s to %s: %w", pod.Namespace, pod.Name, node, err)
	}
	a.sched.assumed[pod.UID] = node
	return nil
}

// assume returns the Pods with the decisions that the informer has not observed yet, and drops the others.
func (s *scheduler) assume(pods []*corev1.Pod) []*corev1.Pod {
	open := make(map[types.UID]string)
	out := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		out[i] = pod
		if node := s.assumed[pod.UID]; node != "" && pod.Spec.NodeName == "" {
			open[pod.UID] = node
			out[i] = pod.DeepCopy()
			out[i].Spec.NodeName = node
		}
	}
	s.assumed = open
	return out
}

// choose spreads Pods. Of the eligible nodes it selects the one with the fewest Pods of the same owner, then the fewest
// Pods, then the first by name. It returns the empty string if no node is eligible.
func choose(pod *corev1.Pod, nodes []*corev1.Node, pods []*corev1.Pod) string {
	type load struct{ siblings, all int }
	loads := make(map[string]load)
	owner := metav1.GetControllerOf(pod)
	for _, other := range pods {
		l := loads[other.Spec.NodeName]
		l.all++
		if of := metav1.GetControllerOf(other); of != nil && owner != nil && of.UID == owner.UID {
			l.siblings++
		}
		loads[other.Spec.NodeName] = l
	}
	eligible := slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool { return !takes(node, pod) })
	if len(eligible) == 0 {
		return ""
	}
	best := slices.MinFunc(eligible, func(a, b *corev1.Node) int {
		la, lb := loads[a.Name], loads[b.Name]
		return cmp.Or(cmp.Compare(la.siblings, lb.siblings), cmp.Compare(la.all, lb.all), cmp.Compare(a.Name, b.Name))
	})
	return best.Name
}

// takes reports whether the Pod may be placed on the node: it is served by the agent, Ready, not cordoned, and matches
// the Pod's node selector.
func takes(node *corev1.Node, pod *corev1.Pod) bool {
	return served(node) && nodeReady(node) && !node.Spec.Unschedulable &&
		labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels))
}

func served(node *corev1.Node) bool { return node.Labels[NodeLabel] == "true" }

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func everything() labels.Selector { return labels.Everything() }
