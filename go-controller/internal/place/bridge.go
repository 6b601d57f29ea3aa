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

// A domain may be on the bridge of OVN-Kubernetes' own gateway if that is in mode local. OVN-Kubernetes has a flow there for
// requests (ARP, neighbour solicitations) for each address of a Service, which hands them to the ports that the bridge had when OVN-Kubernetes
// saw the address: a port of OVN that comes later hears none. So OVN's ports come first and stay as long as the domain
// does, only a node whose guard has seen the port becomes a gateway, new addresses are told once there is one, and a
// gateway whose flow is from before its port stands behind the others.

// admitToBridge makes a node a resident of the domain, and says why it can't be a gateway yet, nothing if it can. One that is a
// gateway already remains it, whatever its guard says or does not say.
func (d *Domain) admitToBridge(n *world.Node, bridge string, w *world.Snapshot) (Reason, string) {
	d.residents = append(d.residents, n.Chassis)
	name := plan.LocalnetPort(d.Spec.Name)
	port, seen := n.Localnets[name]
	switch {
	case seen:
		d.bridgeFaults[n.Name] = staleFlows(&port, name, w)
		return "", ""
	case d.serves(n, w):
		if n.Localnets == nil {
			d.unguarded = append(d.unguarded, n.Name)
		} else {
			d.bridgeFaults[n.Name] = fmt.Sprintf("OVN's port %s is not on bridge %s", name, bridge)
		}
		return "", ""
	case n.Localnets == nil:
		return ReasonNoGuard, fmt.Sprintf("physical network %q is bridge %s of node %q, which OVN-Kubernetes' own gateway (mode local) is on, "+
			"and no guard (ovnkube-slb node) reports from there whether it lets requests for addresses through to OVN", d.Spec.PhysicalNetwork, bridge, n.Name)
	}
	return ReasonPortMissing, fmt.Sprintf("OVN's port %s is not on bridge %s of node %q yet", name, bridge, n.Name)
}

// serves tells whether OVN has a node among the gateways of the domain's shards.
func (d *Domain) serves(n *world.Node, w *world.Snapshot) bool {
	for i := range d.seeds {
		if slices.Contains(w.Carriers[world.ShardID{Domain: d.Spec.Name, Index: i}].Order, n.Chassis) {
			return true
		}
	}
	return false
}

// staleFlows says how a bridge keeps requests for Services' addresses from OVN's port, empty if it does not. Other
// controllers' addresses are not our business.
func staleFlows(port *world.Localnet, name string, w *world.Snapshot) string {
	if len(port.Stale) == 0 {
		return ""
	}
	var first netip.Addr
	n := 0
	for _, s := range w.Services {
		for _, a := range slices.Concat(s.Assigned, s.ExternalIPs) {
			if _, stale := slices.BinarySearchFunc(port.Stale, a, netip.Addr.Compare); stale {
				if n++; n == 1 || a.Less(first) {
					first = a
				}
			}
		}
	}
	if n == 0 {
		return ""
	}
	what := first.String()
	if n > 1 {
		what += fmt.Sprintf(" and %d more", n-1)
	}
	return fmt.Sprintf("flows of OVN-Kubernetes on bridge %s, from before OVN's port %s was there, keep requests from it for %s", port.Bridge, name, what)
}

// wait holds addresses back until one of the residents has its port. The others are not waited for: OVN may not work there.
func (d *Domain) wait(members []*world.Node) {
	if len(d.residents) > 0 && len(members) == 0 {
		d.Waits = d.whyNone()
	}
}

// Waits says why no Service is told a new address of that pool now, nothing if it may be.
func (l *Layout) Waits(pool string) string {
	if d := l.byPool[pool]; d != nil && d.Waits != "" {
		return fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.Waits)
	}
	return ""
}

// BridgeState says whether requests for an address get past the bridge of the node that carries it: what was seen if they do not,
// or why nobody knows.
func (l *Layout) BridgeState(spot *Spot, n *world.Node, w *world.Snapshot) (known bool, message string) {
	d := l.named(spot.Shard.Domain)
	if d == nil || n == nil || !slices.Contains(d.residents, n.Chassis) {
		return true, ""
	}
	bridge := w.Bridges[n.Chassis][d.Spec.PhysicalNetwork]
	name := plan.LocalnetPort(d.Spec.Name)
	port, seen := n.Localnets[name]
	switch {
	case n.Localnets == nil:
		return false, fmt.Sprintf("no guard (ovnkube-slb node) reports from node %s whether its bridge %s lets requests for address %s through to OVN",
			n.Name, bridge, spot.Addr)
	case !seen:
		return true, fmt.Sprintf("OVN's port %s is not on bridge %s of node %s, which carries address %s", name, bridge, n.Name, spot.Addr)
	}
	if _, stale := slices.BinarySearchFunc(port.Stale, spot.Addr, netip.Addr.Compare); stale {
		return true, fmt.Sprintf("OVN-Kubernetes' flow for address %s on bridge %s of node %s is from before OVN's port %s was there, and keeps requests from it; "+
			"the status is written again so that OVN-Kubernetes makes the flow anew", spot.Addr, bridge, n.Name, name)
	}
	return true, ""
}

// Stale are the addresses of which the bridge of some gateway keeps requests from OVN's port.
func (l *Layout) Stale(w *world.Snapshot) map[netip.Addr]bool {
	nodes := map[string]*world.Node{}
	for _, n := range w.Nodes {
		nodes[n.Chassis] = n
	}
	stale := map[netip.Addr]bool{}
	for _, d := range l.Domains {
		for _, chassis := range d.residents {
			for _, a := range nodes[chassis].Localnets[plan.LocalnetPort(d.Spec.Name)].Stale {
				if _, here := d.subnet(a); here {
					stale[a] = true
				}
			}
		}
	}
	return stale
}

func (l *Layout) named(name string) *Domain {
	at, found := slices.BinarySearchFunc(l.Domains, name, func(d *Domain, name string) int { return cmp.Compare(d.Spec.Name, name) })
	if !found {
		return nil
	}
	return l.Domains[at]
}
