// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Names of the containers of OVN in the Pods of OVN-Kubernetes: its own manifests, then OpenShift's.
func northdNames() []string     { return []string{"ovn-northd", "northd"} }
func northboundNames() []string { return []string{"nb-ovsdb", "nbdb"} }
func controllerNames() []string { return []string{"ovn-controller"} }

// stopped is a container of OVN that does not work.
type stopped struct {
	pod       *corev1.Pod
	container string
	why       string
}

func (s *stopped) String() string {
	return fmt.Sprintf("container %s of Pod %s/%s on node %s is not ready (%s)", s.container, s.pod.Namespace, s.pod.Name,
		s.pod.Spec.NodeName, s.why)
}

// command shows why the container does not work.
func (s *stopped) command() string {
	return printable.Command("kubectl -n %s logs %s -c %s --previous   # then describe pod %s", s.pod.Namespace,
		s.pod.Name, s.container, s.pod.Name)
}

// stopped returns a container with one of these names that does not work, if none works. It returns nil if one does, or
// if no Pod shows such a container. A node limits the Pods to its own.
func (p *path) stopped(node string, containers ...string) *stopped {
	var found *stopped
	for _, pod := range p.objects.Pods {
		if node != "" && pod.Spec.NodeName != node {
			continue
		}
		for i := range pod.Status.ContainerStatuses {
			c := &pod.Status.ContainerStatuses[i]
			if !slices.Contains(containers, c.Name) {
				continue
			}
			if c.Ready {
				return nil
			}
			found = cmp.Or(found, &stopped{pod, c.Name, whyStopped(c)})
		}
	}
	return found
}

// stoppedDaemon returns our own container on a node if it does not work. It returns nil if it does, or if no Pod shows
// it. What the node has reported stays valid for a while.
func (p *path) stoppedDaemon(node string) *stopped {
	only := path{objects: &objects.Objects{}}
	for _, pod := range p.objects.Pods {
		if pod.Labels["app.kubernetes.io/name"] == nodeDaemons {
			only.objects.Pods = append(only.objects.Pods, pod)
		}
	}
	return only.stopped(node, "node")
}

// stoppedFRR returns a container of frr-k8s on a node that does not work and without which reports are out of date. It
// returns nil if there is none.
func (p *path) stoppedFRR(node string) *stopped {
	only := path{objects: &objects.Objects{}}
	for _, pod := range p.objects.Pods {
		if frr.IsDaemon(pod) {
			only.objects.Pods = append(only.objects.Pods, pod)
		}
	}
	for _, container := range frr.Containers() {
		if s := only.stopped(node, container); s != nil {
			return s
		}
	}
	return nil
}

// nodeDaemons is the name of the DaemonSet with guards, agents and BGP daemons.
const nodeDaemons = "ovnkube-slb-node"

// mendChange returns the reason and the command against what does not pass changes on to OVN: ovn-northd, or the
// northbound database. It is on a node, with interconnect, or the cluster's if the name
// is empty. All that finds it has the command from here, with the container that does not work, nil if none is known.
func (p *path) mendChange(node string, northd bool) (reason, command string, s *stopped) {
	program, containers, reason := "the northbound database", northboundNames(), v1alpha1.ReasonDatabaseUnreachable
	if northd {
		program, containers, reason = "ovn-northd", northdNames(), ReasonNorthdStopped
	}
	if s = p.stopped(node, containers...); s != nil {
		return reason, s.command(), s
	}
	if node == "" {
		return reason, "kubectl get pods -A -o wide | grep ovnkube   # is " + program + " running?", nil
	}
	if pod := p.podWith(node, containers...); pod != nil {
		return reason, printable.Command("kubectl -n %s delete pod %s   # restarts "+program+" of node %s", pod.Namespace,
			pod.Name, node), nil
	}
	return reason, printable.Command("kubectl get pods -A -o wide --field-selector spec.nodeName=%s   # delete the Pod "+
		"with "+program+", which restarts it", node), nil
}

func whyStopped(c *corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason
	case c.State.Terminated != nil:
		return fmt.Sprintf("terminated: %s, exit code %d", c.State.Terminated.Reason, c.State.Terminated.ExitCode)
	}
	return "its readiness probe fails"
}

// podWith returns a Pod on a node that has a container with one of these names; nil if there is none.
func (p *path) podWith(node string, containers ...string) *corev1.Pod {
	for _, pod := range p.objects.Pods {
		if pod.Spec.NodeName == node && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return slices.Contains(containers, c.Name)
		}) {
			return pod
		}
	}
	return nil
}
