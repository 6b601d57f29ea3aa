// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusOf returns the status of a running Pod. Times change only with the values to which they belong, so that equal
// states are equal objects.
func statusOf(pod *corev1.Pod, node *corev1.Node, ips []netip.Addr, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase = corev1.PodRunning
	if status.StartTime == nil {
		status.StartTime = &now
	}
	status.PodIPs, status.HostIPs = nil, nil
	for _, ip := range ips {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip.String()})
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: address.Address})
		}
	}
	if len(status.PodIPs) > 0 {
		status.PodIP = status.PodIPs[0].IP
	}
	if len(status.HostIPs) > 0 {
		status.HostIP = status.HostIPs[0].IP
	}
	ready := pod.Annotations[ReadyAnnotation] != "false"
	setCondition(&status, corev1.PodInitialized, true, now)
	setCondition(&status, corev1.ContainersReady, ready, now)
	setCondition(&status, corev1.PodReady, ready && nodeReady(node), now)
	status.ContainerStatuses = containers(pod, ready, *status.StartTime)
	return status
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value bool, now metav1.Time) {
	want := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: now}
	if value {
		want.Status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	switch {
	case i < 0:
		status.Conditions = append(status.Conditions, want)
	case status.Conditions[i].Status != want.Status:
		status.Conditions[i] = want
	}
}

// containers returns the status of the Pod's containers. All of them run, as the one responder, since the Pod's start.
// Only their readiness changes.
func containers(pod *corev1.Pod, ready bool, started metav1.Time) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for _, container := range pod.Spec.Containers {
		out = append(out, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: ready, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	return out
}
