// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

const (
	namespace = "ovn-kubernetes"
	apiServer = "172.31.0.250"
	// target is the port of the backends.
	target = 8080
)

// Port is the port of Services.
const Port = 80

// Pool is a pool of addresses of the segment. Nodes have rules for its first and last IPv4 addresses and its IPv6
// prefix.
const Pool = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: vips}
spec: {addresses: ["10.50.0.60-10.50.0.179", "fd00:50::1000/116"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: lan}
spec: {physicalNetwork: lan, ipAddressPools: [vips], subnets: [{cidr: 10.50.0.0/24}, {cidr: "fd00:50::/64"}]}
`

// Options configure a Site.
type Options struct {
	// Dir is for files, Program is the path of ovnkube-slb, and Manifests is the directory dist/manifests.
	Dir, Program, Manifests string
	Nodes                   int
	Progress                io.Writer
}

// Site is a running site.
type Site struct {
	Options
	Plane  *controlplane.ControlPlane
	Client kubernetes.Interface
	self   string
}

// Build creates a site and starts everything except the product.
func Build(ctx context.Context, o Options) (*Site, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &Site{Options: o, self: self}
	if err := s.createNetwork(ctx); err != nil {
		return nil, err
	}
	s.Plane, err = controlplane.Start(ctx, controlplane.Config{Dir: filepath.Join(o.Dir, "plane"),
		Address: netip.MustParseAddr(apiServer), Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	config := s.Plane.RESTConfig()
	config.QPS = -1
	if s.Client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"create", "namespace", namespace},
		{"apply", "-k", filepath.Join(o.Manifests, "base")},
		{"apply", "-f", filepath.Join(o.Manifests, "sdn", "rbac.yaml")},
		{"wait", "--for=condition=Established", "crd", "--all"},
	} {
		if _, err := s.Plane.Kubectl(ctx, args...); err != nil {
			return nil, err
		}
	}
	// The API server needs a moment to apply admission policies to the new kinds.
	apply := func(ctx context.Context) error { return s.Plane.Apply(ctx, Pool) }
	if err := poll.Within(ctx, poll.Limit, apply); err != nil {
		return nil, err
	}
	for i := 1; i <= o.Nodes; i++ {
		if err := s.node(ctx, i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Netns returns the network namespace of a part: n1 and so on, or client.
func (s *Site) Netns(part string) string { return filepath.Base(s.Dir) + "-" + part }

// createNetwork creates the bridges and the client.
func (s *Site) createNetwork(ctx context.Context) error {
	for _, bridge := range []string{"mgmt", "lan"} {
		err := ip.Batch(ctx, "", "link add "+bridge+" type bridge mcast_snooping 0", "link set "+bridge+" up")
		if err != nil {
			return err
		}
	}
	if err := ip.Batch(ctx, "", "link set lo up", "addr add "+apiServer+"/24 dev mgmt"); err != nil {
		return err
	}
	if err := s.netns(ctx, "client"); err != nil {
		return err
	}
	return s.link(ctx, "client", "lan", "eth1", "10.50.0.200/24", "fd00:50::200/64")
}

func (s *Site) netns(ctx context.Context, part string) error {
	name := s.Netns(part)
	_, err := run(ctx, "ip", "netns", "add", name)
	if err == nil {
		_, err = run(ctx, "ip", "netns", "exec", name, "sh", "-c",
			"cd /proc/sys/net && for f in all default; do echo 0 >ipv6/conf/$f/accept_dad; echo 0 >ipv6/conf/$f/accept_ra; "+
				"echo 1 >ipv6/conf/$f/forwarding; done; "+
				"echo 1 >ipv4/ip_forward; echo 1 >ipv4/conf/all/arp_ignore; ip link set lo up")
	}
	return err
}

// link attaches a part to a bridge.
func (s *Site) link(ctx context.Context, part, bridge, dev string, addrs ...string) error {
	port := bridge + "-" + part
	err := ip.Batch(ctx, "", fmt.Sprintf("link add %s type veth peer name %s netns %s", port, dev, s.Netns(part)),
		fmt.Sprintf("link set %s master %s up", port, bridge))
	lines := []string{"link set " + dev + " up"}
	for _, a := range addrs {
		line := "addr add " + a + " dev " + dev
		if strings.Contains(a, ":") {
			line += " nodad"
		}
		lines = append(lines, line)
	}
	return errors.Join(err, ip.Batch(ctx, s.Netns(part), lines...))
}

// node creates a node with a backend, and the rules that kube-proxy would create for the addresses of the pool.
func (s *Site) node(ctx context.Context, i int) error {
	name := NodeName(i)
	if err := s.netns(ctx, name); err != nil {
		return err
	}
	err := errors.Join(
		s.link(ctx, name, "mgmt", "eth0", fmt.Sprintf("172.31.0.%d/24", i)),
		s.link(ctx, name, "lan", "eth1", fmt.Sprintf("10.50.0.%d/24", 10+i), fmt.Sprintf("fd00:50::%d/64", 10+i)),
		ip.Batch(ctx, s.Netns(name), fmt.Sprintf("addr add 10.244.%d.2/32 dev lo", i),
			fmt.Sprintf("addr add fd00:244:%d::2/128 dev lo nodad", i)))
	if err != nil {
		return err
	}
	rules := fmt.Sprintf(`table inet proxy {
	chain services {
		type nat hook prerouting priority dstnat
		ip daddr 10.50.0.60-10.50.0.179 meta l4proto { tcp, udp } th dport %d dnat ip to 10.244.%d.2:%d
		ip6 daddr fd00:50::1000/116 meta l4proto { tcp, udp } th dport %d dnat ip6 to [fd00:244:%d::2]:%d
	}
	}`, Port, i, target, Port, i, target)
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", s.Netns(name), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("rules of node %s: %w: %s", name, err, out)
	}
	if _, err := proc.Start(ctx, proc.Spec{Name: "backend-" + name, Dir: s.Dir, Netns: s.Netns(name),
		Env:  []string{role + "=responder"},
		Nice: proc.Foremost,
		Args: []string{s.self, "-name", name, "-tcp", fmt.Sprint(target), "-udp", fmt.Sprint(target)}}); err != nil {
		return err
	}
	n, err := s.Client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil {
		return err
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.31.0.%d", i)}}
	_, err = s.Client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// NodeName returns the name of a node, starting from 1.
func NodeName(i int) string { return fmt.Sprintf("n%d", i) }

// Cut disconnects all links of a node, as in a power failure.
func (s *Site) Cut(ctx context.Context, node string) error { return s.links(ctx, node, "down") }

// Restore reverts Cut.
func (s *Site) Restore(ctx context.Context, node string) error { return s.links(ctx, node, "up") }

func (s *Site) links(ctx context.Context, node, state string) error {
	// Cut the management link first, because a node without power reports nothing.
	return ip.Batch(ctx, "", fmt.Sprintf("link set mgmt-%s %s", node, state),
		fmt.Sprintf("link set lan-%s %s", node, state))
}

// IP runs ip(8) in a node.
func (s *Site) IP(ctx context.Context, node string, args ...string) (string, error) {
	return run(ctx, append([]string{"ip", "-n", s.Netns(node)}, args...)...)
}

func run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
