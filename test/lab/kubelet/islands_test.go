// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
)

// islands is a network of namespaces without links between them, which is sufficient for testing the agent.
type islands struct {
	prefix string

	mu   sync.Mutex
	next int
	ips  map[Pod][]netip.Addr
}

func (n *islands) netns(pod Pod) string {
	if pod.HostNetwork {
		return n.prefix + pod.Node
	}
	return n.prefix + pod.Name
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (n *islands) Plug(ctx context.Context, pod Pod) (Attachment, error) {
	netns := n.netns(pod)
	if pod.HostNetwork {
		return Attachment{Netns: netns, IPs: nodeIPs(pod.Node)}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if ips, ok := n.ips[pod]; ok {
		return Attachment{Netns: netns, IPs: ips}, nil
	}
	n.next++
	ips := []netip.Addr{netip.AddrFrom4([4]byte{10, 244, 0, byte(n.next)}),
		netip.MustParseAddr(fmt.Sprintf("fd00:10:244::%x", n.next))}
	if err := addNetns(ctx, netns, ips); err != nil {
		return Attachment{}, err
	}
	n.ips[pod] = ips
	return Attachment{Netns: netns, IPs: ips}, nil
}

func addNetns(ctx context.Context, netns string, ips []netip.Addr) error {
	steps := [][]string{{"netns", "add", netns}, {"-n", netns, "link", "set", "lo", "up"}}
	for _, addr := range ips {
		steps = append(steps, []string{"-n", netns, "address", "add", addr.String(), "dev", "lo"})
	}
	for _, step := range steps {
		if err := ip(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

func (n *islands) Unplug(ctx context.Context, pod Pod) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.ips[pod]; !ok {
		return nil
	}
	delete(n.ips, pod)
	return ip(ctx, "netns", "del", n.netns(pod))
}

func (n *islands) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.ips)
}
