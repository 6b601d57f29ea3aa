// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// netnsDir is where ip-netns(8) mounts namespaces.
const netnsDir = "/run/netns"

// inNetns calls f on an operating system thread that is in the namespace and that exits after the call. Sockets and
// files that f opens stay in the namespace. Goroutines that f starts do not run in it.
func inNetns(netns string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread must not run other goroutines, and exits with this one.
		done <- func() error {
			ns, err := os.Open(filepath.Join(netnsDir, netns))
			if err != nil {
				return fmt.Errorf("enter namespace %s: %w", netns, err)
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter namespace %s: %w", netns, err)
			}
			return f()
		}()
	}()
	return <-done
}

// dialer returns a dial function that connects from inside the namespace, for clients that run outside of it.
func dialer(netns string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = inNetns(netns, func() (err error) {
			// No fallback, which would dial on another thread.
			conn, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}

// createNetns creates namespaces in which addresses are usable immediately (no duplicate address detection) and are not
// autoconfigured.
func createNetns(ctx context.Context, names ...string) error {
	lines := make([]string, 0, len(names))
	for _, name := range names {
		lines = append(lines, "netns add "+name)
	}
	if err := ip.Batch(ctx, "", lines...); err != nil {
		return fmt.Errorf("create namespaces: %w", err)
	}
	for _, name := range names {
		if err := setSysctls(name, map[string]string{
			"net/ipv6/conf/all/accept_dad":     "0",
			"net/ipv6/conf/default/accept_dad": "0",
			"net/ipv6/conf/default/accept_ra":  "0",
			// Do not answer ARP on the LAN for addresses of lo: there, GR_<node> owns the address.
			"net/ipv4/conf/all/arp_ignore": "1",
		}); err != nil {
			return err
		}
	}
	return nil
}

// setSysctls writes values below /proc/sys, where net/ is that of the calling thread's namespace.
func setSysctls(netns string, values map[string]string) error {
	return inNetns(netns, func() error {
		for key, value := range values {
			if err := os.WriteFile(filepath.Join("/proc/sys", key), []byte(value), 0o644); err != nil {
				return fmt.Errorf("set sysctl in namespace %s: %w", netns, err)
			}
		}
		return nil
	})
}

// port is a veth pair. One end is in a namespace and has addresses. The other is on a bridge in the switch namespace,
// or in the namespace peerNetns.
type port struct {
	netns, dev string
	addrs      []netip.Prefix
	mac        string
	mtu        int
	bridge     string // Linux bridge
	wire       string // Open vSwitch bridge, instead of bridge
	vlan       int    // on a wire, the VLAN that this end receives untagged; allVLANs: all, tagged
	peerNetns  string
	peerDev    string
}

const allVLANs = -1

// attach returns a port on a segment.
func (l *Lab) attach(netns, dev string, s Segment, peerDev string, addrs ...netip.Prefix) port {
	p := port{netns: l.Netns(netns), dev: dev, addrs: addrs, mtu: s.MTU, peerNetns: l.Netns(switchNetns), peerDev: peerDev}
	if s.Wire {
		p.wire, p.vlan = s.Bridge, s.VLAN
	} else {
		p.bridge = s.Bridge
	}
	return p
}

// createPorts creates the veths of all ports in one batch, directly in their namespaces and never in the machine's own.
// Transmit checksum offload is disabled on both ends, as OVS' userspace datapath requires.
func createPorts(ctx context.Context, ports ...port) error {
	var create []string
	config, devs := map[string][]string{}, map[string][]string{}
	for _, p := range ports {
		create = append(create, fmt.Sprintf("link add %s netns %s mtu %d type veth peer name %s netns %s mtu %d",
			p.dev, p.netns, p.mtu, p.peerDev, p.peerNetns, p.mtu))
		up := "link set " + p.dev + " up"
		if p.mac != "" {
			up += " address " + p.mac
		}
		config[p.netns] = append(config[p.netns], up)
		for _, addr := range p.addrs {
			config[p.netns] = append(config[p.netns], addrAdd(addr, p.dev))
		}
		peer := "link set " + p.peerDev + " up"
		if p.bridge != "" {
			peer += " master " + p.bridge
		}
		config[p.peerNetns] = append(config[p.peerNetns], peer)
		devs[p.netns] = append(devs[p.netns], p.dev)
		devs[p.peerNetns] = append(devs[p.peerNetns], p.peerDev)
	}
	if err := ip.Batch(ctx, "", create...); err != nil {
		return fmt.Errorf("create links: %w", err)
	}
	var g errgroup.Group
	for netns, lines := range config {
		g.Go(func() error {
			if err := ip.Batch(ctx, netns, append([]string{"link set lo up"}, lines...)...); err != nil {
				return fmt.Errorf("configure links of namespace %s: %w", netns, err)
			}
			script := `for dev in "$@"; do ethtool -K "$dev" tx off >/dev/null || exit; done`
			_, err := run(ctx, slices.Concat([]string{"ip", "netns", "exec", netns, "sh", "-c", script, "sh"}, devs[netns])...)
			return err
		})
	}
	return g.Wait()
}

// addrAdd returns the ip(8) line that adds an address to a device, for IPv6 without duplicate address detection.
func addrAdd(addr netip.Prefix, dev string) string {
	line := fmt.Sprintf("addr add %s dev %s", addr, dev)
	if addr.Addr().Is6() {
		line += " nodad"
	}
	return line
}

// defaultRoutes returns the ip(8) lines for one default route per family.
func defaultRoutes(via []netip.Prefix) []string {
	var lines []string
	for _, hop := range via {
		lines = append(lines, "route add default via "+hop.Addr().String())
	}
	return lines
}

// listNetns returns the names of the machine's network namespaces.
func listNetns() ([]string, error) {
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// netnsOf returns those of the namespaces in names that belong to the lab.
func netnsOf(lab string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, lab+"-") })
}

// Namespaces returns the short names of the lab's namespaces that exist, including those of pods.
func (l *Lab) Namespaces() ([]string, error) {
	all, err := listNetns()
	if err != nil {
		return nil, err
	}
	names := netnsOf(l.Name, all)
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, l.Name+"-")
	}
	return names, nil
}
