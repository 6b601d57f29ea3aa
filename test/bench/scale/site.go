// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const (
	namespace = "bench"
	// atOnce is the number of concurrent requests.
	atOnce = 16
)

// site is a control plane with OVN's databases, filled with the objects and rows of a large cluster.
type site struct {
	dir      string
	profiles string // directory; empty disables profiles
	progress io.Writer
	began    time.Time
	result   result
	save     func() error // stores the result

	plane   *controlplane.ControlPlane
	client  kubernetes.Interface
	subject *subject.Cluster
	running *subject.Controller
	north   *watch
	moved   map[int]int // number of moved endpoints per node
}

func (s *site) logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(s.progress, "%6.1fs  %s\n", time.Since(s.began).Seconds(), line) //nolint:errcheck // output
}

func (s *site) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := proc.KillRecorded(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if s.plane != nil {
		err = errors.Join(err, s.plane.Stop(ctx))
	}
	return err
}

// buildPlane starts the API server.
func (s *site) buildPlane(ctx context.Context, program string) (err error) {
	s.plane, err = controlplane.Start(ctx, controlplane.Config{Dir: filepath.Join(s.dir, "plane"),
		APIServerArgs: subject.FastAPIServer(), Progress: s.progress})
	if err != nil {
		return err
	}
	s.subject = &subject.Cluster{Program: program, Dir: s.dir, Plane: s.plane, ClusterSubnets: "10.128.0.0/9/24"}
	s.client, err = s.subject.Install(ctx, namespace)
	return err
}

// build starts everything except the controller.
func (s *site) build(ctx context.Context, program string) (err error) {
	if err := s.buildPlane(ctx, program); err != nil {
		return err
	}
	if s.subject.NB, s.subject.SB, err = serve(ctx, s.dir); err != nil {
		return err
	}
	if err := errors.Join(s.fillNorth(ctx), s.fillSouth(ctx)); err != nil {
		return err
	}
	if err := startNorthd(ctx, s.dir, s.subject.NB, s.subject.SB); err != nil {
		return err
	}
	s.logf("databases and ovn-northd run, with rows of %d nodes", s.result.Nodes)
	if err := s.objects(ctx); err != nil {
		return err
	}
	s.north, err = startWatch(ctx, s.subject.NB)
	return err
}

// serve serves two empty databases from a directory.
func serve(ctx context.Context, dir string) (nb, sb string, err error) {
	if nb, err = subject.Serve(ctx, dir, "nb"); err != nil {
		return "", "", err
	}
	sb, err = subject.Serve(ctx, dir, "sb")
	return nb, sb, err
}

// startNorthd starts ovn-northd for two databases.
func startNorthd(ctx context.Context, dir, nb, sb string) error {
	_, err := proc.Start(ctx, proc.Spec{Name: "northd", Dir: dir, Args: []string{
		"ovn-northd", "--ovnnb-db=" + nb, "--ovnsb-db=" + sb, "--unixctl=" + filepath.Join(dir, "northd.ctl"),
		"-vsyslog:off",
	}})
	return err
}

// objects creates a pool and an L2Domain, Nodes, and Services with their EndpointSlices. The Services have no node
// ports, because only 2,768 exist.
func (s *site) objects(ctx context.Context) error {
	if err := s.plane.Apply(ctx, subject.PoolAndDomain); err != nil {
		return err
	}
	defer s.logf("API server has %d nodes and %d Services with %d endpoints each", s.result.Nodes, s.result.Services,
		s.result.Endpoints)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range s.result.Nodes {
		annotations := map[string]string{
			"k8s.ovn.org/node-chassis-id": chassis(i),
			"k8s.ovn.org/node-subnets":    fmt.Sprintf(`{"default":["%s0/24"]}`, pods(i)),
		}
		if s.result.Zones != nil {
			annotations["k8s.ovn.org/zone-name"] = nodeName(i)
			annotations["k8s.ovn.org/node-transit-switch-port-ifaddr"] = fmt.Sprintf(`{"ipv4":"%s/16"}`, transit(i))
		}
		g.Go(func() error {
			_, err := s.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i),
				Annotations: annotations}}, metav1.CreateOptions{})
			return err
		})
	}
	for i := range s.result.Services {
		g.Go(func() error {
			_, err := s.client.CoreV1().Services(namespace).Create(ctx, s.service(i), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			_, err = s.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, s.slice(i), metav1.CreateOptions{})
			return err
		})
	}
	return g.Wait()
}

func (*site) service(i int) *corev1.Service {
	none := false
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName(i)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: &none,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}

// slice returns the endpoints of a Service, each on a different node if there are enough nodes.
func (s *site) slice(i int) *discoveryv1.EndpointSlice {
	name, port, ready := "http", int32(8080), true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName(i) + "-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName(i)}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	for k := range s.result.Endpoints {
		n := i*s.result.Endpoints + k
		node := nodeName(n % s.result.Nodes)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{s.pod(n)}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	return slice
}

// Pods on a node use these host numbers. Moved endpoints use the numbers above.
const firstPod, mostPods = 10, 200

// pod returns the address of the nth pod. Pods are distributed over the nodes in turn, up to mostPods per node. Further
// numbers reuse the first addresses.
func (s *site) pod(n int) string {
	return fmt.Sprintf("%s%d", pods(n%s.result.Nodes), firstPod+n/s.result.Nodes%mostPods)
}

func nodeName(i int) string    { return fmt.Sprintf("n%d", i) }
func chassis(i int) string     { return fmt.Sprintf("chassis-%d", i) }
func serviceName(i int) string { return fmt.Sprintf("web-%d", i) }

// pods returns the address prefix of the pods of a node.
func pods(i int) string { return fmt.Sprintf("10.%d.%d.", 128+i/256, i%256) }

// fillNorth writes the OVN-Kubernetes rows that the controller reads: the cluster router with a port to the switch of
// each node, the join switch, and one gateway router per node with its port on the join switch.
func (s *site) fillNorth(ctx context.Context) error {
	err := subject.Fill(ctx, s.subject.NB, "lr-add", "ovn_cluster_router", "--", "ls-add", "join",
		"--", "lrp-add", "ovn_cluster_router", "rtoj-ovn_cluster_router", "0a:58:64:40:00:01", "100.64.0.1/16",
		"--", "lsp-add", "join", "jtor-ovn_cluster_router", "--", "lsp-set-type", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-addresses", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-options", "jtor-ovn_cluster_router", "router-port=rtoj-ovn_cluster_router")
	if err != nil {
		return err
	}
	const batch = 100
	for from := 0; from < s.result.Nodes; from += batch {
		var args []string
		for i := from; i < min(from+batch, s.result.Nodes); i++ {
			node, high, low := nodeName(i), (i+2)/256, (i+2)%256
			args = append(args,
				"--", "ls-add", node,
				"--", "lrp-add", "ovn_cluster_router", "rtos-"+node, fmt.Sprintf("0a:58:0a:80:%02x:%02x", high, low),
				pods(i)+"1/24",
				"--", "lsp-add", node, "stor-"+node, "--", "lsp-set-type", "stor-"+node, "router",
				"--", "lsp-set-addresses", "stor-"+node, "router", "--", "lsp-set-options", "stor-"+node, "router-port=rtos-"+node,
				"--", "lr-add", "GR_"+node, "--", "set", "Logical_Router", "GR_"+node, "options:chassis="+chassis(i),
				"options:dynamic_neigh_routers=true", "options:always_learn_from_arp_request=false",
				"options:lb_force_snat_ip=router_ip",
				"--", "lrp-add", "GR_"+node, "rtoj-GR_"+node, fmt.Sprintf("0a:58:64:40:%02x:%02x", high, low),
				fmt.Sprintf("100.64.%d.%d/16", high, low),
				"--", "lsp-add", "join", "jtor-GR_"+node, "--", "lsp-set-type", "jtor-GR_"+node, "router",
				"--", "lsp-set-addresses", "jtor-GR_"+node, "router", "--", "lsp-set-options", "jtor-GR_"+node,
				"router-port=rtoj-GR_"+node,
			)
		}
		if err := subject.Fill(ctx, s.subject.NB, args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// fillSouth writes the chassis. The first eight have a bridge mapping for the segment.
func (s *site) fillSouth(ctx context.Context) error {
	const batch, gateways = 100, 8
	for from := 0; from < s.result.Nodes; from += batch {
		var args []string
		for i := from; i < min(from+batch, s.result.Nodes); i++ {
			args = append(args, "--", "chassis-add", chassis(i), "geneve", fmt.Sprintf("172.16.%d.%d", i/256, i%256))
			mappings := "other:br-other"
			if i < gateways {
				mappings = "physnet:br-phys"
			}
			args = append(args, "--", "set", "Chassis", chassis(i), "other_config:ovn-bridge-mappings="+mappings)
		}
		args = append([]string{"--db=" + s.subject.SB, "--timeout=60"}, args[1:]...)
		if out, err := exec.CommandContext(ctx, "ovn-sbctl", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("fill the southbound database: %w: %s", err, out)
		}
	}
	return nil
}

// transactions returns the number of transactions ever written to the northbound database: the records of its file.
func (s *site) transactions() (int, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, "nb.db"))
	return strings.Count(string(data), "\nOVSDB JSON "), err
}
