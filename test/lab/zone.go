// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// zone is a northbound and a southbound database with the nodes that they configure.
type zone struct {
	// name is the annotation k8s.ovn.org/zone-name of the nodes.
	name string
	// netns is the short name of the namespace of the databases, and of the directory of their files.
	netns string
	nodes []Node
}

// zones returns the zones of the lab: one per node with interconnect, otherwise one of all nodes.
func (l *Lab) zones() []zone {
	if !l.state.Network.Zones() {
		return []zone{{name: "global", netns: centralNetns, nodes: l.Nodes}}
	}
	var zones []zone
	for _, n := range l.Nodes {
		zones = append(zones, zone{name: n.Name, netns: n.Name, nodes: []Node{n}})
	}
	return zones
}

// zoneOf returns the zone of a node.
func (l *Lab) zoneOf(n Node) zone {
	zones := l.zones()
	return zones[slices.IndexFunc(zones, func(z zone) bool { return z.has(n) })]
}

func (z zone) has(n Node) bool {
	return slices.ContainsFunc(z.nodes, func(own Node) bool { return own.Index == n.Index })
}

// liveZones returns the zones whose northbound database runs. Without interconnect, that is not checked: the loss of
// the only database is an error.
func (l *Lab) liveZones() []zone {
	return slices.DeleteFunc(l.zones(), func(z zone) bool {
		return l.state.Network.Zones() && !l.runs(z.nodes[0], nbName)
	})
}

// socket returns the OVSDB connection method (ovsdb(7)) of a database, nbName or sbName. It works in every namespace.
func (l *Lab) socket(z zone, database string) string {
	return "unix:" + l.path(z.netns, database+".sock")
}

// zoneNB runs ovn-nbctl(8) on the northbound database of a zone and returns its output.
func (l *Lab) zoneNB(ctx context.Context, z zone, args ...string) (string, error) {
	return run(ctx, append([]string{"ovn-nbctl", "--db=" + l.socket(z, nbName), toolTimeout()}, args...)...)
}

// zoneSB runs ovn-sbctl(8) on the southbound database of a zone and returns its output without spaces around it.
func (l *Lab) zoneSB(ctx context.Context, z zone, args ...string) (string, error) {
	out, err := run(ctx, append([]string{"ovn-sbctl", "--db=" + l.socket(z, sbName), toolTimeout()}, args...)...)
	return strings.TrimSpace(out), err
}

// NB runs ovn-nbctl(8) on the lab's northbound database and returns its output. With interconnect, it tries those that
// run until one has output: not every zone has all rows.
func (l *Lab) NB(ctx context.Context, args ...string) (string, error) {
	return l.firstOutput(ctx, l.zoneNB, args)
}

// SB is like NB, for ovn-sbctl(8) and the southbound database.
func (l *Lab) SB(ctx context.Context, args ...string) (string, error) {
	return l.firstOutput(ctx, l.zoneSB, args)
}

func (l *Lab) firstOutput(ctx context.Context, ctl func(context.Context, zone, ...string) (string, error),
	args []string) (string, error) {
	for _, z := range l.liveZones() {
		if out, err := ctl(ctx, z, args...); err != nil || strings.TrimSpace(out) != "" {
			return out, err
		}
	}
	return "", nil
}

// NodeNB runs ovn-nbctl(8) on the northbound database that configures a node and returns its output.
func (l *Lab) NodeNB(ctx context.Context, node string, args ...string) (string, error) {
	n, err := l.Node(node)
	if err != nil {
		return "", err
	}
	return l.zoneNB(ctx, l.zoneOf(n), args...)
}

// EachNB runs ovn-nbctl(8) on each northbound database of the lab in turn and returns the combined output.
func (l *Lab) EachNB(ctx context.Context, args ...string) (string, error) {
	var all strings.Builder
	for _, z := range l.liveZones() {
		out, err := l.zoneNB(ctx, z, args...)
		if err != nil {
			return "", fmt.Errorf("zone %s: %w", z.name, err)
		}
		all.WriteString(out)
	}
	return all.String(), nil
}

// RepairFlows makes ovn-northd of each zone write the logical flows for load balancer addresses again, as
// docs/failures.md describes for MisplacedFlow.
func (l *Lab) RepairFlows(ctx context.Context, addrs []netip.Addr) error {
	for _, z := range l.liveZones() {
		for _, a := range addrs {
			family := map[bool]string{true: "ip4", false: "ip6"}[a.Is4()]
			found, err := l.zoneSB(ctx, z, "--bare", "--columns=_uuid", "find", "Logical_Flow",
				fmt.Sprintf(`match="ip && %s.dst == %s"`, family, a))
			if err != nil {
				return err
			}
			if uuids := strings.Fields(found); len(uuids) > 0 {
				if _, err := l.zoneSB(ctx, z, append([]string{"destroy", "Logical_Flow"}, uuids...)...); err != nil {
					return err
				}
			}
		}
		if _, err := run(ctx, "env", "OVN_RUNDIR="+l.path(z.netns), "ovn-appctl", "-t", "ovn-northd",
			"inc-engine/recompute"); err != nil {
			return err
		}
	}
	return nil
}

// Settle returns when every chassis whose ovn-controller runs has applied the current content of the northbound
// database, or of that of its zone.
func (l *Lab) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, poll.Limit)
	defer cancel()
	for _, z := range l.liveZones() {
		if err := l.settleZone(ctx, z); err != nil {
			return fmt.Errorf("zone %s: %w", z.name, err)
		}
	}
	return nil
}

// settleZone is what ovn-nbctl --wait=hv does, except that it does not wait for a chassis that can't answer.
func (l *Lab) settleZone(ctx context.Context, z zone) error {
	if _, err := l.zoneNB(ctx, z, "--wait=sb", "sync"); err != nil {
		return err
	}
	out, err := l.zoneNB(ctx, z, "get", "NB_Global", ".", "nb_cfg")
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return fmt.Errorf("nb_cfg: %w", err)
	}
	return poll.Until(ctx, func(context.Context) error {
		for _, n := range z.nodes {
			if !l.runs(n, controllerName) {
				continue
			}
			out, err := l.zoneSB(ctx, z, "get", "Chassis_Private", n.Chassis, "nb_cfg")
			if err != nil {
				return err
			}
			if got, err := strconv.Atoi(out); err != nil || got < want {
				return fmt.Errorf("chassis %s has applied state %s of %d", n.Chassis, out, want)
			}
		}
		return nil
	})
}
