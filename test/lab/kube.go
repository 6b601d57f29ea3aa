// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// errNoKube is returned by functions that need the API server if the lab has none.
var errNoKube = errors.New("this lab was built without the API server")

const (
	apiServerPort = 6443
	agentName     = "agent"
	podsDir       = "pods"
	kubeDir       = "kube"

	annotationPrefix = "k8s.ovn.org/" // of OVN-Kubernetes
	// transitAnnotation has the addresses of a Node on the transit switch.
	transitAnnotation = annotationPrefix + "node-transit-switch-port-ifaddr"
)

// startKube starts the control plane and registers the nodes. The programs are built outside of the namespaces, where
// the internet is reachable. They are started in the central namespace because the starting process must be able to
// connect to them.
func (l *Lab) startKube(ctx context.Context, p *progress) error {
	bin, err := controlplane.Binaries(ctx, p)
	if err != nil {
		return err
	}
	if err := l.runControlPlane(ctx, bin); err != nil {
		return err
	}
	p.logf("Kubernetes: API server ready")
	client, err := l.Client()
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range l.Nodes {
		g.Go(func() error { return l.register(gctx, client, n) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.logf("Kubernetes: %d nodes registered", len(l.Nodes))
	return nil
}

// runControlPlane starts the control plane in the central namespace.
func (l *Lab) runControlPlane(ctx context.Context, bin controlplane.BinDir) error {
	if _, err := run(ctx, l.inside(centralNetns, l.self("control-plane", string(bin))...)...); err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	return nil
}

// StopControlPlane ends the API server, etcd and the controller manager. The returned function starts them again with
// all objects. No other function that needs the API server works in between.
func (l *Lab) StopControlPlane(ctx context.Context) (start func(context.Context) error, err error) {
	cp, err := l.ControlPlane()
	if err != nil {
		return nil, err
	}
	start = func(ctx context.Context) error { return l.runControlPlane(ctx, cp.Bin()) }
	return start, cp.Stop(ctx)
}

// startAgent starts the agent of all nodes. It runs outside of the namespaces, so that its mounts are visible
// everywhere.
func (l *Lab) startAgent(ctx context.Context) error {
	_, err := proc.Start(ctx, proc.Spec{Name: agentName, Dir: l.Dir, Nice: proc.Machine, Args: l.self(agentName),
		Env: []string{marker(l.Dir)}})
	return err
}

// StartControlPlane runs etcd, the API server and the controller manager. The lab's command calls it in the central
// namespace.
func (l *Lab) StartControlPlane(ctx context.Context, bin string) error {
	_, err := controlplane.Start(ctx, controlplane.Config{
		Dir: l.path(kubeDir), Bin: controlplane.BinDir(bin),
		Address: Management().Host(centralHost)[0].Addr(), Port: apiServerPort, ServiceCIDRs: serviceSubnets(),
	})
	return err
}

// RunAgent serves the pods of all nodes until the context is done. The lab's command calls it.
func (l *Lab) RunAgent(ctx context.Context) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	plug, err := l.NewPlug(ctx)
	if err != nil {
		return err
	}
	return kubelet.Run(ctx, kubelet.Options{
		Client: client, Network: plug, Dir: l.path(podsDir), Responder: l.self("responder"),
	})
}

// ControlPlane returns the running control plane. Its address is reachable only in the lab's central namespace, but the
// commands that it starts run outside.
func (l *Lab) ControlPlane() (*controlplane.ControlPlane, error) {
	if l.state.NoKube {
		return nil, errNoKube
	}
	return controlplane.Attach(l.path(kubeDir))
}

// RESTConfig returns the administrator's configuration for client-go. It works in any namespace because it dials from
// the central one.
func (l *Lab) RESTConfig() (*rest.Config, error) {
	cp, err := l.ControlPlane()
	if err != nil {
		return nil, err
	}
	config := cp.RESTConfig()
	config.Dial = dialer(l.Netns(centralNetns))
	return config, nil
}

// Client returns a clientset that uses RESTConfig.
func (l *Lab) Client() (*kubernetes.Clientset, error) {
	config, err := l.RESTConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// KubectlCommand returns a kubectl command as administrator in the central namespace.
func (l *Lab) KubectlCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	cp, err := l.ControlPlane()
	if err != nil {
		return nil, err
	}
	return l.AdminCommand(ctx, append([]string{cp.Bin().Path("kubectl")}, args...)...)
}

// AdminCommand returns a command in the central namespace whose environment has the administrator's kubeconfig, such as
// a plugin of kubectl.
func (l *Lab) AdminCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	cp, err := l.ControlPlane()
	if err != nil {
		return nil, err
	}
	cmd := l.Command(ctx, centralNetns, args...)
	cmd.Env = cp.KubectlCommand(ctx).Env
	return cmd, nil
}

// Kubectl runs kubectl and returns its output. `-f -` reads stdin.
func (l *Lab) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd, err := l.KubectlCommand(ctx, args...)
	if err != nil {
		return "", err
	}
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

// register creates the Node object, with the annotations that OVN-Kubernetes writes.
func (l *Lab) register(ctx context.Context, client kubernetes.Interface, n Node) error {
	if l.state.Network.Real() {
		return kubelet.Register(ctx, client, kubelet.Node{Name: n.Name, IPs: addrsOf(n.LAN)})
	}
	annotations, err := l.annotations(n)
	if err != nil {
		return err
	}
	return kubelet.Register(ctx, client, kubelet.Node{Name: n.Name, Annotations: annotations, IPs: addrsOf(n.LAN),
		PodCIDRs: n.PodSubnets})
}

func (l *Lab) annotations(n Node) (map[string]string, error) {
	router := LAN().Host(routerHost)
	out := map[string]string{
		"k8s.ovn.org/node-chassis-id":         n.Chassis,
		"k8s.ovn.org/zone-name":               l.zoneOf(n).name,
		idAnnotation:                          fmt.Sprint(n.ID),
		"k8s.ovn.org/layer2-topology-version": "2.0",
	}
	byFamily := func(p []netip.Prefix) map[string]string {
		return map[string]string{"ipv4": p[0].String(), "ipv6": p[1].String()}
	}
	values := map[string]any{
		"host-cidrs":             texts(n.LAN),
		"node-subnets":           map[string]any{"default": texts(n.PodSubnets)},
		"node-primary-ifaddr":    byFamily(n.LAN),
		"node-encap-ips":         texts(addrsOf(Underlay().Host(n.Index))),
		"node-masquerade-subnet": byFamily(masqueradeSubnets()),
		"l3-gateway-config": map[string]any{"default": map[string]any{
			"mode": "shared", "bridge-id": "br-ex", "interface-id": "br-ex_" + n.Name, "mac-address": n.MAC,
			"ip-addresses": texts(n.LAN), "next-hops": texts(addrsOf(router)), "node-port-enable": "true", "vlan-id": "0",
		}},
	}
	if l.state.Network.Zones() {
		values[strings.TrimPrefix(transitAnnotation, annotationPrefix)] = byFamily(n.Transit)
	}
	for key, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", key, err)
		}
		out[annotationPrefix+key] = string(text)
	}
	return out, nil
}

// DeleteNode deletes the Node object, as an administrator does who removes a node. add creates it again, once, with the
// annotations that the node itself writes at its start. It returns when OVN-Kubernetes has assigned the others.
func (l *Lab) DeleteNode(ctx context.Context, name string) (add func(context.Context) error, err error) {
	n, err := l.Node(name)
	if err != nil {
		return nil, err
	}
	client, err := l.Client()
	if err != nil {
		return nil, err
	}
	object, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	annotations := maps.Clone(object.Annotations)
	if l.state.Network.Real() {
		// OVN-Kubernetes gives a new Node another ID. The other zones would keep routes to the addresses of both.
		delete(annotations, idAnnotation)
		delete(annotations, transitAnnotation)
	}
	return func(ctx context.Context) error {
		if err := kubelet.Register(ctx, client, kubelet.Node{Name: name, Annotations: annotations,
			Labels: object.Labels, IPs: addrsOf(n.LAN), PodCIDRs: n.PodSubnets}); err != nil || !l.state.Network.Real() {
			return err
		}
		return poll.Within(ctx, poll.Limit, l.loadAddresses)
	}, nil
}

// Drain excludes a node from load balancing by its label, as an administrator does before maintenance. Undrain reverts
// it.
func (l *Lab) Drain(ctx context.Context, name string) error { return l.exclude(ctx, name, "true") }

// Undrain removes the label that Drain sets.
func (l *Lab) Undrain(ctx context.Context, name string) error { return l.exclude(ctx, name, nil) }

func (l *Lab) exclude(ctx context.Context, name string, value any) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	metadata := map[string]any{"labels": map[string]any{corev1.LabelNodeExcludeBalancers: value}}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label node %s with %s=%v: %w", name, corev1.LabelNodeExcludeBalancers, value, err)
	}
	return nil
}

// self returns a command line of the lab's own program, for this lab.
func (l *Lab) self(args ...string) []string {
	return append([]string{l.state.Binary, "--name", l.Name, "--dir", filepath.Dir(l.Dir)}, args...)
}
