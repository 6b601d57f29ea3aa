// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

const (
	namespace          = "default"
	httpPort, echoPort = 80, 53
	// gateways is the number of gateway nodes, the first ones of the lab. The pods run on the others.
	gateways = 3
	// replicas is the number of pods of web. Each has an address of each family.
	replicas = 6
	// mostAddresses is the number of addresses in the pool for Services other than web.
	mostAddresses = 4000
	// webIPv4 and webIPv6 are the addresses of Service web.
	webIPv4 = "10.50.0.100"
	webIPv6 = "fd00:50::1:0"
	// patience is the timeout of each wait, and more is allowed in addition for each Service that is new: with
	// interconnect, each node's databases take a change for each of them.
	patience, more = 3 * time.Minute, 300 * time.Millisecond
	// often and seldom are how often is looked at something small, and at something with all Services.
	often, seldom = 50 * time.Millisecond, time.Second
)

// baseObjects is one domain with one shard, so that one gateway carries all addresses, and Service web with six backend
// pods that do not run on gateways. Addresses outside the segment's own subnet are for Services other than web.
const baseObjects = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: public}
spec: {addresses: ["10.50.0.100-10.50.0.199", "10.60.0.0/20", "fd00:50::1:0/116"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: provider}
spec:
  physicalNetwork: provider
  nodeSelectors: [{matchLabels: {failover: gateway}}]
  subnets:
    - {cidr: 10.50.0.0/24, gateway: 10.50.0.1}
    - {cidr: 10.60.0.0/20}
    - {cidr: "fd00:50::/64", gateway: "fd00:50::1"}
  gateways: {shards: 1}
  failover: {detectInterval: DETECT}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {failover: backend}
      containers:
      - {name: responder, image: responder, ports: [{containerPort: 8080}, {containerPort: 5353, protocol: UDP}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {slb.k8s.ovn.org/load-balancer-ips: "10.50.0.100,fd00:50::1:0"}}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: echo, port: 53, targetPort: 5353, protocol: UDP}]
`

// site is a lab with the controller, six pods and a Service that selects them.
type site struct {
	build    lab.Build
	nodes    int
	network  lab.Network
	detect   time.Duration
	progress io.Writer

	lab    *lab.Lab
	client kubernetes.Interface
	web    []netip.Addr // IPv4, then IPv6
	vips   int
	source uint16 // the next source port of clients
}

func start(ctx context.Context, s site) (*site, error) {
	role := func(n lab.Node) string {
		if n.Index > gateways {
			return "failover=backend"
		}
		return "failover=gateway"
	}
	return &s, lab.UpInstalled(ctx, lab.Config{Name: fmt.Sprintf("fo%d", os.Getpid()%1_000_000), Nodes: s.nodes,
		Network: s.network, Progress: s.progress}, s.build, role, s.deploy)
}

// deploy creates the domain, the pods and Service web in a lab.
func (s *site) deploy(ctx context.Context, l *lab.Lab) (err error) {
	s.lab = l
	if s.client, err = s.lab.Client(); err != nil {
		return err
	}
	objects := strings.ReplaceAll(s.lab.Network().OnSegment(baseObjects), "DETECT", s.detect.String())
	if _, err := s.lab.Kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	for _, vip := range []string{webIPv4, webIPv6} {
		s.web = append(s.web, netip.MustParseAddr(s.lab.Network().OnSegment(vip)))
	}
	s.vips = 1
	return s.announced(ctx)
}

// serve scales the number of Services to n. Services other than web have one address and one port. Half of them use
// IPv4 and half IPv6.
func (s *site) serve(ctx context.Context, n int) error {
	slices, err := s.client.DiscoveryV1().EndpointSlices(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
	if err != nil {
		return err
	}
	web, err := s.client.CoreV1().Services(namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	var g errgroup.Group
	const atOnce = 16
	families := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	g.SetLimit(atOnce)
	for i := s.vips; i < n; i++ {
		g.Go(func() error { return s.another(ctx, fmt.Sprintf("web-%d", i), web, families[i%2], slices.Items) })
	}
	for i := n; i < s.vips; i++ {
		g.Go(func() error {
			return s.client.CoreV1().Services(namespace).Delete(ctx, fmt.Sprintf("web-%d", i), metav1.DeleteOptions{})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.vips = n
	return s.announced(ctx)
}

// another creates a Service like web, with its first port and the current backend pods of web.
func (s *site) another(ctx context.Context, name string, web *corev1.Service, family corev1.IPFamily,
	endpoints []discoveryv1.EndpointSlice) error {
	nodePorts := false // only 2,768 are available
	twin := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Type: web.Spec.Type, IPFamilies: []corev1.IPFamily{family},
		AllocateLoadBalancerNodePorts: &nodePorts,
	}}
	p := web.Spec.Ports[0]
	twin.Spec.Ports = []corev1.ServicePort{{Name: p.Name, Protocol: p.Protocol, Port: p.Port, TargetPort: p.TargetPort}}
	if _, err := s.client.CoreV1().Services(namespace).Create(ctx, twin, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i, e := range endpoints {
		if string(e.AddressType) != string(family) {
			continue
		}
		copied := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i),
				Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: e.AddressType, Ports: e.Ports, Endpoints: e.Endpoints,
		}
		if _, err := s.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, copied,
			metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// announced waits until all Services are announced and every chassis has applied the northbound database.
func (s *site) announced(ctx context.Context) error {
	limit := patience + time.Duration(s.vips)*more
	err := wait.PollUntilContextTimeout(ctx, seldom, limit, true, func(ctx context.Context) (bool, error) {
		list, err := s.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		n := 0
		for _, service := range list.Items {
			if meta.IsStatusConditionTrue(service.Status.Conditions, v1alpha1.ConditionAnnounced) {
				n++
			}
		}
		return n == s.vips, nil
	})
	if err != nil {
		return fmt.Errorf("not within %s: %d Services are announced: %w", limit, s.vips, err)
	}
	return s.ready(ctx)
}

// ready waits until all pods of web are its backends, all gateways are ready, and the preferred gateway hosts the
// addresses.
func (s *site) ready(ctx context.Context) error {
	if _, err := s.lab.Kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=60s"); err != nil {
		return err
	}
	backends := 2 * replicas
	if s.lab.Network().Zones() {
		backends *= gateways // Each has the load balancers in its own database.
	}
	err := s.eventually(ctx, "every pod of web is a backend", func(ctx context.Context) (bool, error) {
		out, err := s.lab.EachNB(ctx, "--bare", "--columns=vips", "find", "Load_Balancer",
			"external_ids:slb.k8s.ovn.org/service=default/web", "protocol=tcp")
		return strings.Count(out, ":8080") == backends, err
	})
	if err != nil {
		return err
	}
	err = s.eventually(ctx, "all gateways stand by, and the active one is preferred",
		func(ctx context.Context) (bool, error) {
			all, err := s.chassis(ctx, "priority>1") // 1 is that of witnesses and resident ports
			if err != nil || len(all) != gateways {
				return false, err
			}
			first, err := s.chassis(ctx, "priority=100")
			if err != nil || len(first) != 1 {
				return false, err
			}
			_, node, err := s.activeGateway(ctx)
			return node != "" && first[0] == "chassis-"+node, err
		})
	if err != nil {
		return err
	}
	if err := s.lab.Settle(ctx); err != nil {
		return err
	}
	return s.rested(ctx)
}

// rested waits until nothing was written for a while. The Events of thousands of Services keep the API server busy for
// a minute, on CPUs that the gateways share.
func (s *site) rested(ctx context.Context) error {
	const quiet = time.Second
	last := ""
	err := wait.PollUntilContextTimeout(ctx, quiet, patience, true, func(ctx context.Context) (bool, error) {
		now, err := s.lab.Writes(ctx)
		was := last
		last = now
		return now == was, err
	})
	if err != nil {
		return fmt.Errorf("not within %s: the API server rests: %w", patience, err)
	}
	return nil
}

// chassis returns the chassis whose rows in HA chassis groups meet a condition, in any of the northbound databases.
func (s *site) chassis(ctx context.Context, condition string) ([]string, error) {
	out, err := s.lab.EachNB(ctx, "--bare", "--columns=chassis_name", "find", "HA_Chassis", condition)
	found := strings.Fields(out)
	slices.Sort(found)
	return slices.Compact(found), err
}

// activeGateway returns the gateway port of the only shard and the node that hosts it, if any.
func (s *site) activeGateway(ctx context.Context) (port, node string, err error) {
	ports, err := s.lab.GatewayPorts(ctx)
	if err != nil {
		return "", "", err
	}
	if len(ports) != 1 {
		return "", "", nil
	}
	for port = range ports {
		node, err = s.lab.ActiveNode(ctx, port)
	}
	return port, node, err
}

// replacePod deletes a pod of web, so that a new pod replaces it as a backend.
func (s *site) replacePod(ctx context.Context) error {
	pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("no pod of web")
	}
	oldest := slices.MinFunc(pods.Items, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	if _, err := s.lab.Kubectl(ctx, "", "delete", "pod", oldest.Name, "--wait"); err != nil {
		return err
	}
	return s.ready(ctx)
}

// eventually polls until check returns true.
func (s *site) eventually(ctx context.Context, what string, check func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, often, patience, true, check); err != nil {
		return fmt.Errorf("not within %s: %s: %w", patience, what, err)
	}
	return nil
}
