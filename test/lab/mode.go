// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// SetMode moves the cluster to Central or Interconnect, as an upgrade of OVN-Kubernetes does, but all nodes at once.
// The databases of the mode before end, and OVN-Kubernetes fills new ones, without rows of ours. Pods keep their
// addresses. SetMode returns when all nodes forward again. It neither stops nor starts the controller and the guards.
func (l *Lab) SetMode(ctx context.Context, mode string) error {
	if mode == l.state.Network.Mode {
		return nil
	}
	next := l.state.Network
	next.Mode = mode
	if err := next.checkProgram(ctx); err != nil {
		return err
	}
	var plug *Plug
	if !l.state.Network.Real() {
		var err error
		if plug, err = l.NewPlug(ctx); err != nil { // It knows the addresses of pods from the old databases.
			return err
		}
	}
	if err := l.endMode(ctx); err != nil {
		return fmt.Errorf("end mode %s: %w", l.state.Network.Mode, err)
	}
	l.state.Network = next
	if err := l.saveState(); err != nil {
		return err
	}
	if err := l.startZones(ctx, l.reconnect); err != nil {
		return err
	}
	if err := l.awaitChassis(ctx); err != nil {
		return err
	}
	if l.state.Network.Real() {
		if err := l.startOVNKubes(ctx); err != nil {
			return err
		}
	} else if err := l.joinPods(ctx, plug); err != nil {
		return err
	}
	if err := l.startAgent(ctx); err != nil {
		return err
	}
	return l.Settle(ctx)
}

// endMode ends what depends on the mode, and deletes its databases.
func (l *Lab) endMode(ctx context.Context) error {
	agent, err := proc.Find(l.Dir, agentName)
	if err != nil {
		return err
	}
	if err := agent.Terminate(ctx); err != nil {
		return err
	}
	if err := l.KillOVNKube(); err != nil {
		return err
	}
	for _, n := range l.Nodes {
		if err := l.KillDaemon(n.Name, OVNController); err != nil {
			return err
		}
	}
	for _, z := range l.zones() {
		for _, daemon := range []string{Northd, NorthboundDB, SouthboundDB} {
			if err := l.KillDaemon(z.netns, daemon); err != nil {
				return err
			}
		}
		for _, database := range []string{nbName, sbName} {
			if err := os.Remove(l.path(z.netns, database+".db")); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconnect is like startNode, for a node whose switch runs.
func (l *Lab) reconnect(ctx context.Context, n Node, databases <-chan struct{}) error {
	args := []string{"--no-wait", "set", "Open_vSwitch", ".", "external_ids:ovn-remote=" + l.southbound(n)}
	if !l.state.Network.Real() {
		args = append(args, l.isInterconnect())
	}
	if _, err := l.vsctl(ctx, n, args...); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-databases:
	}
	return l.startController(ctx, n)
}

// joinPods writes what OVN-Kubernetes writes in the mode, in the model: ports of the pods, and annotations of Nodes.
func (l *Lab) joinPods(ctx context.Context, plug *Plug) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, p := range pods.Items {
		pod := kubelet.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Node: p.Spec.NodeName}
		addrs, plugged := plug.given[podPort(pod)]
		if !plugged {
			continue
		}
		g.Go(func() error {
			n, err := l.Node(pod.Node)
			if err != nil {
				return err
			}
			return plug.writePort(gctx, n, pod, addrs)
		})
	}
	for _, n := range l.Nodes {
		g.Go(func() error {
			values, err := l.annotations(n)
			if err != nil {
				return err
			}
			annotations := map[string]any{transitAnnotation: nil} // Null removes it in central mode.
			for key, value := range values {
				annotations[key] = value
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
			if err != nil {
				return err
			}
			_, err = client.CoreV1().Nodes().Patch(gctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	return g.Wait()
}
