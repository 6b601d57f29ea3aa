// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// LinkDown takes all links of a node down at the switch, as if the cables were unplugged. LinkUp reverts it.
func (l *Lab) LinkDown(ctx context.Context, name string) error {
	return l.setLinks(ctx, name, "down", mgmtLink, underlayLink, lanLink, providerLink, dmzLink)
}

// LinkUp reverts LinkDown, UnderlayDown and UplinkDown.
func (l *Lab) LinkUp(ctx context.Context, name string) error {
	return l.setLinks(ctx, name, "up", mgmtLink, underlayLink, lanLink, providerLink, dmzLink)
}

// UnderlayDown takes only the link that carries Geneve down.
func (l *Lab) UnderlayDown(ctx context.Context, name string) error {
	return l.setLinks(ctx, name, "down", underlayLink)
}

// UplinkDown takes only the link to the served segment down. In this case OVN itself does not fail over.
func (l *Lab) UplinkDown(ctx context.Context, name string) error {
	return l.setLinks(ctx, name, "down", l.state.Network.Uplink())
}

// SplitUnderlay lets the nodes a and b no longer send to each other on the network of the tunnels, while both reach all
// others. JoinUnderlay reverts it.
func (l *Lab) SplitUnderlay(ctx context.Context, a, b string) error {
	return l.setIsolated(ctx, "on", a, b)
}

// JoinUnderlay reverts SplitUnderlay.
func (l *Lab) JoinUnderlay(ctx context.Context, a, b string) error {
	return l.setIsolated(ctx, "off", a, b)
}

// setIsolated sets whether the switch forwards between the underlay ports of nodes (isolated, bridge(8)).
func (l *Lab) setIsolated(ctx context.Context, to string, names ...string) error {
	for _, name := range names {
		n, err := l.Node(name)
		if err != nil {
			return err
		}
		if _, err := l.Exec(ctx, switchNetns, "bridge", "link", "set", "dev", switchPort(n, underlayLink), "isolated",
			to); err != nil {
			return fmt.Errorf("isolate the underlay of node %s %s: %w", name, to, err)
		}
	}
	return nil
}

func (l *Lab) setLinks(ctx context.Context, name, to string, links ...string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	var lines []string
	for _, link := range links {
		if link == dmzLink && !n.OnDMZ() {
			continue
		}
		lines = append(lines, fmt.Sprintf("link set %s %s", switchPort(n, link), to))
	}
	if err := ip.Batch(ctx, l.Netns(switchNetns), lines...); err != nil {
		return fmt.Errorf("links of node %s %s: %w", name, to, err)
	}
	return nil
}

// Unmap removes a physical network from a node's ovn-bridge-mappings, as an administrator does when rewiring it. Remap
// reverts it.
func (l *Lab) Unmap(ctx context.Context, name, network string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	return l.setMappings(ctx, n, slices.DeleteFunc(l.mappings(n), func(m string) bool {
		return strings.HasPrefix(m, network+":")
	}))
}

// Remap reverts Unmap.
func (l *Lab) Remap(ctx context.Context, name string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	return l.setMappings(ctx, n, l.mappings(n))
}

// Unplug removes the link to the segment of its own from the bridge of a node, as a mistake in its network
// configuration does. Plug reverts it.
func (l *Lab) Unplug(ctx context.Context, name string) error {
	return l.ofProviderBridge(ctx, name, "del-port")
}

// Plug reverts Unplug.
func (l *Lab) Plug(ctx context.Context, name string) error {
	return l.ofProviderBridge(ctx, name, "add-port")
}

func (l *Lab) ofProviderBridge(ctx context.Context, name, verb string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	if _, err := l.vsctl(ctx, n, verb, "br-provider", providerLink); err != nil {
		return fmt.Errorf("%s of bridge br-provider of node %s: %w", verb, name, err)
	}
	return nil
}

func (l *Lab) setMappings(ctx context.Context, n Node, mappings []string) error {
	if _, err := l.vsctl(ctx, n, "--no-wait", "set", "Open_vSwitch", ".",
		"external_ids:ovn-bridge-mappings="+strings.Join(mappings, ",")); err != nil {
		return fmt.Errorf("physical networks of node %s: %w", n.Name, err)
	}
	return nil
}
