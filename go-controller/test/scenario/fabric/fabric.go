// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Fabric is the OVN of a cluster.
type Fabric struct {
	mu      sync.Mutex
	chassis map[string]*chassis // by name
	zones   map[string]*Zone    // by name
}

// chassis is the OVN of a node.
type chassis struct {
	node    string
	bridges string
	alive   bool
	facts   rows.NodeFacts
}

// Node is a node as OVN-Kubernetes has configured it.
type Node struct {
	Name, Chassis string
	// Bridges are its ovn-bridge-mappings.
	Bridges string
	rows.NodeFacts
}

// New returns a Fabric without nodes.
func New() *Fabric { return &Fabric{chassis: map[string]*chassis{}, zones: map[string]*Zone{}} }

// AddNode adds a node, or replaces what OVN-Kubernetes has configured for it.
func (f *Fabric) AddNode(n Node) {
	f.change(func() {
		f.chassis[n.Chassis] = &chassis{node: n.Name, bridges: n.Bridges, alive: true, facts: n.NodeFacts}
	}, ovn.Chassis)
}

// RemoveChassis removes the chassis of a node that has left the cluster.
func (f *Fabric) RemoveChassis(name string) {
	f.change(func() { delete(f.chassis, name) }, ovn.Chassis)
}

// SetAlive starts or stops the chassis of a node: one that is stopped answers no BFD.
func (f *Fabric) SetAlive(name string, alive bool) error {
	return f.changeChassis(name, func(c *chassis) { c.alive = alive }, ovn.ShardStates)
}

// SetBridges replaces the ovn-bridge-mappings of a chassis.
func (f *Fabric) SetBridges(name, mappings string) error {
	return f.changeChassis(name, func(c *chassis) { c.bridges = mappings }, ovn.Chassis)
}

func (f *Fabric) changeChassis(name string, set func(*chassis), event ovn.EventKind) error {
	var err error
	f.change(func() {
		if c := f.chassis[name]; c != nil {
			set(c)
		} else {
			err = fmt.Errorf("there is no chassis %s", name)
		}
	}, event)
	return err
}

// change changes the chassis and reports it to the processes that are connected to the databases.
func (f *Fabric) change(set func(), event ovn.EventKind) {
	f.mu.Lock()
	set()
	var calls []func()
	for _, z := range f.sortedZones() {
		calls = append(calls, z.decideClaims()...)
		calls = append(calls, z.notify(event)...)
	}
	f.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

func (f *Fabric) sortedZones() []*Zone {
	var zones []*Zone
	for _, name := range slices.Sorted(maps.Keys(f.zones)) {
		zones = append(zones, f.zones[name])
	}
	return zones
}

// Zone returns the databases of the zone of a node, or those of the whole cluster if the name is empty.
func (f *Fabric) Zone(node string) *Zone {
	f.mu.Lock()
	defer f.mu.Unlock()
	z := f.zones[node]
	if z == nil {
		z = &Zone{fabric: f, node: node, rows: map[rows.Ref]rows.Row{}, translated: map[rows.Ref]rows.Row{},
			claims: map[world.ShardID]claim{}, connected: map[*Dataplane]bool{}}
		f.zones[node] = z
	}
	return z
}

// Zones returns the names of the zones that have databases, sorted.
func (f *Fabric) Zones() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.zones))
}

// joinAddrs are the addresses of ovn_cluster_router on the join switch.
func joinAddrs() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16"), netip.MustParsePrefix("fd98::1/64")}
}

// facts returns what the rows of a zone depend on. f.mu must be held.
func (z *Zone) facts() rows.Facts {
	out := rows.Facts{Join: joinAddrs(), Nodes: map[string]rows.NodeFacts{}, UsedAddrs: map[netip.Addr]bool{},
		Ordinals: z.ordinals(), HashIPv6: true, SkipsSNATForReplies: true}
	for _, p := range out.Join {
		out.UsedAddrs[p.Addr()] = true
	}
	for _, c := range z.fabric.chassis {
		if z.node != "" && z.node != c.node {
			continue
		}
		own := c.facts
		if z.node == "" {
			own.Transit = nil
		}
		out.Nodes[c.node] = own
		for _, p := range c.facts.Join {
			out.UsedAddrs[p.Addr()] = true
		}
	}
	return out
}
