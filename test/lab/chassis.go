// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Links of a node: one per segment, and mp0, the node's management port on its pod subnet.
const (
	mgmtLink     = "eth-mgmt"
	underlayLink = "eth-under"
	lanLink      = "eth-lan"
	providerLink = "eth-prov"
	dmzLink      = "eth-dmz"
	mp0          = "ovn-k8s-mp0"

	controllerName = "ovn-controller"
	vswitchdName   = "ovs-vswitchd"
	// backtraceName is the log file of ovs-vswitchd. On a segmentation fault it writes its backtrace only there (lib/
	// fatal-signal.c, send_backtrace_to_monitor), and otherwise nothing. All else is in its output.
	backtraceName = "ovs-vswitchd.backtrace"
)

// nodePorts returns the node's veths. They have no addresses: the underlay address is on br-phy and the LAN address on
// GR_<node>.
func (l *Lab) nodePorts(n Node) []port {
	ports := []port{
		l.attach(n.Name, mgmtLink, Management(), switchPort(n, mgmtLink), Management().Host(n.Index)...),
		l.attach(n.Name, underlayLink, Underlay(), switchPort(n, underlayLink)),
		l.attach(n.Name, lanLink, LAN(), switchPort(n, lanLink)),
		l.attach(n.Name, providerLink, Provider(), switchPort(n, providerLink)),
	}
	if n.OnDMZ() {
		wire := l.attach(n.Name, dmzLink, DMZ(), switchPort(n, dmzLink))
		wire.vlan = allVLANs
		ports = append(ports, wire)
	}
	return ports
}

// switchPort returns the name of the peer of a node's link in the switch namespace, such as n1-lan.
func switchPort(n Node, link string) string { return n.Name + "-" + link[len("eth-"):] }

// vsctl runs ovs-vsctl(8) on a node's database.
func (l *Lab) vsctl(ctx context.Context, n Node, args ...string) (string, error) {
	return l.vsctlIn(ctx, n.Name, args...)
}

// vsctlIn runs ovs-vsctl(8) on the database in a namespace.
func (l *Lab) vsctlIn(ctx context.Context, short string, args ...string) (string, error) {
	return run(ctx, append([]string{"ovs-vsctl", "--db=unix:" + l.path(short, "ovs.sock"), toolTimeout()}, args...)...)
}

// startNode starts the database, bridges and switch of a node, and ovn-controller once central is closed.
func (l *Lab) startNode(ctx context.Context, n Node, central <-chan struct{}) error {
	if err := l.startDatabase(ctx, n.Name, "ovs", switchSchema, "punix:"+l.path(n.Name, "db.sock")); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if _, err := l.vsctl(ctx, n, l.chassisConfig(n)...); err != nil {
		return fmt.Errorf("node %s: configure Open vSwitch: %w", n.Name, err)
	}
	if err := l.startForwarding(ctx, n); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-central:
	}
	return l.startController(ctx, n)
}

// chassisConfig returns the ovs-vsctl arguments that run before the switch starts, so that a restart needs no further
// configuration. Bridges have the type netdev: Geneve then needs br-phy, whose local port has the tunnel address.
func (l *Lab) chassisConfig(n Node) []string {
	type bridge struct {
		name, uplink string
		settings     []string
	}
	bridges := []bridge{
		{"br-int", "", []string{"fail_mode=secure", "other_config:disable-in-band=true"}},
		{"br-phy", underlayLink, nil},
		{"br-ex", lanLink, []string{"external_ids:bridge-id=br-ex", "external_ids:bridge-uplink=" + lanLink,
			`other_config:hwaddr="` + n.MAC + `"`}},
		{"br-provider", providerLink, nil},
	}
	if n.OnDMZ() {
		bridges = append(bridges, bridge{"br-dmz", dmzLink, nil})
	}
	args := []string{
		"--no-wait", "init", "--", "set", "Open_vSwitch", ".",
		"external_ids:system-id=" + n.Chassis,
		"external_ids:hostname=" + n.Name,
		"external_ids:ovn-remote=" + l.southbound(n),
		"external_ids:ovn-remote-probe-interval=100000",
		"external_ids:ovn-encap-type=geneve",
		"external_ids:ovn-encap-ip=" + Underlay().Host(n.Index)[0].Addr().String(),
		"external_ids:ovn-bridge-datapath-type=netdev",
		"external_ids:ovn-bridge-mappings=" + strings.Join(l.mappings(n), ","),
		"other_config:vlan-limit=0",
	}
	if !l.state.Network.Real() {
		args = append(args, "external_ids:ovn-monitor-all=true", "external_ids:ovn-enable-lflow-cache=true",
			l.isInterconnect())
	}
	for _, bridge := range bridges {
		args = append(args, "--", "add-br", bridge.name, "--", "set", "Bridge", bridge.name, "datapath_type=netdev")
		args = append(args, bridge.settings...)
		if bridge.uplink != "" {
			args = append(args, "--", "add-port", bridge.name, bridge.uplink)
		}
	}
	if l.state.Network.Real() {
		return args // OVN-Kubernetes creates its own port.
	}
	return append(args, "--", "add-port", "br-int", mp0, "--", "set", "Interface", mp0, "type=internal",
		"external_ids:iface-id=k8s-"+n.Name, `mac="`+ovnMAC(n.mp0()[0].Addr())+`"`, "mtu_request=1400")
}

// isInterconnect returns the setting of ovn-controller for the mode.
func (l *Lab) isInterconnect() string {
	return fmt.Sprintf("external_ids:ovn-is-interconn=%t", l.state.Network.Zones())
}

// southbound returns the database to which the node's ovn-controller connects.
func (l *Lab) southbound(n Node) string {
	if l.state.Network.Zones() {
		return l.socket(l.zoneOf(n), sbName)
	}
	return fmt.Sprintf("tcp:%s:%d", Management().Host(centralHost)[0].Addr(), sbPort)
}

// mappings returns the node's physical networks and their bridges, as in ovn-bridge-mappings.
func (l *Lab) mappings(n Node) []string {
	all := []string{"physnet:br-ex", "provider:br-provider"}
	if n.OnDMZ() {
		all = append(all, "dmz:br-dmz")
	}
	return all
}

// startForwarding starts the switch of a node whose database is configured, initially and after Kill.
func (l *Lab) startForwarding(ctx context.Context, n Node) error {
	if err := l.startSwitch(ctx, n.Name, func(ctx context.Context, control string) error {
		if err := l.prepareSwitch(ctx, control, n); err != nil {
			return err
		}
		return l.prepareHost(ctx, n)
	}); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

// startController starts ovn-controller on a node.
func (l *Lab) startController(ctx context.Context, n Node) error {
	dir, database := l.path(n.Name), "unix:"+l.path(n.Name, "ovs.sock")
	args := []string{"ovn-controller", database, "-vsyslog:off", "--pidfile=" + filepath.Join(dir, "ovn-controller.pid")}
	if l.state.Network.Real() { // Its path of the southbound database is the path inside a container.
		args = l.contained(n.Name, args...)
	}
	if _, err := proc.Start(ctx, proc.Spec{
		Name: controllerName, Dir: dir, Netns: l.Netns(n.Name), Env: ovsEnv(dir), Nice: proc.Machine, Args: args,
	}); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

// startSwitch starts Open vSwitch in a namespace whose database is configured. The switch is ready when the ready
// callback, which queries the control socket, returns nil.
func (l *Lab) startSwitch(ctx context.Context, short string,
	ready func(ctx context.Context, control string) error) error {
	dir, control := l.path(short), l.path(short, "vswitchd.ctl")
	p, err := proc.Start(ctx, proc.Spec{
		Name: vswitchdName, Dir: dir, Netns: l.Netns(short), Env: ovsEnv(dir), Nice: proc.Foremost,
		Args: []string{"ovs-vswitchd", "unix:" + l.path(short, "ovs.sock"), "--disable-system", "--unixctl=" + control,
			"--pidfile=" + filepath.Join(dir, "ovs-vswitchd.pid"), "-vsyslog:off",
			"-vfile:off", "--log-file=" + filepath.Join(dir, backtraceName)},
		Ready: func(ctx context.Context) error { return ready(ctx, control) },
	})
	if err != nil {
		return err
	}
	// A container may lack the right to take sockets of other processes. Then packets are lost on a busy machine.
	if err := widenQueues(p.Pid); err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("queues of ovs-vswitchd: %w", err)
	}
	// OVS tools look for the control socket under this name.
	name := filepath.Join(dir, fmt.Sprintf("ovs-vswitchd.%d.ctl", p.Pid))
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(control, name)
}

// prepareSwitch configures a switch that is starting. It fails until all parts of the switch exist.
func (l *Lab) prepareSwitch(ctx context.Context, control string, n Node) error {
	// Each start creates new taps for the local ports, so their addresses are assigned each time. ovs-vswitchd sets the
	// flags of a tap from those that it read before, and thus takes down a tap that was brought up in between. Once
	// ovs-vswitchd answers and all taps exist, it no longer does so.
	if err := ip.Batch(ctx, l.Netns(n.Name), l.localPortsThere(n)...); err != nil {
		return err
	}
	// When the kernel's conntrack picks up a connection in the middle, as a new gateway does, it accepts the window of
	// either side. The userspace conntrack does so only with its sequence check disabled.
	if _, err := run(ctx, "ovs-appctl", "-t", control, "dpctl/ct-disable-tcp-seq-chk"); err != nil {
		return err
	}
	return ip.Batch(ctx, l.Netns(n.Name), l.localPorts(n)...)
}

// localPortsThere returns the ip(8) lines that fail as long as a local port of a bridge is missing.
func (l *Lab) localPortsThere(n Node) []string {
	names := []string{"br-phy", "br-int", "br-ex", "br-provider"}
	if n.OnDMZ() {
		names = append(names, "br-dmz")
	}
	if !l.state.Network.Real() {
		names = append(names, mp0)
	}
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = "link show dev " + name
	}
	return lines
}

// localPorts returns the ip(8) lines that configure the bridges' local ports, from any state.
func (l *Lab) localPorts(n Node) []string {
	lines := []string{"link set br-phy mtu 2000 up", "link set br-int up", "link set br-ex up", "link set br-provider up"}
	if n.OnDMZ() {
		lines = append(lines, "link set br-dmz up")
	}
	for _, addr := range Underlay().Host(n.Index) {
		lines = append(lines, "addr replace "+addr.String()+" dev br-phy")
	}
	if l.state.Network.Real() {
		return append(lines, hostLines(n)...)
	}
	lines = append(lines, "link set "+mp0+" up")
	for i, addr := range n.mp0() {
		lines = append(lines, "addr replace "+n.LAN[i].Addr().String()+" dev lo",
			"addr replace "+addr.String()+" dev "+mp0,
			fmt.Sprintf("route replace %s via %s dev %s", clusterSubnets()[i], n.gateway()[i].Addr(), mp0),
			fmt.Sprintf("route replace %s via %s dev %s", MasqueradeAddresses()[i], n.gateway()[i].Addr(), mp0))
	}
	return lines
}
