// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
)

// PodNetns returns the short name of a pod's network namespace. See [Lab.Netns].
func PodNetns(namespace, name string) string { return podNetns + namespace + "-" + name }

// podPort returns the name of a pod's logical switch port in OVN-Kubernetes.
func podPort(pod kubelet.Pod) string { return pod.Namespace + "_" + pod.Name }

// podLink returns the name of the pod's link on the node. It fits the kernel's limit of 15 characters and is unique.
func podLink(pod kubelet.Pod) string {
	sum := sha256.Sum256([]byte(podPort(pod)))
	return "pod" + hex.EncodeToString(sum[:6])
}

// podDevice is the name of a pod's link inside the pod.
const podDevice = "eth0"

// Plug connects pods to the cluster network as OVN-Kubernetes' CNI plugin does, and in the model as its pod controller
// does. A lab must have only one Plug at a time because addresses that are allocated but not yet written are known only
// to it.
type Plug struct {
	lab    *Lab
	client kubernetes.Interface // with OVN-Kubernetes itself, which assigns the addresses

	mu    sync.Mutex
	given map[string][]netip.Prefix // By logical switch port.
}

// NewPlug returns a Plug that has loaded the pods plugged before.
func (l *Lab) NewPlug(ctx context.Context) (*Plug, error) {
	if l.state.Network.Real() {
		client, err := l.Client()
		return &Plug{lab: l, client: client}, err
	}
	out, err := l.EachNB(ctx, "--format=csv", "--data=bare", "--no-headings", "--columns=name,addresses", "find",
		"Logical_Switch_Port", "external_ids:pod=true")
	if err != nil {
		return nil, fmt.Errorf("read the pods' addresses: %w", err)
	}
	p := &Plug{lab: l, given: map[string][]netip.Prefix{}}
	for line := range strings.Lines(out) { // NAME,MAC IPv4 IPv6
		port, addresses, _ := strings.Cut(strings.TrimSpace(line), ",")
		for i, text := range strings.Fields(addresses) {
			if addr, err := netip.ParseAddr(text); i > 0 && err == nil {
				p.given[port] = append(p.given[port], netip.PrefixFrom(addr, addr.BitLen()))
			}
		}
	}
	return p, nil
}

// Plug gives a pod its addresses, namespace, link and switch port, and returns when packets flow. It is idempotent. A
// pod on the host network is in the node's namespace and has the node's addresses.
func (p *Plug) Plug(ctx context.Context, pod kubelet.Pod) (kubelet.Attachment, error) {
	n, err := p.lab.Node(pod.Node)
	if err != nil {
		return kubelet.Attachment{}, err
	}
	if pod.HostNetwork {
		return kubelet.Attachment{Netns: p.lab.Netns(n.Name), IPs: addrsOf(n.LAN)}, nil
	}
	addrs, err := p.plug(ctx, n, pod)
	if err != nil {
		return kubelet.Attachment{}, fmt.Errorf("plug pod %s/%s on node %s: %w", pod.Namespace, pod.Name, pod.Node, err)
	}
	return kubelet.Attachment{Netns: p.lab.Netns(PodNetns(pod.Namespace, pod.Name)), IPs: addrsOf(addrs)}, nil
}

func (p *Plug) plug(ctx context.Context, n Node, pod kubelet.Pod) ([]netip.Prefix, error) {
	if p.client != nil {
		return p.plugReal(ctx, n, pod)
	}
	addrs, err := p.give(n, pod)
	if err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.writePort(gctx, n, pod, addrs) })
	g.Go(func() error { return p.link(gctx, n, pod, ovnMAC(addrs[0].Addr()), addrs) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if _, err := p.nb(ctx, n, "wait-until", "Logical_Switch_Port", podPort(pod), "up=true"); err != nil {
		return nil, fmt.Errorf("its port did not come up: %w", err)
	}
	return addrs, nil
}

// give allocates the lowest host number of the node that is free in all families.
func (p *Plug) give(n Node, pod kubelet.Pod) ([]netip.Prefix, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := map[netip.Addr]bool{}
	for port, addrs := range p.given {
		for i, addr := range addrs {
			taken[addr.Addr()] = true
			if port == podPort(pod) && n.PodSubnets[i].Contains(addr.Addr()) {
				return withLengthOf(n.PodSubnets, addrsOf(addrs)), nil
			}
		}
	}
	const last = 254
	for host := firstPod; host <= last; host++ {
		addrs := hosts(n.PodSubnets, host)
		if !slices.ContainsFunc(addrs, func(a netip.Prefix) bool { return taken[a.Addr()] }) {
			p.given[podPort(pod)] = addrs
			return addrs, nil
		}
	}
	return nil, fmt.Errorf("subnet %s is full", n.PodSubnets[0])
}

// nb runs ovn-nbctl(8) on the northbound database of a node's zone.
func (p *Plug) nb(ctx context.Context, n Node, args ...string) (string, error) {
	return p.lab.zoneNB(ctx, p.lab.zoneOf(n), args...)
}

// writePort writes the pod's row in the northbound database.
func (p *Plug) writePort(ctx context.Context, n Node, pod kubelet.Pod, addrs []netip.Prefix) error {
	var c nbctl
	c.do("--may-exist", "lsp-add", n.Name, podPort(pod))
	c.do("lsp-set-addresses", podPort(pod), lspAddress(addrs))
	c.do("lsp-set-port-security", podPort(pod), lspAddress(addrs))
	c.do("set", "Logical_Switch_Port", podPort(pod), "external_ids:pod=true", "external_ids:namespace="+pod.Namespace,
		"options:requested-chassis="+n.Chassis, "options:iface-id-ver="+quote(string(pod.UID)))
	_, err := p.nb(ctx, n, c...)
	return err
}

// link creates the namespace and the veth to br-int.
func (p *Plug) link(ctx context.Context, n Node, pod kubelet.Pod, mac string, addrs []netip.Prefix) error {
	netns := p.lab.Netns(PodNetns(pod.Namespace, pod.Name))
	if _, err := os.Stat(netnsDir + "/" + netns); os.IsNotExist(err) {
		if err := p.createPodNetns(ctx, netns, n, pod, mac, addrs); err != nil {
			// A later Plug would take a partial namespace for a complete one.
			return errors.Join(err, removePodNetns(context.WithoutCancel(ctx), netns))
		}
	}
	if p.client != nil {
		if err := p.lab.closeUplinks(ctx, n, podLink(pod)); err != nil {
			return err
		}
	}
	_, err := p.lab.vsctl(ctx, n, "--no-wait", "--may-exist", "add-port", "br-int", podLink(pod), "--", "set", "Interface",
		podLink(pod),
		"external_ids:iface-id="+podPort(pod), "external_ids:iface-id-ver="+quote(string(pod.UID)),
		"external_ids:sandbox="+quote(netns),
		"external_ids:attached_mac="+quote(mac), "external_ids:ip_addresses="+quote(strings.Join(texts(addrs), ",")))
	return err
}

func (p *Plug) createPodNetns(ctx context.Context, netns string, n Node, pod kubelet.Pod, mac string,
	addrs []netip.Prefix) error {
	if err := createNetns(ctx, netns); err != nil {
		return err
	}
	if err := createPorts(ctx, port{
		netns: netns, dev: podDevice, addrs: addrs, mac: mac, mtu: 1400,
		peerNetns: p.lab.Netns(n.Name), peerDev: podLink(pod),
	}); err != nil {
		return err
	}
	return ip.Batch(ctx, netns, defaultRoutes(n.gateway())...)
}

// removePodNetns removes a pod's namespace, and its link first. On a busy machine the kernel removes the devices of a
// namespace seconds later, when the link name may already belong to the next pod of the same name.
func removePodNetns(ctx context.Context, netns string) error {
	if err := inNetns(netns, func() error { _, err := net.InterfaceByName(podDevice); return err }); err == nil {
		if err := ip.Batch(ctx, netns, "link del "+podDevice); err != nil {
			return err
		}
	}
	return ip.Batch(ctx, "", "netns del "+netns)
}

// Unplug removes what Plug created. Processes in the namespace must have exited before. Unplugging a pod that is not
// plugged does nothing.
func (p *Plug) Unplug(ctx context.Context, pod kubelet.Pod) error {
	n, err := p.lab.Node(pod.Node)
	if err != nil || pod.HostNetwork {
		return err
	}
	if _, err := p.lab.vsctl(ctx, n, "--no-wait", "--if-exists", "del-port", "br-int", podLink(pod)); err != nil {
		return fmt.Errorf("unplug pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if p.client == nil {
		if _, err := p.nb(ctx, n, "--if-exists", "lsp-del", podPort(pod)); err != nil {
			return fmt.Errorf("unplug pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	netns := p.lab.Netns(PodNetns(pod.Namespace, pod.Name))
	if _, err := os.Stat(netnsDir + "/" + netns); err == nil {
		if err := removePodNetns(ctx, netns); err != nil {
			return fmt.Errorf("unplug pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.given, podPort(pod))
	return nil
}
