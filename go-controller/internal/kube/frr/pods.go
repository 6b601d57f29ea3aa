// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Container is the one with FRR in the Pods of frr-k8s.
const Container = "frr"

// Containers returns those in the Pods of frr-k8s without which what is reported of a node is out of date: FRR, and
// what writes BGPSessionStates. Others only change FRR's configuration, or report it.
func Containers() []string { return []string{Container, "frr-status"} }

// IsDaemon reports whether a Pod is one of frr-k8s' DaemonSet. A kubelet can create mirror Pods in any namespace, but
// not with such an owner, and writes the status of its own Pods only.
func IsDaemon(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet" && slices.ContainsFunc(p.Spec.Containers,
		func(c corev1.Container) bool { return c.Name == Container })
}

// TrimmedPod keeps what Daemons reads of a Pod.
func TrimmedPod(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: identity(&p.ObjectMeta)}
	if !IsDaemon(p) {
		return out
	}
	out.OwnerReferences = []metav1.OwnerReference{*metav1.GetControllerOf(p)}
	out.Spec.NodeName = p.Spec.NodeName
	for i := range p.Spec.Containers {
		if name := p.Spec.Containers[i].Name; slices.Contains(Containers(), name) {
			out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: name})
		}
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		is := func(other corev1.ContainerStatus) bool { return other.Name == c.Name }
		if slices.Contains(Containers(), c.Name) && !slices.ContainsFunc(out.Status.ContainerStatuses, is) {
			out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, trimmedContainer(c))
		}
	}
	return out
}

func trimmedContainer(c *corev1.ContainerStatus) corev1.ContainerStatus {
	out := corev1.ContainerStatus{Name: c.Name, Ready: c.Ready}
	if w := c.State.Waiting; w != nil {
		out.State.Waiting = &corev1.ContainerStateWaiting{Reason: copyBounded(w.Reason)}
	}
	if t := c.State.Terminated; t != nil {
		out.State.Terminated = &corev1.ContainerStateTerminated{Reason: copyBounded(t.Reason), ExitCode: t.ExitCode}
	}
	return out
}

// Daemons are why the Pods of frr-k8s do not work, empty for those that do, by node and name.
type Daemons map[string]map[string]string

// Set replaces a Pod, either of which may be nil, and reports whether that changes anything.
func (d Daemons) Set(old, now *corev1.Pod) bool {
	changed := false
	if old != nil && IsDaemon(old) {
		pods := d[old.Spec.NodeName]
		if delete(pods, old.Name); len(pods) == 0 {
			delete(d, old.Spec.NodeName)
		}
		changed = true
	}
	if now != nil && IsDaemon(now) {
		if d[now.Spec.NodeName] == nil {
			d[now.Spec.NodeName] = map[string]string{}
		}
		why := stopped(now)
		d[now.Spec.NodeName][now.Name] = why
		changed = !changed || old.Spec.NodeName != now.Spec.NodeName || stopped(old) != why
	}
	return changed
}

// Stopped returns why what frr-k8s reports of a node may be out of date, empty if it is not. While a Pod replaces
// another one, one that works is enough.
func (d Daemons) Stopped(namespace, node string) string {
	pods := d[node]
	if len(pods) == 0 {
		return fmt.Sprintf("frr-k8s has no Pod on the node (of a DaemonSet in namespace %s, with a container %s)", namespace,
			Container)
	}
	first := ""
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		switch {
		case pods[name] == "":
			return ""
		case first == "":
			first = pods[name]
		}
	}
	return first + ", so what frr-k8s reports of the node may be out of date"
}

// stopped returns why a Pod does not work, empty if it does.
func stopped(p *corev1.Pod) string {
	for _, name := range Containers() {
		is := func(c corev1.Container) bool { return c.Name == name }
		if !slices.ContainsFunc(p.Spec.Containers, is) {
			continue // releases before v0.0.18 have no BGPSessionStates
		}
		at := slices.IndexFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
		if at < 0 {
			return fmt.Sprintf("container %s of Pod %s/%s has not started", name, p.Namespace, p.Name)
		}
		if c := &p.Status.ContainerStatuses[at]; !c.Ready {
			return fmt.Sprintf("container %s of Pod %s/%s is not ready (%s)", name, p.Namespace, p.Name, whyNotReady(c))
		}
	}
	return ""
}

func whyNotReady(c *corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil:
		return Bounded(c.State.Waiting.Reason)
	case c.State.Terminated != nil:
		return fmt.Sprintf("terminated: %s, exit code %d", Bounded(c.State.Terminated.Reason), c.State.Terminated.ExitCode)
	}
	return "its probe fails, or has not succeeded yet"
}
