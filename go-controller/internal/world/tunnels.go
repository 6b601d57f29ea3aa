// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"slices"
)

// Tunnels is what the guard of a node reports of OVN's tunnels to other nodes: the BFD sessions that ovn-controller
// maintains between gateways, and between each gateway and all other nodes.
type Tunnels struct {
	// AllDown is the number of the other chassis if there are at least two and no tunnel to any of them is up, else 0.
	AllDown int
	// Down are some of the chassis to which no tunnel is up while others are, sorted. Only a node that may be a gateway
	// names them: the others have tunnels with BFD to gateways only.
	Down []string
}

// Equal reports whether t and o are equal; either may be nil.
func (t *Tunnels) Equal(o *Tunnels) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.AllDown == o.AllDown && slices.Equal(t.Down, o.Down)
}

// TunnelFault is what shows that OVN can't reach a node. Unanswered means that no other gateway that reports reaches
// it, and that it reports neither that itself, as its guard would soon do if only tunnels were cut, nor a fault: it may
// be dead, unless it has reported since.
type TunnelFault struct {
	Why        string
	Unanswered bool
}

// TunnelsDown returns the nodes that OVN can't reach from most of the others, with what shows it: their own guards
// report that all of their tunnels are down, or more than half of the gateways that report, and at least two, report
// that of the tunnel to the node. So no node can make such a statement about another one by itself. A node that reaches
// none says nothing about the others, and of one whose kubelet is silent it is known that it may be dead.
func TunnelsDown(nodes []*Node, domains []*Domain) map[string]TunnelFault {
	reporting, votes := tunnelVotes(nodes, domains)
	down := map[string]TunnelFault{}
	for _, n := range nodes {
		if n.Chassis == "" || n.Unreachable {
			continue
		}
		if n.Tunnels != nil && n.Tunnels.AllDown > 0 {
			down[n.Name] = TunnelFault{Why: fmt.Sprintf("its guard reports that OVN's tunnels to all %d nodes with which it "+
				"has BFD sessions are down", n.Tunnels.AllDown)}
			continue
		}
		others := len(reporting)
		if reporting[n.Name] {
			others--
		}
		saysNothing := len(n.Faults) == 0 && (n.Tunnels == nil || len(n.Tunnels.Down) == 0)
		switch v := votes[n.Chassis]; {
		case v < 2 || 2*v <= others:
		case v == others && saysNothing:
			down[n.Name] = TunnelFault{Unanswered: true, Why: fmt.Sprintf("the guards of the %d other gateways report that "+
				"OVN's tunnel to it is down, and it reports nothing of that", others)}
		default:
			down[n.Name] = TunnelFault{Why: fmt.Sprintf("the guards of %d of %s report that OVN's tunnel to it is down", v,
				Count(others, "gateway"))}
		}
	}
	return down
}

// tunnelVotes returns the gateways whose reports about others count, and how many of them do not reach each chassis.
func tunnelVotes(nodes []*Node, domains []*Domain) (reporting map[string]bool, votes map[string]int) {
	gateways := map[string]bool{}
	for _, d := range domains {
		for _, order := range d.Gateways {
			for _, name := range order {
				gateways[name] = true
			}
		}
	}
	reporting, votes = map[string]bool{}, map[string]int{}
	for _, n := range nodes {
		if !gateways[n.Name] || n.Tunnels == nil || n.Tunnels.AllDown > 0 || n.Unreachable {
			continue
		}
		reporting[n.Name] = true
		for _, chassis := range n.Tunnels.Down {
			if chassis != n.Chassis {
				votes[chassis]++
			}
		}
	}
	return reporting, votes
}

// ThroughTunnel returns the node whose tunnels must work for a gateway to reach an endpoint on another node, and are
// down (TunnelsDown). It is empty if there is none.
func ThroughTunnel(down map[string]TunnelFault, gateway, endpoint string) string {
	switch {
	case gateway == endpoint:
		return ""
	case down[endpoint].Why != "":
		return endpoint
	case down[gateway].Why != "":
		return gateway
	}
	return ""
}
