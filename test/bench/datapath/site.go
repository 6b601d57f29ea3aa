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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

const (
	namespace = "default"
	// gateway is the only gateway. elsewhere is the other node.
	gateway, elsewhere = "n1", "n2"
	// client is behind the router, from which it is as far to the VIP as to the node's address.
	client = "remote"
	// httpTarget and echoTarget are the ports of pods.
	httpTarget, echoTarget = 8080, 5353
	// patience is the timeout of each wait.
	patience = 3 * time.Minute
)

// baseObjects is a domain with one gateway, pods on it and elsewhere, and two pods on the gateway that serve nothing.
const baseObjects = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: public}
spec: {addresses: ["10.50.0.100-10.50.0.199", "fd00:50::1:0/116"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: provider}
spec:
  physicalNetwork: provider
  nodeSelectors: [{matchLabels: {datapath: gateway}}]
  subnets:
    - {cidr: 10.50.0.0/24, gateway: 10.50.0.1}
    - {cidr: "fd00:50::/64", gateway: "fd00:50::1"}
  gateways: {shards: 1}
`

// deployment has the name, the number of pods, and where they run.
const deployment = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {datapath: %[3]s}
      containers:
      - {name: responder, image: responder, ports: [{containerPort: 8080}, {containerPort: 5353, protocol: UDP}]}
`

// service has the name, the annotation and the pods.
const service = `---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, annotations: {slb.k8s.ovn.org/keep-connections: "%[2]t"}}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: %[3]s}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: echo, port: 53, targetPort: 5353, protocol: UDP}]
`

// webService is a Service with its pods.
type webService struct {
	name, app string
	keep      bool
	pods      int
}

// The Services. Two have six pods each, on the gateway or elsewhere. Two more have the annotation, or a single pod.
func services() []webService {
	return []webService{{here, here, true, 6}, {there, there, true, 6}, {anyBackend, there, false, 6}, {one, one, true, 1}}
}

const (
	here, there, anyBackend, one = "here", "there", "any", "one"
	// other are two pods on the gateway that are not behind any Service.
	other = "other"
)

// site is a lab with the controller and the Services.
type site struct {
	build                 lab.Build
	network               lab.Network
	duration              time.Duration
	rounds                int
	floodCount, floodRate int
	progress, out         io.Writer
	report                *report
	save                  func() error

	lab    *lab.Lab
	client kubernetes.Interface
	// vips, ports and pods are those of each Service, by its name; pods also has the other pods.
	vips  map[string][]netip.Addr
	ports map[string]map[corev1.Protocol]uint16 // NodePorts
	pods  map[string][][]netip.Addr
	// others are the namespaces of the other pods.
	others []string
}

func start(ctx context.Context, s site) (*site, error) {
	role := func(n lab.Node) string {
		if n.Name == gateway {
			return "datapath=gateway"
		}
		return "datapath=elsewhere"
	}
	return &s, lab.UpInstalled(ctx, lab.Config{Name: fmt.Sprintf("dp%d", os.Getpid()%1_000_000), Nodes: 2,
		Network: s.network, Progress: s.progress}, s.build, role, s.deploy)
}

// deploy creates the domain, the pods and the Services in a lab.
func (s *site) deploy(ctx context.Context, l *lab.Lab) (err error) {
	s.lab = l
	if s.client, err = s.lab.Client(); err != nil {
		return err
	}
	objects := s.lab.Network().OnSegment(baseObjects) + fmt.Sprintf(deployment, here, 6, "gateway") +
		fmt.Sprintf(deployment, there, 6, "elsewhere") + fmt.Sprintf(deployment, one, 1, "elsewhere") +
		fmt.Sprintf(deployment, other, 2, "gateway")
	for _, v := range services() {
		objects += fmt.Sprintf(service, v.name, v.keep, v.app)
	}
	if _, err := s.lab.Kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	for _, name := range []string{here, there, one, other} {
		if _, err := s.lab.Kubectl(ctx, "", "rollout", "status", "deployment/"+name, "--timeout=120s"); err != nil {
			return err
		}
	}
	return s.serve(ctx)
}

// serve waits until all Services are announced with all their pods, reads their addresses, and lets the gateway serve
// their NodePorts.
func (s *site) serve(ctx context.Context) error {
	if err := s.readPods(ctx); err != nil {
		return err
	}
	s.vips, s.ports = map[string][]netip.Addr{}, map[string]map[corev1.Protocol]uint16{}
	var nodePorts []lab.NodePort
	for _, v := range services() {
		if err := s.eventually(ctx, "Service "+v.name+" is announced with its pods", func(ctx context.Context) (bool,
			error) {
			return s.announced(ctx, v)
		}); err != nil {
			return err
		}
		for protocol, port := range s.ports[v.name] {
			target := map[corev1.Protocol]uint16{corev1.ProtocolTCP: httpTarget, corev1.ProtocolUDP: echoTarget}[protocol]
			nodePorts = append(nodePorts, lab.NodePort{Service: v.name, Protocol: strings.ToLower(string(protocol)),
				Port: port, Target: target, Pods: s.pods[v.app]})
		}
	}
	if _, err := s.lab.ServeNodePorts(ctx, gateway, nodePorts...); err != nil {
		return err
	}
	return s.lab.Settle(ctx)
}

// readPods reads the addresses of all pods.
func (s *site) readPods(ctx context.Context) error {
	pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	s.pods = map[string][][]netip.Addr{}
	for _, p := range pods.Items {
		addrs := make([]netip.Addr, 2)
		for _, ip := range p.Status.PodIPs {
			addr, err := netip.ParseAddr(ip.IP)
			if err != nil {
				return fmt.Errorf("pod %s: %w", p.Name, err)
			}
			addrs[familyOf(addr)] = addr
		}
		app := p.Labels["app"]
		s.pods[app] = append(s.pods[app], addrs)
		if app == other {
			s.others = append(s.others, lab.PodNetns(namespace, p.Name))
		}
	}
	return nil
}

// announced reports whether a Service is announced and the load balancers have all its pods. It reads its addresses and
// NodePorts.
func (s *site) announced(ctx context.Context, v webService) (bool, error) {
	object, err := s.client.CoreV1().Services(namespace).Get(ctx, v.name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if !meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionAnnounced) {
		return false, nil
	}
	out, err := s.lab.NodeNB(ctx, gateway, "--bare", "--columns=vips", "find", "Load_Balancer",
		"external_ids:slb.k8s.ovn.org/service="+namespace+"/"+v.name, "protocol=tcp")
	if err != nil || strings.Count(out, fmt.Sprintf(":%d", httpTarget)) != 2*v.pods {
		return false, err
	}
	vips := make([]netip.Addr, 2)
	for _, ingress := range object.Status.LoadBalancer.Ingress {
		addr, err := netip.ParseAddr(ingress.IP)
		if err != nil {
			return false, err
		}
		vips[familyOf(addr)] = addr
	}
	s.vips[v.name], s.ports[v.name] = vips, map[corev1.Protocol]uint16{}
	for _, port := range object.Spec.Ports {
		s.ports[v.name][port.Protocol] = uint16(port.NodePort)
	}
	return !slices.Contains(vips, netip.Addr{}), nil
}

// eventually polls until check returns true.
func (s *site) eventually(ctx context.Context, what string, check func(context.Context) (bool, error)) error {
	const often = 100 * time.Millisecond
	if err := wait.PollUntilContextTimeout(ctx, often, patience, true, check); err != nil {
		return fmt.Errorf("not within %s: %s: %w", patience, what, err)
	}
	return nil
}

// familyOf returns 0 for IPv4 and 1 for IPv6, the order of addresses in this package.
func familyOf(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}
