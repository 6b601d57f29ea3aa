// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// The installed controller: its ServiceAccount, and its listen addresses in the central namespace.
const (
	productNamespace = "ovn-kubernetes"
	productAccount   = "ovnkube-slb"
	productName      = "controller"
	guardAccount     = "ovnkube-slb-node"
	guardName        = "guard-" // followed by the node name
	enableL2         = "--enable-l2"
	// MetricsAddress serves the controller's metrics, HealthAddress /healthz and /readyz, both in the namespace "cen".
	MetricsAddress = "127.0.0.1:9480"
	HealthAddress  = "127.0.0.1:9481"
)

// Install applies a kustomization, such as dist/manifests/base, and starts the controller with the permissions of its
// ServiceAccount.
func (l *Lab) Install(ctx context.Context, manifests, controller string, flags ...string) error {
	if err := l.namespace(ctx, productNamespace); err != nil {
		return err
	}
	if _, err := l.Kubectl(ctx, "", "apply", "-k", manifests); err != nil {
		return fmt.Errorf("install %s: %w", manifests, err)
	}
	config, err := l.RESTConfig()
	if err != nil {
		return err
	}
	served := func(ctx context.Context) error { return controlplane.ServesKinds(ctx, config) }
	if err := poll.Within(ctx, poll.Limit, served); err != nil {
		return fmt.Errorf("install %s: %w", manifests, err)
	}
	return l.StartController(ctx, controller, flags...)
}

// StartController starts the program ovnkube-slb with the flags that it has in a cluster, and returns when it is ready.
func (l *Lab) StartController(ctx context.Context, controller string, flags ...string) error {
	if p, err := l.Controller(); err == nil && p.Alive() {
		return errors.New("a controller runs: lab stop-controller")
	}
	cp, err := l.ControlPlane()
	if err != nil {
		return err
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(productNamespace, productAccount)
	if err != nil {
		return err
	}
	args := append([]string{
		controller, "controller", "--k8s-kubeconfig=" + kubeconfig,
		"--cluster-subnets=" + strings.Join(texts(clusterSubnets()), ","),
		"--k8s-service-cidrs=" + strings.Join(texts(serviceSubnets()), ","),
		"--leader-elect", "--metrics-bind-address=" + MetricsAddress, "--healthz-bind-address=" + HealthAddress,
	}, append(l.controllerDatabases(), flags...)...)
	_, err = proc.Start(ctx, proc.Spec{Name: productName, Dir: l.path("started"), Netns: l.Netns(centralNetns), Args: args,
		Nice: proc.Machine, Restart: true})
	if err != nil {
		return err
	}
	return l.awaitReady(ctx, centralNetns, func() error {
		p, err := l.Controller()
		if err == nil && !p.Alive() {
			err = fmt.Errorf("the controller ended: see %s", p.Log())
		}
		return err
	})
}

// awaitReady waits until the program in a namespace says that it is ready. It notes at once what the API server does
// not allow: the manifests may be those of another flavour. alive returns an error if the program is not running.
func (l *Lab) awaitReady(ctx context.Context, netns string, alive func() error) error {
	noted := false
	return poll.Within(ctx, poll.Limit, func(ctx context.Context) error {
		if err := alive(); err != nil {
			return err
		}
		_, err := l.Exec(ctx, netns, "curl", "-s", "--fail-with-body", "-m10", "http://"+HealthAddress+"/readyz")
		if err != nil && !noted && l.Notes != nil && strings.Contains(err.Error(), "is forbidden") {
			noted = true
			fmt.Fprintf(l.Notes, "The manifests do not grant what the flags need: %v\n", err)
		}
		return err
	})
}

// controllerDatabases returns the controller's flags for the databases. With zones it has none.
func (l *Lab) controllerDatabases() []string {
	if l.state.Network.Zones() {
		return []string{"--nb-address=", "--sb-address="}
	}
	return []string{"--nb-address=" + l.NBSocket(), "--sb-address=" + l.SBSocket()}
}

// zoneFlags returns the flags by which the agent of a node programs the node's zone. In central mode the node has no
// databases.
func (l *Lab) zoneFlags(n Node) []string {
	own := zone{netns: n.Name}
	return []string{enableL2, "--nb-address=" + l.socket(own, nbName), "--sb-address=" + l.socket(own, sbName),
		"--cluster-subnets=" + strings.Join(texts(clusterSubnets()), ",")}
}

// Writes returns the API server's counts of writes to the kinds of objects that the controller writes, as sorted lines
// of its metrics.
func (l *Lab) Writes(ctx context.Context) (string, error) {
	metrics, err := l.Kubectl(ctx, "", "get", "--raw", "/metrics")
	if err != nil {
		return "", err
	}
	ours := regexp.MustCompile(`(?m)^apiserver_request_total\{.*group="(|slb\.k8s\.ovn\.org|events\.k8s\.io)".*resource="(services|events|ipaddresspools|l2domains|serviceplans)".*verb="(POST|PUT|PATCH|APPLY|DELETE)".*$`)
	lines := ours.FindAllString(metrics, -1)
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// Controller returns the process that StartController started.
func (l *Lab) Controller() (*proc.Process, error) { return proc.Find(l.path("started"), productName) }

// StopController terminates the controller by SIGTERM, as a cluster does. The controller releases its lease.
func (l *Lab) StopController(ctx context.Context) error {
	p, err := l.Controller()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.Terminate(ctx)
}

// StartGuard starts the node agent, and returns when it has connected to the node's switch. With interconnect it
// programs its zone, in central mode only with the flag --enable-l2, if its node becomes a zone.
func (l *Lab) StartGuard(ctx context.Context, program, node string, flags ...string) error {
	if err := l.launchGuard(ctx, program, node, flags...); err != nil {
		return err
	}
	return l.awaitReady(ctx, node, func() error { return nil })
}

// StartGuardWithoutAPIServer starts the node agent so that it can't reach the API server.
func (l *Lab) StartGuardWithoutAPIServer(ctx context.Context, program, node string) error {
	return l.launchGuard(ctx, program, node, "--k8s-kubeconfig=", "--k8s-apiserver=https://127.0.0.1:1")
}

func (l *Lab) launchGuard(ctx context.Context, program, node string, flags ...string) error {
	n, err := l.Node(node)
	if err != nil {
		return err
	}
	cp, err := l.ControlPlane()
	if err != nil {
		return err
	}
	kubeconfig, err := cp.PodKubeconfig(productNamespace, guardAccount, n.Name)
	if err != nil {
		return err
	}
	args := append([]string{
		program, "node", "--k8s-kubeconfig=" + kubeconfig, "--node-name=" + n.Name, "--healthz-bind-address=" + HealthAddress,
		"--ovs-address=unix:" + l.path(n.Name, "ovs.sock"), "--ovn-run-dir=" + l.path(n.Name),
	}, flags...)
	if l.state.Network.Zones() || slices.Contains(flags, enableL2) {
		// ovn-controller's configuration names the southbound database by its path on the node.
		args = l.contained(n.Name, append(args, l.zoneFlags(n)...)...)
	}
	_, err = l.Start(ctx, n.Name, guardName+n.Name, nil, args...)
	return err
}

// StartGuards starts the guards of all nodes one after the other.
func (l *Lab) StartGuards(ctx context.Context, program string, flags ...string) error {
	for _, n := range l.Nodes {
		if err := l.StartGuard(ctx, program, n.Name, flags...); err != nil {
			return fmt.Errorf("guard of node %s: %w", n.Name, err)
		}
	}
	return nil
}

// KillGuard kills the guard of a node by SIGKILL. It does nothing if the guard is dead.
func (l *Lab) KillGuard(node string) error {
	p, err := proc.Find(l.path("started"), guardName+node)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.Kill()
}

// StopGuard terminates the guard of a node by SIGTERM, as a cluster does.
func (l *Lab) StopGuard(ctx context.Context, node string) error {
	p, err := proc.Find(l.path("started"), guardName+node)
	if err != nil {
		return err
	}
	return p.Terminate(ctx)
}

// KillGuards kills the guards of all nodes.
func (l *Lab) KillGuards() error {
	var errs []error
	for _, n := range l.Nodes {
		errs = append(errs, l.KillGuard(n.Name))
	}
	return errors.Join(errs...)
}
