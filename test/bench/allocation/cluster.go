// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const namespace = "bench"

// cluster is a control plane and a northbound database.
type cluster struct {
	dir     string
	subject *subject.Cluster
	plane   *controlplane.ControlPlane
	client  kubernetes.Interface
	seen    *sight
	// running is the controller between measurements, or nil.
	running *subject.Controller
}

func startCluster(ctx context.Context, dir, program string, apiServerArgs []string, progress io.Writer) (_ *cluster,
	err error) {
	c := &cluster{dir: dir}
	c.plane, err = controlplane.Start(ctx, controlplane.Config{Dir: filepath.Join(dir, "plane"),
		APIServerArgs: apiServerArgs, Progress: progress})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop(ctx))
		}
	}()
	c.subject = &subject.Cluster{Program: program, Dir: dir, Plane: c.plane, ClusterSubnets: "10.244.0.0/14/24"}
	if c.client, err = c.subject.Install(ctx, namespace); err != nil {
		return nil, err
	}
	for i := 1; i <= 3; i++ {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Annotations: map[string]string{
			"k8s.ovn.org/node-chassis-id": fmt.Sprintf("chassis-%d", i),
			"k8s.ovn.org/host-cidrs":      fmt.Sprintf(`["10.60.0.%d/15"]`, 10+i),
		}}}
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(c.plane.Apply(ctx, subject.PoolAndDomain), c.serveNB(ctx)); err != nil {
		return nil, err
	}
	c.seen, err = watchServices(ctx, c.client)
	return c, err
}

// serveNB serves a northbound database. Of OVN-Kubernetes it contains only the cluster router, to which the controller
// adds its policies, and the join switch.
func (c *cluster) serveNB(ctx context.Context) (err error) {
	if c.subject.NB, err = subject.Serve(ctx, c.dir, "nb"); err != nil {
		return err
	}
	return subject.Fill(ctx, c.subject.NB, "lr-add", "ovn_cluster_router", "--", "ls-add", "join",
		"--", "lrp-add", "ovn_cluster_router", "rtoj-ovn_cluster_router", "0a:58:64:40:00:01", "100.64.0.1/16",
		"--", "lsp-add", "join", "jtor-ovn_cluster_router", "--", "lsp-set-type", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-addresses", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-options", "jtor-ovn_cluster_router", "router-port=rtoj-ovn_cluster_router")
}

// stop ends all processes, even if ctx is done.
func (c *cluster) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := proc.KillRecorded(c.dir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, c.plane.Stop(ctx))
}

// create creates a Service without a node port, because only 2,768 exist. The Service has no selector: the
// EndpointSlices of kube-controller-manager would cost the API server more than what is measured.
func (c *cluster) create(ctx context.Context, name string) error {
	none := false
	_, err := c.client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.ServiceSpec{
			Type:                          corev1.ServiceTypeLoadBalancer,
			AllocateLoadBalancerNodePorts: &none,
			Ports:                         []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (c *cluster) createAll(ctx context.Context, prefix string, n int) error {
	return each(ctx, n, func(ctx context.Context, i int) error { return c.create(ctx, fmt.Sprintf("%s-%d", prefix, i)) })
}

func (c *cluster) delete(ctx context.Context, name string) error {
	return c.client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// deleteAll deletes those of the Services that exist.
func (c *cluster) deleteAll(ctx context.Context, prefix string, n int) error {
	return each(ctx, n, func(ctx context.Context, i int) error {
		return gone(c.delete(ctx, fmt.Sprintf("%s-%d", prefix, i)))
	})
}

func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(creators)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
