// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// members returns the nodes that may be gateways, by name, and records the others as excluded. A node is not excluded
// because of unknown facts.
func (d *Domain) members(nodes map[string]*world.Node, zones *world.Zones, w *world.Snapshot) []*world.Node {
	var list []*world.Node
	for _, name := range slices.Compact(slices.Sorted(slices.Values(d.Spec.Nodes))) {
		n := nodes[name]
		switch {
		case n == nil:
			d.exclude(name, ReasonNoChassis, fmt.Sprintf("node %q does not exist", name))
			continue
		case n.Chassis == "":
			d.exclude(name, ReasonNoChassis, fmt.Sprintf("node %q has no valid chassis yet (k8s.ovn.org/node-chassis-id)", name))
			continue
		}
		if reason, message := d.admit(n, zones, w); reason != "" {
			d.exclude(name, reason, message)
			continue
		}
		list = append(list, n)
	}
	for _, n := range list {
		// A gateway that is not in the southbound database at the moment has the bridges that the others have.
		if _, known := bridgesOf(n, w); !known && n.SharedGateway && len(d.sharedBridges) > 0 {
			d.sharedBridges[n.Name] = true
		}
	}
	return list
}

// admit returns why a node with a chassis can't be a gateway, or no reason if it can.
func (d *Domain) admit(n *world.Node, zones *world.Zones, w *world.Snapshot) (Reason, string) {
	reason, message := zoneReason(n, zones)
	if w.Cluster.OpenShiftSDN {
		reason, message = d.sdnNotAttachedReason(n)
	}
	if reason != "" {
		return reason, message
	}
	mapped, known := bridgesOf(n, w)
	if known {
		if reason, message := d.notAttachedReason(n, mapped); reason != "" {
			return reason, message
		}
	}
	if shared := n.SharedGateway && zones.Interconnect; !known && w.Bridges != nil && n.GatewayBridge != "" && !shared &&
		!d.isConfiguredGateway(n, w) {
		return ReasonNoChassis, fmt.Sprintf("chassis %s of node %q is not in the southbound database, so its bridges are "+
			"not known", n.Chassis, n.Name)
	}
	if bridge := mapped[d.Spec.PhysicalNetwork]; known && !w.Cluster.OpenShiftSDN && bridge == n.GatewayBridge {
		if reason, message := d.admitToSharedBridge(n, bridge, w); reason != "" {
			return reason, message
		}
		d.sharedBridges[n.Name] = n.SharedGateway
	}
	return "", ""
}

// bridgesOf returns the bridges of a node, and whether they are known. With interconnect, they are what its own agent
// reports: a kubelet can write the chassis of another node into its own Node. Otherwise nodes have no Agent here.
func bridgesOf(n *world.Node, w *world.Snapshot) (bridges world.Bridges, known bool) {
	if n.Agent != nil && n.Agent.Bridges != nil {
		return n.Agent.Bridges, true
	}
	bridges, known = w.Bridges[n.Chassis]
	return bridges, known
}

// zoneReason returns why the databases of a node are not programmed, or no reason if they are.
func zoneReason(n *world.Node, zones *world.Zones) (Reason, string) {
	switch {
	case zones.Interconnect && n.Zone != n.Name:
		return ReasonOtherZone, fmt.Sprintf("node %q is in zone %q of OVN-Kubernetes (k8s.ovn.org/zone-name), "+
			"not in a zone of its own", n.Name, n.Zone)
	case zones.Interconnect && n.Agent == nil:
		return ReasonNoAgent, fmt.Sprintf("no agent runs on node %q (ovnkube-slb node --enable-l2)", n.Name)
	case zones.Interconnect && n.Agent.NoOverlay:
		return ReasonNoOverlay, fmt.Sprintf("the databases of node %q have no port on a transit switch "+
			"(OVN-Kubernetes with transport no-overlay), so OVN reaches no other node", n.Name)
	case !zones.Reaches(n):
		return ReasonOtherZone, fmt.Sprintf("node %q is in zone %q of OVN-Kubernetes (k8s.ovn.org/zone-name), most nodes "+
			"are in zone %q: another northbound database configures it", n.Name, n.Zone, zones.Central)
	}
	return "", ""
}

// notAttachedReason returns why a node with these bridges is not attached to the segment, or no reason if it is. The
// node needs no address there: OVN answers on the bridge itself.
func (d *Domain) notAttachedReason(n *world.Node, mapped world.Bridges) (Reason, string) {
	bridge, ok := mapped[d.Spec.PhysicalNetwork]
	switch {
	case !ok:
		return ReasonNotAttached, fmt.Sprintf("ovn-bridge-mappings of node %q are %s: none is for physical network %q",
			n.Name, mappingText(mapped), d.Spec.PhysicalNetwork)
	case n.SharedGateway && bridge == n.GatewayBridge && d.Spec.VLAN != 0:
		return ReasonSharedGateway, fmt.Sprintf("physical network %q is bridge %s of node %q, where OVN-Kubernetes' "+
			"gateway (mode shared) intercepts the packets to every Service, without their VLAN; use a separate bridge for "+
			"VLAN %d", d.Spec.PhysicalNetwork, bridge, n.Name, d.Spec.VLAN)
	}
	return "", ""
}

func mappingText(mapped world.Bridges) string {
	if len(mapped) == 0 {
		return "empty"
	}
	var pairs []string
	for _, network := range slices.Sorted(maps.Keys(mapped)) {
		pairs = append(pairs, network+":"+mapped[network])
	}
	if more := len(pairs) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(pairs[:maxNamed], ","), more)
	}
	return strings.Join(pairs, ",")
}

func (d *Domain) exclude(node string, reason Reason, message string) {
	d.Excluded = append(d.Excluded, ExcludedNode{node, reason, message})
}

// excludeMembers records the members that could be gateways and must not be, or are only because there are no
// others.
func (d *Domain) excludeMembers(members []*world.Node, serves map[*world.Node]bool) {
	for _, n := range members {
		switch {
		case d.fault(n) != "":
			d.exclude(n.Name, ReasonFaulty, fmt.Sprintf("node %q reports: %s", n.Name, d.fault(n)))
		case n.Draining != "" && d.AllDraining && serves[n]:
			d.exclude(n.Name, ReasonDraining, fmt.Sprintf("node %q is draining: %s; it stays a gateway because there are no "+
				"others",
				n.Name,
				n.Draining))
		case n.Draining != "":
			d.exclude(n.Name, ReasonDraining, fmt.Sprintf("node %q is draining: %s", n.Name, n.Draining))
		case !serves[n]:
			d.exclude(n.Name, ReasonEnoughGateways, fmt.Sprintf("every shard already has %s (gateways.max)",
				world.Count(d.Spec.MaxGateways, "other gateway")))
		}
	}
	slices.SortFunc(d.Excluded, func(a, b ExcludedNode) int { return cmp.Compare(a.Node, b.Node) })
}

func (d *Domain) noGatewayReason() string {
	if len(d.Excluded) == 0 {
		return "no node is selected, so there is no gateway"
	}
	if len(d.Excluded) == 1 {
		return "the only selected node can't be a gateway: " + d.Excluded[0].Message
	}
	return fmt.Sprintf("none of the %d selected nodes can be a gateway: %s", len(d.Excluded), causes(d.Excluded))
}

// maxCauses is the maximum number of different causes in a message, and of nodes with the same cause.
const maxCauses = 3

// causes returns the messages about nodes. Those that differ only in the node are one, with the names of the nodes.
func causes(excluded []ExcludedNode) string {
	type cause struct{ before, after string }
	var all []cause
	nodes := map[cause][]string{}
	for _, out := range excluded {
		name := strconv.Quote(out.Node)
		before, after, named := strings.Cut(out.Message, name)
		c := cause{before, after}
		if nodes[c] == nil {
			all = append(all, c)
		}
		if !named {
			name = ""
		}
		nodes[c] = append(nodes[c], name)
	}
	var texts []string
	for _, c := range all[:min(len(all), maxCauses)] {
		text := c.before
		if nodes[c][0] != "" {
			text += world.Some(nodes[c], maxCauses) + c.after
		}
		texts = append(texts, text)
	}
	if more := len(all) - maxCauses; more > 0 {
		texts = append(texts, world.Count(more, "other cause"))
	}
	return strings.Join(texts, "; ")
}

// addWarnings records the weaknesses of a domain with these members.
func (d *Domain) addWarnings(members []*world.Node, sdn bool) {
	warn := func(format string, args ...any) { d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...)) }
	dead := unreachable(members)
	n, alive := len(members), len(members)-len(dead)
	if d.Spec.MaxGateways > 0 {
		n, alive = min(n, d.Spec.MaxGateways), min(alive, d.Spec.MaxGateways)
	}
	switch {
	case sdn:
		if d.TooFewGateways = n < minKernels; d.TooFewGateways {
			warn("only one gateway: no failover is possible")
		}
	case n < v1alpha1.MinGatewaysForFailover:
		d.TooFewGateways = true
		warn("fewer than %d gateways: a shard has %d, and OVN lets the last one left answer only as long as BFD shows it "+
			"another node", v1alpha1.MinGatewaysForFailover, n)
	case alive < v1alpha1.MinGatewaysForFailover:
		d.TooFewGateways = true
		warn("%s may be dead (the kubelet has stopped reporting), which leaves a shard %s, fewer than %d", some(dead),
			world.Count(alive, "gateway"), v1alpha1.MinGatewaysForFailover)
	}
	switch d.best(members) {
	case fit, partial, recentlyStale:
		if stay := notDraining(members); len(stay) == 1 && len(members) > 1 {
			warn("all gateways but %s are draining", stay[0].Name)
		}
	case draining:
		d.AllDraining = true
		if stay := notDraining(members); len(stay) > 0 { // silent, stale or faulty
			var names []string
			for _, n := range stay {
				names = append(names, n.Name)
			}
			warn("all gateways that work are draining and stay active: %s can't replace them", some(names))
			break
		}
		warn("all gateways are draining and stay active")
	case silent:
	case stale, faulty:
		warn("%s", d.faultOfEach(members))
	}
	d.addRecentlyStale(members)
	if names := d.partialMembers(members); names != "" {
		warn("%s have no address in the subnets of one family (%s), and come after the gateways that do", names, d.subnets())
	}
	if names := silentMembers(members); names != "" {
		warn("no agent (ovnkube-slb node --enable-l2) reports from %s: such a node keeps the shards that it has, also when "+
			"it drains, and gets no others", names)
	}
	if names := d.recovering(members); names != "" {
		warn("failover.preempt moves no shard back to %s yet: a fault or an exclusion ended a short while ago", names)
	}
	if len(d.withoutGuard) > 0 {
		warn("no guard (ovnkube-slb node) reports whether bridges forward ARP requests and neighbour solicitations to OVN: "+
			"%s",
			strings.Join(d.withoutGuard, ", "))
	}
	d.addUnmatched(members)
	if out := len(d.Excluded); out > 0 {
		what := "gateways"
		if out == 1 {
			what = "a gateway"
		}
		warn("%d of the %d selected nodes can't be %s: %s (see status.excludedNodes); %s", out, out+len(members), what,
			d.excludedNames(), causes(d.Excluded))
	}
	if node, link, subnet := d.mismatchedPrefix(members); node != "" {
		warn("node %q has address %s, which does not match the prefix length of subnet %s", node, link, subnet)
	}
}

// addUnmatched records the preferences that have no effect.
func (d *Domain) addUnmatched(members []*world.Node) {
	if len(d.Spec.Preferred) == 0 {
		return
	}
	names := make(map[string]bool, len(members))
	for _, n := range members {
		names[n.Name] = true
	}
	for i, p := range d.Spec.Preferred {
		if !slices.ContainsFunc(p.Nodes, func(name string) bool { return names[name] }) {
			d.Unmatched = append(d.Unmatched, fmt.Sprintf("gateways.preferred[%d] matches no node that can be a gateway", i))
		}
	}
}

// addMissed records the gateways that had to claim a shard and did not.
func (d *Domain) addMissed(members []*world.Node, index int, state world.ShardState) {
	for _, n := range members {
		if misses(state, n) > 0 {
			d.Warnings = append(d.Warnings, fmt.Sprintf("node %q was the first gateway of shard %d and did not claim it: see "+
				"its ovn-controller and its agent (ovnkube-slb node --enable-l2)", n.Name, index))
		}
	}
}

// addSlowDetection records that the cluster has too many nodes for the domain's interval between BFD frames.
func (d *Domain) addSlowDetection(all []*world.Node, interconnect bool) {
	nodes := 0
	for _, n := range all {
		if n.Chassis != "" {
			nodes++
		}
	}
	interval := plan.TunnelInterval(d.Spec.Detect, nodes)
	if interval == d.Spec.Detect {
		return
	}
	between := ""
	if interconnect {
		between = " between gateways and other nodes"
	}
	d.Warnings = append(d.Warnings, fmt.Sprintf("the interval of BFD%s is %s instead of %s (failover.detectInterval): "+
		"with %d nodes, a gateway would exchange more than %d frames per second", between, interval, d.Spec.Detect, nodes,
		plan.MaxBFDFrames))
}

// addTunnelsDown records the nodes that OVN can't reach. Each node may have endpoints of any domain.
func (d *Domain) addTunnelsDown(down map[string]world.TunnelFault) {
	if len(down) == 0 {
		return
	}
	d.TunnelsDown = true
	names := slices.Sorted(maps.Keys(down))
	d.Warnings = append(d.Warnings, fmt.Sprintf("OVN does not reach %s from other nodes, so that connections to "+
		"endpoints there fail: node %s: %s", some(names), names[0], down[names[0]].Why))
}

// excludedNames returns as many names as fit into a condition.
func (d *Domain) excludedNames() string {
	names := make([]string, 0, len(d.Excluded))
	for _, out := range d.Excluded {
		names = append(names, out.Node)
	}
	return some(names)
}

// silentMembers returns the names of the members whose agents do not report, or an empty string.
func silentMembers(members []*world.Node) string {
	var names []string
	for _, n := range members {
		if n.Agent != nil && n.Agent.Silent {
			names = append(names, n.Name)
		}
	}
	return some(names)
}

// recovering returns the names of the members to which preempt moves no shard because they had a fault or were
// excluded, or an empty string.
func (d *Domain) recovering(members []*world.Node) string {
	var names []string
	for _, n := range members {
		if d.fault(n) == "" && !d.RecentlyStale[n.Name] && n.Draining == "" && slices.Contains(d.Spec.Recovering, n.Name) {
			names = append(names, n.Name)
		}
	}
	return some(names)
}

// unreachable returns the names of the members whose kubelets have stopped reporting.
func unreachable(members []*world.Node) []string {
	var names []string
	for _, n := range members {
		if n.Unreachable {
			names = append(names, n.Name)
		}
	}
	return names
}

// some returns as many names of members as fit into a condition.
func some(names []string) string { return world.Some(names, 16) }

// notDraining returns the members that do not drain.
func notDraining(members []*world.Node) []*world.Node {
	return slices.DeleteFunc(slices.Clone(members), func(n *world.Node) bool { return n.Draining != "" })
}

// mismatchedPrefix finds a node that configures a subnet of the segment with another prefix length than the domain
// does. One of the two is wrong: they would disagree about which hosts are neighbours.
func (d *Domain) mismatchedPrefix(members []*world.Node) (node string, link, subnet netip.Prefix) {
	for _, n := range members {
		for _, link := range n.Links {
			if s, ok := d.subnet(link.Addr()); ok && s.Prefix.Bits() != link.Bits() {
				return n.Name, link, s.Prefix
			}
		}
	}
	return "", netip.Prefix{}, netip.Prefix{}
}
