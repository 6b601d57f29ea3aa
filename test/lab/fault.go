// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// daemons returns the daemons of a node that Kill kills and Restore starts. The database of the switch is not among
// them.
func (l *Lab) daemons() []string {
	names := []string{vswitchdName, controllerName}
	if l.state.Network.Real() {
		names = append(names, ovnkubeName)
	}
	if l.state.Network.Zones() {
		names = append(names, northdName, nbName, sbName)
	}
	return names
}

// Kill kills the daemons of a node concurrently by SIGKILL. It simulates a power loss, except that links and pods
// remain; the node forwards nothing. Kill does nothing if they are dead.
func (l *Lab) Kill(name string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	var g errgroup.Group
	for _, daemon := range l.daemons() {
		g.Go(func() error {
			p, err := proc.Find(l.path(n.Name), daemon)
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			return p.Kill()
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("kill node %s: %w", name, err)
	}
	return nil
}

// The daemons of a node that KillDaemon kills. All but the first are those of the node's zone, with interconnect.
const (
	OVNController = controllerName
	Northd        = northdName
	NorthboundDB  = nbName
	SouthboundDB  = sbName
)

// KillDaemon kills one daemon of a node by SIGKILL. The switch keeps its flows. StartDaemon reverts it, and Restore
// restarts all.
func (l *Lab) KillDaemon(name, daemon string) error {
	p, err := proc.Find(l.path(name), daemon)
	if err != nil {
		return fmt.Errorf("kill %s of node %s: %w", daemon, name, err)
	}
	return p.Kill()
}

// StartDaemon starts a daemon of a node that KillDaemon has killed.
func (l *Lab) StartDaemon(ctx context.Context, name, daemon string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	if daemon == OVNController {
		return l.startController(ctx, n)
	}
	return l.startOf(ctx, l.zoneOf(n), daemon)
}

// startOf starts a database of a zone, or its ovn-northd.
func (l *Lab) startOf(ctx context.Context, z zone, daemon string) error {
	if daemon == Northd {
		return l.startNorthd(ctx, z)
	}
	return l.serveDatabase(ctx, z, daemon)
}

// FreezeDaemon stops one daemon of a node by SIGSTOP, as if it hung: its connections stay open. Restore restarts all.
func (l *Lab) FreezeDaemon(name, daemon string) error {
	p, err := proc.Find(l.path(name), daemon)
	if err != nil {
		return fmt.Errorf("freeze %s of node %s: %w", daemon, name, err)
	}
	return p.SignalGroup(syscall.SIGSTOP)
}

// Restore starts what Kill killed, and returns when the node's chassis has applied the northbound database again.
func (l *Lab) Restore(ctx context.Context, name string) error {
	return l.restore(ctx, name, func() error { return nil })
}

// Reboot starts what Kill killed in a new boot of the node, with the databases as they were then. It calls booted once
// the databases run and before the node forwards. The guard must not run: it would have lived through the reboot.
func (l *Lab) Reboot(ctx context.Context, name string, booted func() error) error {
	if err := os.WriteFile(l.path(name, bootIDName), []byte(rand.Text()+"\n"), 0o644); err != nil {
		return fmt.Errorf("reboot node %s: %w", name, err)
	}
	return l.restore(ctx, name, booted)
}

func (l *Lab) restore(ctx context.Context, name string, booted func() error) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	if err := l.Kill(name); err != nil { // A daemon that still runs would conflict with the new one.
		return err
	}
	if l.state.Network.Zones() {
		if err := l.startDatabases(ctx, l.zoneOf(n), func() {}); err != nil {
			return err
		}
	}
	if err := booted(); err != nil {
		return err
	}
	if err := l.startForwarding(ctx, n); err != nil {
		return err
	}
	if err := l.startController(ctx, n); err != nil {
		return err
	}
	if l.state.Network.Real() {
		if err := l.startOVNKubeNode(ctx, n); err != nil {
			return err
		}
	}
	return l.Settle(ctx)
}

// TunnelsUp returns an error that names a tunnel whose BFD session is not up, or nil. OVN has a session between any two
// members of an HA chassis group. Until they are up, ovn-controller of a node that has started may claim a port that
// another node serves, whatever its place in the order.
func (l *Lab) TunnelsUp(ctx context.Context) error {
	for _, n := range l.Nodes {
		out, err := l.vsctl(ctx, n, "--format=csv", "--no-headings", "--data=bare", "--columns=name,bfd_status", "find",
			"Interface", "bfd:enable=true")
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			if !strings.Contains(line, " state=up") || !strings.Contains(line, "remote_state=up") {
				return fmt.Errorf("node %s: a tunnel is not up: %s", n.Name, strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// logTail returns the end of a daemon's log in a namespace. It returns nothing if the log cannot be read.
func (l *Lab) logTail(short, daemon string) []byte {
	const last = 2000
	log, _ := os.ReadFile(l.path(short, daemon+".log"))
	return log[max(0, len(log)-last):]
}

// Ended lists the daemons of a node that have exited without being killed here, each with the end of its log, and with
// its backtraces if it is Open vSwitch. It returns the empty string if all run.
func (l *Lab) Ended(name string) string {
	var ended strings.Builder
	for _, daemon := range l.daemons() {
		p, err := proc.Find(l.path(name), daemon)
		if err == nil && p.Alive() {
			continue
		}
		fmt.Fprintf(&ended, "%s of node %s has ended\n", daemon, name)
		ended.Write(l.logTail(name, daemon))
		if daemon == vswitchdName {
			traces, _ := os.ReadFile(l.path(name, backtraceName)) // Open vSwitch creates it when it starts.
			ended.Write(traces)
		}
	}
	return ended.String()
}

// GatewayRoutersAnswer pings the gateway routers of all nodes from the router on the LAN, by IPv4 and IPv6. The error
// names those that do not answer.
func (l *Lab) GatewayRoutersAnswer(ctx context.Context) error {
	var errs []error
	for _, n := range l.Nodes {
		for _, addr := range n.LAN {
			if _, err := l.Exec(ctx, routerNetns, "ping", "-n", "-c1", "-W3", addr.Addr().String()); err != nil {
				errs = append(errs, fmt.Errorf("gateway router of node %s at %s: %w", n.Name, addr.Addr(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// Diagnosis collects the state that shows where packets are dropped: the router's neighbors, and for each node the
// links, ports and FDB entries of its bridges.
func (l *Lab) Diagnosis(ctx context.Context) string {
	var out strings.Builder
	show := func(short string, args ...string) {
		text, err := l.Exec(ctx, short, args...)
		fmt.Fprintf(&out, "%s: %s\n%s", short, strings.Join(args, " "), text)
		if err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	show(routerNetns, "ip", "neigh")
	if !l.state.Network.Zones() {
		bindings, err := l.SB(ctx, "--columns=logical_port,ip,mac", "--format=csv", "list", "MAC_Binding")
		fmt.Fprintf(&out, "MAC_Binding\n%s%v\n", bindings, err)
		flows, err := l.SB(ctx, "lflow-list")
		fmt.Fprintf(&out, "logical flows of load balancers: %v\n", err)
		for line := range strings.Lines(flows) {
			if strings.HasPrefix(line, "Datapath") || strings.Contains(line, "ct_lb") || strings.Contains(line, "ct_dnat") {
				out.WriteString(line)
			}
		}
	}
	show(switchNetns, "ip", "-s", "link")
	for _, n := range l.Nodes {
		show(n.Name, "ip", "-br", "address")
		show(n.Name, "ip", "-s", "link")
		show(n.Name, "ss", "-0am") // d: what ovs-vswitchd was too late to read, which no other counter shows
		for _, daemon := range []string{vswitchdName, controllerName} {
			fmt.Fprintf(&out, "the end of the log of %s\n%s\n", daemon, l.logTail(n.Name, daemon))
		}
		control := l.path(n.Name, "vswitchd.ctl")
		// The result of a trace and the behavior of the datapath may differ, so show both.
		show(n.Name, "ovs-appctl", "-t", control, "dpif/show")
		show(n.Name, "ovs-appctl", "-t", control, "dpctl/show", "--statistics")
		show(n.Name, "ovs-appctl", "-t", control, "coverage/show")
		show(n.Name, "ovs-appctl", "-t", control, "upcall/show")
		show(n.Name, "ovs-appctl", "-t", control, "dpctl/dump-flows", "--names")
		show(n.Name, "ovs-appctl", "-t", control, "dpctl/dump-conntrack")
		// The flow of a load balancer refers to a group. If the group is missing, packets are dropped silently.
		balancing, err := l.Exec(ctx, n.Name, "sh", "-c", `ovs-ofctl -O OpenFlow15 dump-flows "$1" | grep group:
			ovs-ofctl -O OpenFlow15 dump-groups "$1"`, "sh", "unix:"+l.path(n.Name, "br-int.mgmt"))
		fmt.Fprintf(&out, "%s: flows of load balancers and their groups\n%s%v\n", n.Name, balancing, err)
		trace, err := l.TraceFromLAN(ctx, n.Name, fmt.Sprintf("icmp,dl_dst=%s,nw_src=%s,nw_dst=%s,nw_ttl=64,icmp_type=8",
			n.MAC, LAN().Host(routerHost)[0].Addr(), n.LAN[0].Addr()))
		fmt.Fprintf(&out, "%s: a packet from the router\n%s%v\n", n.Name, trace, err)
		for _, bridge := range []string{"br-ex", "br-provider"} {
			show(n.Name, "ovs-appctl", "-t", control, "fdb/show", bridge)
			show(n.Name, "ovs-ofctl", "dump-flows", "unix:"+l.path(n.Name, bridge+".mgmt"))
		}
	}
	return out.String()
}

// TraceFromLAN returns how Open vSwitch of a node processes a packet (ovs-fields(7)) that arrives from the network of
// the nodes.
func (l *Lab) TraceFromLAN(ctx context.Context, name, packet string) (string, error) {
	return l.Exec(ctx, name, "ovs-appctl", "-t", l.path(name, "vswitchd.ctl"), "ofproto/trace", "br-ex",
		fmt.Sprintf("in_port=%s,dl_src=02:00:00:00:00:01,%s", lanLink, packet))
}

// KillCentral kills a daemon of the central namespace: a database of the cluster, or ovn-northd. StartCentral reverts
// it.
func (l *Lab) KillCentral(daemon string) error { return l.KillDaemon(centralNetns, daemon) }

// StartCentral starts what KillCentral has killed.
func (l *Lab) StartCentral(ctx context.Context, daemon string) error {
	return l.startOf(ctx, l.zones()[0], daemon)
}

// RestoreCentral starts the databases of the cluster and ovn-northd again.
func (l *Lab) RestoreCentral(ctx context.Context) error {
	for _, daemon := range []string{northdName, nbName, sbName} {
		p, err := proc.Find(l.path(centralNetns), daemon)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("restart %s: %w", daemon, err)
		}
		if err == nil && p.Alive() {
			if err := p.Kill(); err != nil {
				return err
			}
		}
	}
	return l.startDatabases(ctx, l.zones()[0], func() {})
}
