// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/responder"
)

const (
	responderProcess = "responder"
	// readyFile, in the Pod's directory, exists when the responder listens.
	readyFile = "ready"
)

// sync reconciles one Pod on this machine and its status with its object. After a failure it is simply called again.
func (a *agent) sync(ctx context.Context, key cache.ObjectName) error {
	pod, err := a.pods.Pods(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		pod = nil
	}
	running, ok := a.local.get(key)
	var preStop time.Duration // remaining time
	if ok && pod != nil && pod.UID == running.UID && pod.DeletionTimestamp != nil {
		preStop = preStopLeft(pod, time.Now())
	}
	if ok && (pod == nil || pod.UID != running.UID || pod.DeletionTimestamp != nil && preStop <= 0) {
		if err := a.stop(ctx, running); err != nil {
			return err
		}
	}
	switch {
	case pod == nil:
		return nil
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
		return a.bind(ctx, pod)
	}
	node, err := a.nodes.Get(pod.Spec.NodeName)
	if apierrors.IsNotFound(err) || err == nil && !served(node) {
		return nil // Not served here. If the Node appears or gets the label, every Pod is synced again.
	}
	if err != nil {
		return err
	}
	switch {
	case preStop > 0: // The Pod is served like any other until then: its containers run and its readiness is updated.
		a.queue.AddAfter(key, preStop)
	case pod.DeletionTimestamp != nil:
		return a.finish(ctx, pod)
	}
	return a.serve(ctx, pod, node)
}

// preStopLeft returns the time that the containers of a Pod that is being deleted may still run: until the longest of
// their preStop hooks ends, or until the grace period ends. Only sleep hooks are supported. The API server counts the
// grace period from the first deletion, even if a later one shortens it.
func preStopLeft(pod *corev1.Pod, now time.Time) time.Duration {
	var hook, grace time.Duration
	for _, container := range pod.Spec.Containers {
		if l := container.Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Sleep != nil {
			hook = max(hook, time.Duration(l.PreStop.Sleep.Seconds)*time.Second)
		}
	}
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	deleted := pod.DeletionTimestamp.Add(-grace)
	return deleted.Add(min(hook, grace)).Sub(now)
}

// serve connects the Pod, starts its responder, and writes its status.
func (a *agent) serve(ctx context.Context, pod *corev1.Pod, node *corev1.Node) error {
	ref := podOf(pod)
	if err := a.local.add(ref); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	attachment, err := a.local.plug(ctx, a.Network, ref)
	if err != nil {
		return fmt.Errorf("plug: %w", err)
	}
	if err := a.ensureResponder(ctx, pod, attachment.Netns); err != nil {
		return err
	}
	return a.writeStatus(ctx, pod, statusOf(pod, node, attachment.IPs, metav1.Now()))
}

func (a *agent) ensureResponder(ctx context.Context, pod *corev1.Pod, netns string) error {
	dir := a.local.podDir(podOf(pod))
	if p, err := proc.Find(dir, responderProcess); err == nil && p.Alive() {
		return nil
	}
	ready := filepath.Join(dir, readyFile)
	if err := os.Remove(ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("start the responder: %w", err)
	}
	options := responder.Options{Name: pod.Name, TCP: ports(pod, corev1.ProtocolTCP), UDP: ports(pod, corev1.ProtocolUDP)}
	_, err := proc.Start(ctx, proc.Spec{
		Name: responderProcess, Dir: dir, Netns: netns, Nice: proc.Foremost,
		Args: slices.Concat(a.Responder, options.Args(ready)),
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
	})
	return err
}

// stop removes all resources of a Pod on this machine.
func (a *agent) stop(ctx context.Context, pod Pod) error {
	p, err := proc.Find(a.local.podDir(pod), responderProcess)
	if err == nil {
		err = p.Kill()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stop the responder: %w", err)
	}
	if err := a.local.unplug(ctx, a.Network, pod); err != nil {
		return fmt.Errorf("unplug: %w", err)
	}
	if err := a.local.remove(pod); err != nil {
		return fmt.Errorf("remove the record: %w", err)
	}
	return nil
}

// finish deletes the object of a Pod that has ended on this machine.
func (a *agent) finish(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err := a.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *now)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // It is gone, or was replaced by another Pod.
		return nil
	}
	return err
}

func (a *agent) writeStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	changed := pod.DeepCopy()
	changed.Status = status
	_, err := a.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // The Pod has changed, and its event will follow.
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// ports returns the Pod's container ports of the protocol, sorted and without duplicates.
func ports(pod *corev1.Pod, protocol corev1.Protocol) []uint16 {
	var out []uint16
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Protocol == protocol {
				out = append(out, uint16(port.ContainerPort))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
