// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// globalZone is the zone of a node for which OVN-Kubernetes reports no zone.
const globalZone = "global"

// Zones determines which nodes one northbound database configures.
type Zones struct {
	// Central is the zone of more than half of the nodes that have a chassis. Its databases are the cluster's. It is empty
	// if there is no such zone.
	Central string
	// Interconnect means that nodes have a chassis but there is no Central, for example because each node has its own
	// databases.
	Interconnect bool
	// HasAgents means that an agent programs at least one zone.
	HasAgents bool
	// NoOverlay means that there are agents and that none of their zones has a transit switch.
	NoOverlay bool
	// Nodes is the number of nodes with a chassis. InCentral of them are in Central, and InOwn in a zone of their own.
	Nodes, InCentral, InOwn int
	names                   []string
}

// ZonesOf counts the nodes per zone. Central requires more than half of the nodes, so that the zone that a single node
// writes to its own object does not decide for the others. Without a configured database (Cluster.NoDatabase), a zone
// with the name of a node is that node's own and never Central, not even if only one node is left or if other nodes
// claim to be in it.
func ZonesOf(nodes []*Node, noDatabase bool) Zones {
	var z Zones
	count, overlay := map[string]int{}, false
	for _, n := range nodes {
		if n.Agent != nil {
			z.HasAgents, overlay = true, overlay || !n.Agent.NoOverlay
		}
		if n.Chassis == "" { // A node that is still joining does not count.
			continue
		}
		count[n.zone()]++
		z.Nodes++
		if n.HasOwnZone() {
			z.InOwn++
		}
	}
	z.names, z.NoOverlay = slices.Sorted(maps.Keys(count)), z.HasAgents && !overlay
	for name, n := range count {
		ofNode := noDatabase && slices.ContainsFunc(nodes, func(m *Node) bool { return m.Name == name })
		if 2*n > z.Nodes && !ofNode {
			z.Central, z.InCentral = name, n
		}
	}
	z.Interconnect = z.Nodes > 0 && z.Central == ""
	return z
}

// HasOwnZone reports whether the databases that configure a node configure only that node, with interconnect.
func (n *Node) HasOwnZone() bool { return n.Zone == n.Name }

func (n *Node) zone() string { return cmp.Or(n.Zone, globalZone) }

// Reaches reports whether the databases that are programmed configure a node: those of the central zone or, with
// interconnect, those of the node's own zone if an agent programs them.
func (z *Zones) Reaches(n *Node) bool {
	if z.Interconnect {
		return n.Agent != nil && n.HasOwnZone() && !n.Agent.NoOverlay
	}
	return n.zone() == z.Central
}

// ProgramWait is how long the status of a Service waits until what was programmed has taken effect, or until the zone
// of its gateway has programmed it.
const ProgramWait = 30 * time.Second

// ZoneAgent is the report of the agent that programs the databases of one zone.
type ZoneAgent struct {
	// Bridges are the bridges of the node, nil if they are unknown.
	Bridges Bridges
	// Claims are the shards that the node has claimed according to its own southbound database, and since when.
	Claims map[ShardID]time.Time
	// Contested are those of Claims for which the status of the L2Domain has named another active gateway for a while.
	// Unlike the claims of a node that died, these are current.
	Contested map[ShardID]bool
	// Applied is the resource version up to which the agent has applied all ServicePlans except those in Failed, with
	// the reason for each.
	Applied uint64
	Failed  map[Key]string
	// AppliedHere is the resource version up to which the zone has everything of the ServicePlans with backends on the
	// node. A report for it alone is paced, so it may be out of date.
	AppliedHere uint64
	// Started is when the agent started, according to its own clock.
	Started time.Time
	// Misplaced are addresses whose logical flows OVN has in the wrong routers of the zone.
	Misplaced map[netip.Addr]bool
	// Problem is why the zone can't serve, for example because its southbound database is away, or empty if it can.
	Problem string
	// Unwritable is why the zone can't be changed, for example because its northbound database is away, or empty if it
	// can. OVN forwards with the rows that it has. In particular, the gateway keeps its shards. Northd is set if that is
	// ovn-northd, and not the database.
	Unwritable string
	Northd     bool
	// NoOverlay means that the zone has no transit switch, so that OVN reaches no other node.
	NoOverlay bool
	// Silent means that the report has expired. It still counts: what the agent programmed is still there, and an
	// outage of the API server silences all agents.
	Silent bool
}

// Equal reports whether a and o are equal except for Applied and AppliedHere; either may be nil.
func (a *ZoneAgent) Equal(o *ZoneAgent) bool {
	if a == nil || o == nil {
		return a == o
	}
	return a.Problem == o.Problem && a.Unwritable == o.Unwritable && a.Northd == o.Northd &&
		a.NoOverlay == o.NoOverlay && a.Silent == o.Silent &&
		(a.Bridges == nil) == (o.Bridges == nil) && maps.Equal(a.Bridges, o.Bridges) &&
		maps.EqualFunc(a.Claims, o.Claims, time.Time.Equal) && maps.Equal(a.Contested, o.Contested) &&
		maps.Equal(a.Failed, o.Failed) && maps.Equal(a.Misplaced, o.Misplaced) &&
		a.Started.Equal(o.Started)
}

// IsHealthy reports whether the agent reports, and no difficulty in applying plans.
func (a *ZoneAgent) IsHealthy() bool {
	return !a.Silent && a.Problem+a.Unwritable == "" && len(a.Failed) == 0
}

// WithAgentFault returns a node whose agent reports that its zone can't serve or can't be changed with that as a fault
// of all networks, and any other node as it is.
func (n *Node) WithAgentFault() *Node {
	if n.Agent == nil {
		return n
	}
	fault := n.Faults[EveryNetwork]
	switch {
	case n.Agent.Problem != "":
		fault = Fault{Kind: FaultAgent, Message: n.Agent.Problem}
	case fault.Message == "" && n.Agent.Unwritable != "":
		if fault = (Fault{Kind: FaultUnwritable, Message: n.Agent.Unwritable}); n.Agent.Northd {
			fault.Kind = FaultNorthd
		}
	}
	if fault.Message == "" {
		return n
	}
	out := *n
	out.Faults = maps.Clone(n.Faults)
	if out.Faults == nil {
		out.Faults = map[string]Fault{}
	}
	out.Faults[EveryNetwork] = fault
	return &out
}

// String returns the names of some of the zones that nodes report.
func (z *Zones) String() string { return Some(z.names, 3) }
