// SPDX-License-Identifier: Apache-2.0

package frr_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
)

// pod returns a Pod on node n1 whose containers are ready but those given with the reason why they wait.
func pod(name, owner string, waiting map[string]string) *corev1.Pod {
	controller := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "frr", Name: name, OwnerReferences: []metav1.OwnerReference{
		{Kind: owner, Name: "frr-k8s", Controller: &controller}}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	for _, container := range []string{"controller", "frr", "frr-status"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: container, Image: strings.Repeat("i", 1000)})
		why, waits := waiting[container]
		is := corev1.ContainerStatus{Name: container, Ready: !waits}
		if waits {
			is.State.Waiting = &corev1.ContainerStateWaiting{Reason: why}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, is)
	}
	return p
}

// The reports of a node count while FRR and what reports its sessions are ready in a Pod of the DaemonSet there. A
// mirror Pod, which a kubelet can create, has no effect, whatever it says.
func TestDaemonsOfANode(t *testing.T) {
	const own = "DaemonSet"
	crash := map[string]string{"frr": "CrashLoopBackOff"}
	unstarted := pod("a", own, nil)
	unstarted.Status.ContainerStatuses = nil
	old := pod("a", own, nil)
	old.Spec.Containers = old.Spec.Containers[:2]
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"none":        {nil, "frr-k8s has no Pod on the node"},
		"ready":       {[]*corev1.Pod{pod("a", own, nil)}, ""},
		"FRR crashes": {[]*corev1.Pod{pod("a", own, crash)}, "container frr of Pod frr/a is not ready (CrashLoopBackOff)"},
		"reports nothing": {[]*corev1.Pod{pod("a", own, map[string]string{"frr-status": "ImagePullBackOff"})},
			"container frr-status of Pod frr/a is not ready (ImagePullBackOff)"},
		"its controller crashes":  {[]*corev1.Pod{pod("a", own, map[string]string{"controller": "CrashLoopBackOff"})}, ""},
		"not started":             {[]*corev1.Pod{unstarted}, "container frr of Pod frr/a has not started"},
		"without frr-status":      {[]*corev1.Pod{old}, ""},
		"replaced":                {[]*corev1.Pod{pod("a", own, crash), pod("b", own, nil)}, ""},
		"a mirror Pod that runs":  {[]*corev1.Pod{pod("a", "Node", nil)}, "frr-k8s has no Pod on the node"},
		"a mirror Pod that fails": {[]*corev1.Pod{pod("a", "Node", crash), pod("b", own, nil)}, ""},
	} {
		daemons := frr.Daemons{}
		for _, p := range c.pods {
			daemons.Set(nil, frr.TrimmedPod(frr.TrimmedPod(p)))
		}
		got := daemons.Stopped("frr", "n1")
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := daemons.Stopped("frr", "n2"); !strings.HasPrefix(got, "frr-k8s has no Pod") {
			t.Errorf("%s: another node: %q", name, got)
		}
	}
}

// What changes nothing of a Pod's state causes no decision.
func TestDaemonsChange(t *testing.T) {
	daemons := frr.Daemons{}
	ready, crashed := pod("a", "DaemonSet", nil), pod("a", "DaemonSet", map[string]string{"frr": "Error"})
	controller := pod("a", "DaemonSet", map[string]string{"controller": "Error"})
	mirror := pod("m", "Node", nil)
	for i, step := range []struct {
		old, now *corev1.Pod
		changes  bool
	}{{nil, ready, true}, {ready, controller, false}, {controller, crashed, true}, {crashed, crashed, false},
		{nil, mirror, false}, {mirror, nil, false}, {crashed, nil, true}} {
		if got := daemons.Set(step.old, step.now); got != step.changes {
			t.Errorf("step %d changes something: %t", i, got)
		}
	}
	if len(daemons) > 0 {
		t.Errorf("left: %v", daemons)
	}
}

// Of a Pod, little is kept, whatever its kubelet writes.
func TestTrimmedPodIsBounded(t *testing.T) {
	p := pod("a", "DaemonSet", map[string]string{"frr": strings.Repeat("w", 10_000)})
	p.Annotations = map[string]string{"a": strings.Repeat("a", 10_000)}
	for range 1000 {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, p.Status.ContainerStatuses[1])
	}
	if is := frr.TrimmedPod(p); is.Size() > 2000 || is.Name != "a" {
		t.Errorf("%d bytes are kept of %d", is.Size(), p.Size())
	}
}
