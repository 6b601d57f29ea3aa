// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A domain may be on the bridge of OVN-Kubernetes' own gateway, in shared mode only without a VLAN. For each Service
// address OVN-Kubernetes installs a flow there for ARP requests and neighbour solicitations. The flow outputs to the
// ports that the bridge had when OVN-Kubernetes processed the Service, so an OVN port that is added later receives no
// requests. Therefore OVN's ports exist for the whole life of the domain, a node becomes a gateway only after its
// guard has observed the port, addresses are published once there is a gateway, and a gateway with an older flow
// comes last.

// admitToSharedBridge makes a node a resident of a domain on the bridge of OVN-Kubernetes' gateway, and records the
// faults of the bridge. It returns why the node can't be a gateway yet, or no reason. A node that is a gateway already
// stays one, whatever its guard reports.
func (d *Domain) admitToSharedBridge(n *world.Node, bridge string, w *world.Snapshot) (Reason, string) {
	d.residents = append(d.residents, n.Chassis)
	name := plan.LocalnetPort(d.Spec.Name)
	port, seen := n.Localnets[name]
	switch {
	case seen:
		if flows := d.staleFlows(&port, name, w); flows != "" {
			d.Stale[n.Name] = flows
		} else if _, was := d.Spec.RecentlyStale[n.Name]; was && d.fault(n) == "" {
			d.RecentlyStale[n.Name] = true
		}
		return "", ""
	case d.isConfiguredGateway(n, w):
		if n.Localnets == nil {
			d.withoutGuard = append(d.withoutGuard, n.Name)
		} else {
			d.portFaults[n.Name] = fmt.Sprintf("OVN's port %s is not on bridge %s", name, bridge)
		}
		return "", ""
	case n.Localnets == nil:
		return ReasonNoGuard, fmt.Sprintf("physical network %q is bridge %s of node %q, which OVN-Kubernetes' own gateway "+
			"is on, and no guard (ovnkube-slb node) runs there to report whether the bridge forwards ARP requests and "+
			"neighbour solicitations to OVN", d.Spec.PhysicalNetwork, bridge, n.Name)
	}
	return ReasonPortMissing, fmt.Sprintf("OVN's port %s is not on bridge %s of node %q yet", name, bridge, n.Name)
}

// isConfiguredGateway reports whether OVN has the node among the gateways of a shard of the domain.
func (d *Domain) isConfiguredGateway(n *world.Node, w *world.Snapshot) bool {
	for i := range d.seeds {
		if slices.Contains(w.ShardStates[world.ShardID{Domain: d.Spec.Name, Index: i}].Order, n.Name) {
			return true
		}
	}
	return false
}

// staleFlows describes the flows that keep requests for addresses of the domain from OVN's port. It returns an empty
// string if there are none. Only addresses count whose flows a status update may still repair (see refreshable): others
// would make the gateway faulty permanently, for all Services of the domain. An address that was rewritten to no
// effect, or could not be, counts only if most addresses of the domain are stale on the bridge: OVN-Kubernetes
// recomputes no flows there, and the cause is not the address.
func (d *Domain) staleFlows(port *world.Localnet, name string, w *world.Snapshot) string {
	if len(port.Stale) == 0 {
		return ""
	}
	all := d.refreshable(w)
	var first netip.Addr
	n, repairable := 0, 0
	for _, a := range slices.Compact(slices.Clone(port.Stale)) {
		if !all[a] {
			continue
		}
		if n++; n == 1 {
			first = a
		}
		if !w.NotRewritten[a] && !w.NotRepaired[a] {
			repairable++
		}
	}
	if repairable == 0 && 2*n <= len(all) {
		return ""
	}
	what := first.String()
	if n > 1 {
		what += fmt.Sprintf(" and %d more", n-1)
	}
	return fmt.Sprintf("stale flows of OVN-Kubernetes on bridge %s do not forward requests to OVN's port %s for %s",
		port.Bridge, name, what)
}

// refreshable returns the addresses of the domain whose flows a status update may repair. Several Services can share
// one.
func (d *Domain) refreshable(w *world.Snapshot) map[netip.Addr]bool {
	if d.refreshables != nil {
		return d.refreshables
	}
	d.refreshables = map[netip.Addr]bool{}
	for _, s := range w.Services {
		for _, a := range Refreshable(s) {
			if _, here := d.subnet(a); here && !isBeyondRefresh(a, w) {
				d.refreshables[a] = true
			}
		}
	}
	return d.refreshables
}

// Refreshable returns the addresses of a Service for which OVN-Kubernetes recomputes its flows when we rewrite the
// status: those that we allocated and that are in the status. It ignores Services of other service proxies.
func Refreshable(s *world.Service) []netip.Addr {
	if s.OtherProxy() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Assigned), func(a netip.Addr) bool { return !slices.Contains(s.Given, a) })
}

// isBeyondRefresh reports whether a stale flow for an address of ours is no fault of the bridge and its gateway: if
// another Service lists the address, OVN-Kubernetes has a flow for each and chooses one of them anew after each change
// of a Service, so that shards would move again and again. That it is in the network of a long list does not count: a
// tenant could exempt the addresses of all others.
func isBeyondRefresh(a netip.Addr, w *world.Snapshot) bool {
	return w.Listed.HasExactly(a)
}

// setBlocked defers new addresses until one resident has its port. It does not wait for all residents, since OVN may be
// down on some.
func (d *Domain) setBlocked(members []*world.Node) {
	if len(d.residents) > 0 && len(members) == 0 {
		d.BlockedReason = d.noGatewayReason()
	}
}

// PublishBlocked returns why no new address of the pool may be published now, or an empty string.
func (l *Layout) PublishBlocked(pool string) string {
	if d := l.byPool[pool]; d != nil && d.BlockedReason != "" {
		return fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.BlockedReason)
	}
	return ""
}

// OnGatewayBridge reports whether the segment of an address is behind the bridge of OVN-Kubernetes' own gateway on a
// node.
func (l *Layout) OnGatewayBridge(placement *Placement, n *world.Node) bool {
	d := l.domainByName(placement.Shard.Domain)
	return d != nil && slices.Contains(d.residents, n.Chassis)
}

// BridgeState reports whether requests for an address pass the bridge of its active gateway. The message is
// what is wrong, or why the state is unknown.
func (l *Layout) BridgeState(placement *Placement, n *world.Node, w *world.Snapshot) (known bool, message string) {
	d := l.domainByName(placement.Shard.Domain)
	if d == nil || n == nil || !slices.Contains(d.residents, n.Chassis) {
		return true, ""
	}
	bridge := w.Bridges[n.Chassis][d.Spec.PhysicalNetwork]
	name := plan.LocalnetPort(d.Spec.Name)
	port, seen := n.Localnets[name]
	switch {
	case n.Localnets == nil:
		return false, fmt.Sprintf("no guard (ovnkube-slb node) reports from node %s whether its bridge %s "+
			"forwards requests for address %s to OVN", n.Name, bridge, placement.Addr)
	case !seen:
		return true, fmt.Sprintf("OVN's port %s is not on bridge %s of node %s, the active gateway of address %s", name,
			bridge,
			n.Name, placement.Addr)
	}
	if _, stale := slices.BinarySearchFunc(port.Stale, placement.Addr, netip.Addr.Compare); stale {
		if w.Listed.HasExactly(placement.Addr) { // OVN-Kubernetes chooses anew after each change of a Service.
			return true, fmt.Sprintf("a flow of OVN-Kubernetes for address %s on bridge %s of node %s does not forward "+
				"requests to OVN's port %s: another Service lists the address in spec.externalIPs (kubectl slb explain %s names "+
				"it), and OVN-Kubernetes installs the flow of either Service; remove the address there",
				placement.Addr, bridge, n.Name, name, placement.Addr)
		}
		return true, fmt.Sprintf("the flow of OVN-Kubernetes for address %s on bridge %s of node %s is stale and does not "+
			"forward requests to OVN's port %s; the status is rewritten so that OVN-Kubernetes recomputes the flow; if that "+
			"does not help within a minute, restart ovnkube-node on this node: OVN-Kubernetes may have kept the flow from a "+
			"deleted Service",
			placement.Addr, bridge, n.Name, name)
	}
	return true, ""
}

// Stale returns the addresses whose requests are kept from OVN's port by the bridge of at least one gateway.
func (l *Layout) Stale(w *world.Snapshot) map[netip.Addr]bool {
	nodes := map[string]*world.Node{}
	for _, n := range w.Nodes {
		nodes[n.Name] = n
	}
	stale := map[netip.Addr]bool{}
	for _, d := range l.Domains {
		if len(d.residents) == 0 {
			continue
		}
		gateways := map[string]bool{}
		for _, shard := range d.Shards {
			for _, g := range shard.Gateways {
				gateways[g.Node] = true
			}
		}
		for name := range gateways {
			n := nodes[name]
			if n == nil {
				continue
			}
			for _, a := range n.Localnets[plan.LocalnetPort(d.Spec.Name)].Stale {
				if _, here := d.subnet(a); here {
					stale[a] = true
				}
			}
		}
	}
	return stale
}

func (l *Layout) domainByName(name string) *Domain {
	at, found := slices.BinarySearchFunc(l.Domains, name, func(d *Domain, name string) int {
		return cmp.Compare(d.Spec.Name, name)
	})
	if !found {
		return nil
	}
	return l.Domains[at]
}
