// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func testNode(name string, edits ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{NodeLabel: "true"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, edit := range edits {
		edit(node)
	}
	return node
}

func testPod(owner types.UID, node string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: new(true)}}
	}
	return pod
}

func TestSchedulingSpreadsOverEligibleNodes(t *testing.T) {
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	down := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	simulated := func(n *corev1.Node) { n.Labels = nil }
	selected := testPod("web", "")
	selected.Spec.NodeSelector = map[string]string{"zone": "b"}
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  string
	}{
		"no node":       {pod: testPod("web", ""), want: ""},
		"first by name": {pod: testPod("web", ""), nodes: []*corev1.Node{testNode("n2"), testNode("n1")}, want: "n1"},
		"cordoned": {pod: testPod("web", ""), nodes: []*corev1.Node{testNode("n1", cordoned), testNode("n2")},
			want: "n2"},
		"not Ready": {pod: testPod("web", ""), nodes: []*corev1.Node{testNode("n1", down), testNode("n2")},
			want: "n2"},
		"not a lab node": {pod: testPod("web", ""), nodes: []*corev1.Node{testNode("n1", simulated)}, want: ""},
		"fewest siblings first": {pod: testPod("web", ""), nodes: []*corev1.Node{testNode("n1"), testNode("n2")},
			pods: []*corev1.Pod{testPod("web", "n1"), testPod("db", "n2"), testPod("db", "n2")}, want: "n2"},
		"then fewest Pods": {pod: testPod("web", ""), nodes: []*corev1.Node{testNode("n1"), testNode("n2")},
			pods: []*corev1.Pod{testPod("db", "n1")}, want: "n2"},
		"node selector": {
			pod: selected, want: "n2",
			nodes: []*corev1.Node{testNode("n1"), testNode("n2", func(n *corev1.Node) { n.Labels["zone"] = "b" })},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choose(test.pod, test.nodes, test.pods); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReadyNeedsAnnotationAndNode(t *testing.T) {
	down := testNode("n1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
	unready := testPod("web", "n1")
	unready.Annotations = map[string]string{ReadyAnnotation: "false"}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		node *corev1.Node
		want corev1.ConditionStatus
	}{
		"all well":   {testPod("web", "n1"), testNode("n1"), corev1.ConditionTrue},
		"annotation": {unready, testNode("n1"), corev1.ConditionFalse},
		"node":       {testPod("web", "n1"), down, corev1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusOf(test.pod, test.node, nil, metav1.Now())
			for _, c := range status.Conditions {
				if c.Type == corev1.PodReady && c.Status == test.want {
					return
				}
			}
			t.Errorf("conditions = %v, want Ready=%s", status.Conditions, test.want)
		})
	}
}

func TestPreStopEndsWithTheHookOrTheGracePeriod(t *testing.T) {
	now := time.Now()
	sleeps := func(seconds int64) *corev1.Lifecycle {
		return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
	}
	for name, test := range map[string]struct {
		hooks []*corev1.Lifecycle
		grace int64
		want  time.Duration // since the deletion
	}{
		"no hook":           {[]*corev1.Lifecycle{nil, {}}, 30, 0},
		"the longest hook":  {[]*corev1.Lifecycle{sleeps(5), sleeps(20)}, 30, 20 * time.Second},
		"the grace period":  {[]*corev1.Lifecycle{sleeps(60)}, 30, 30 * time.Second},
		"deleted with none": {[]*corev1.Lifecycle{sleeps(60)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := testPod("web", "n1")
			for _, hook := range test.hooks {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Lifecycle: hook})
			}
			const since = 2 * time.Second
			ends := metav1.NewTime(now.Add(-since).Add(time.Duration(test.grace) * time.Second))
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &ends, &test.grace
			if got := preStopLeft(pod, now); got != test.want-since {
				t.Errorf("got %s, want %s", got, test.want-since)
			}
		})
	}
}
