// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// partlyInterconnect returns a snapshot of a cluster in which some of the nodes have zones of their own, with an agent
// each. The others are in zone global.
func partlyInterconnect(database bool, own ...string) *world.Snapshot {
	w := worldtest.Small(8)
	w.Cluster.NoDatabase = !database
	w.Bridges = map[string]world.Bridges{}
	for _, n := range w.Nodes {
		n.Zone, n.GatewayBridge = "global", "br-ex"
		w.Bridges[n.Chassis] = world.Bridges{"physnet": "br-p"}
		for _, name := range own {
			if n.Name == name {
				n.Zone, n.Agent = name, &world.ZoneAgent{Bridges: w.Bridges[n.Chassis]}
			}
		}
	}
	return w
}

func claim(w *world.Snapshot, node int) {
	w.Nodes[node].Agent.Claims = map[world.ShardID]time.Time{{Domain: "lan"}: time.Unix(1, 0)}
}

// While OVN-Kubernetes is moved to interconnect or back, a domain is served in one mode only.
func TestDomainsAreServedInOneMode(t *testing.T) {
	for name, c := range map[string]struct {
		w      *world.Snapshot
		served world.ServingMode // until now
		change func(*world.Snapshot)
		want   string // the mode and what it follows from, or why the domain is not served
	}{
		"central": {partlyInterconnect(true), "", nil, `Central: all 3 nodes are in zone "global" of OVN-Kubernetes ` +
			`(k8s.ovn.org/zone-name), whose northbound database --nb-address names; physical network "physnet" is bridge ` +
			`br-p, which OVN-Kubernetes' own gateway does not use, on 3 nodes`},
		"a node has moved": {partlyInterconnect(true, "n2"), world.ServedCentrally, nil,
			`Central: 2 of 3 nodes are in zone "global" of ` +
				`OVN-Kubernetes (k8s.ovn.org/zone-name), whose northbound database --nb-address names; physical network ` +
				`"physnet" is bridge br-p, which OVN-Kubernetes' own gateway does not use, on 2 nodes`},
		"most have moved": {partlyInterconnect(true, "n1", "n2"), world.ServedCentrally, nil,
			"OVN-Kubernetes runs in interconnect mode"},
		"too early without database": {partlyInterconnect(false, "n2"), world.ServedCentrally, nil,
			"no northbound database is " +
				`configured (--nb-address), so no segment is served: 2 of 3 nodes are in zone "global"`},
		"without database, the rows may be there": {partlyInterconnect(false, "n1", "n2"), world.ServedCentrally, nil,
			"OVN-Kubernetes is being moved to interconnect, and a controller with --nb-address has not removed its rows " +
				"(status.mode: Central): gateways among the nodes without a zone of their own (k8s.ovn.org/zone-name) may still " +
				"answer: n3; "},
		"without database, the rows are gone": {partlyInterconnect(false, "n1", "n2"), "", nil,
			"Interconnect: 2 of 3 nodes have zones " +
				"of their own in OVN-Kubernetes (k8s.ovn.org/zone-name, or k8s.ovn.org/node-transit-switch-port-ifaddr " +
				"without it), each with its own databases; physical network " +
				`"physnet" is bridge br-p, which OVN-Kubernetes' own gateway does not use, on 2 nodes`},
		"no node is left": {partlyInterconnect(false, "n1", "n2", "n3"), world.ServedCentrally, nil,
			"Interconnect: all 3 nodes have"},
		"a node is behind later": {partlyInterconnect(false, "n1", "n2"), world.ServedByZones, nil,
			"Interconnect: 2 of 3 nodes have"},
		"back, a zone has claimed": {partlyInterconnect(true, "n2"), world.ServedByZones,
			func(w *world.Snapshot) { claim(w, 1) },
			"OVN-Kubernetes is being moved from interconnect, and agents of nodes with a zone of their own " +
				"(k8s.ovn.org/zone-name) have not removed their rows (status.mode: Interconnect): n2; "},
		"back, its agent is silent": {partlyInterconnect(true, "n2"), world.ServedByZones, func(w *world.Snapshot) {
			claim(w, 1)
			w.Nodes[1].Agent.Silent = true
		}, "OVN-Kubernetes is being moved from interconnect"},
		"back, no zone has claimed": {partlyInterconnect(true, "n2"), world.ServedByZones, nil,
			"Central: 2 of 3 nodes are"},
		"back, the node has moved": {partlyInterconnect(true, "n2"), world.ServedByZones, func(w *world.Snapshot) {
			claim(w, 1)
			w.Nodes[1].Zone = "global"
		}, "Central: all 3 nodes are"},
		// One node can't withdraw the addresses of a central installation by what it reports.
		"a claim in central mode": {partlyInterconnect(true, "n2"), world.ServedCentrally,
			func(w *world.Snapshot) { claim(w, 1) },
			"Central: 2 of 3 nodes are"},
		"one node with a database": {partlyInterconnect(true, "n1"), world.ServedByZones, func(w *world.Snapshot) {
			claim(w, 0)
			w.Nodes = w.Nodes[:1]
		}, `Central: the only node is in zone "n1"`},
		"the gateway's bridge": {partlyInterconnect(true), "", func(w *world.Snapshot) {
			for i, n := range w.Nodes {
				n.GatewayBridge, n.SharedGateway = "br-p", i == 0
				n.Guarded, n.Localnets = true, map[string]world.Localnet{"slb-lan-localnet": {Bridge: "br-p"}}
			}
		}, "Central: all 3 nodes are"},
		"no overlay": {partlyInterconnect(false, "n1", "n2", "n3"), "", func(w *world.Snapshot) {
			for _, n := range w.Nodes {
				n.Agent.NoOverlay = true
			}
		}, "OVN-Kubernetes has no overlay for the default network (transport no-overlay): the zones have no transit " +
			"switch, by which OVN reaches the pods of other nodes; to advertise its addresses instead, select the pool by a " +
			"BGPAdvertisement"},
		"OpenShift SDN": {partlyInterconnect(true), world.ServedCentrally,
			func(w *world.Snapshot) { w.Cluster.OpenShiftSDN = true },
			"OpenShiftSDN: the cluster network is OpenShiftSDN"},
	} {
		w := c.w
		w.Domains[0].Served = c.served
		if c.change != nil {
			c.change(w)
		}
		d := place.Compute(w).Domains[0]
		got := fmt.Sprintf("%s: %s", d.Mode, d.ModeMessage)
		if d.Unserved != "" {
			got = d.Unserved
		}
		if !strings.HasPrefix(got, c.want) || (d.Unserved == "") != (d.Mode != "") {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// Agents do not report in central mode. What one reported before the cluster was moved back does not count, whatever
// has become of it since.
func TestOldReportsOfAgentsDoNotCountInCentralMode(t *testing.T) {
	gateways := func(active string, change func(*world.Node)) string {
		w := partlyInterconnect(true)
		for _, n := range w.Nodes {
			n.Agent = &world.ZoneAgent{}
		}
		if active != "" {
			w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: active, Settled: true,
				Order: []string{active}}}
		}
		change(w.Nodes[0])
		d := place.Compute(w).Domains[0]
		return fmt.Sprint(d.Shards[0].Gateways, d.Warnings)
	}
	drained := func(n *world.Node) { n.Draining = "a label" }
	for name, report := range map[string]world.ZoneAgent{
		"silent": {Silent: true}, "can't be changed": {Unwritable: "no database"}, "no overlay": {NoOverlay: true},
	} {
		for _, c := range []struct {
			active string
			change func(*world.Node)
		}{{"chassis-1", drained}, {"", func(*world.Node) {}}, {"chassis-2", func(*world.Node) {}}} {
			want := gateways(c.active, func(n *world.Node) { n.Agent = nil; c.change(n) })
			got := gateways(c.active, func(n *world.Node) { n.Agent = &report; c.change(n) })
			if got != want {
				t.Errorf("%s, active gateway %q:\n%s, want\n%s", name, c.active, got, want)
			}
		}
	}
}

func TestModesNameTheBridgesOfTheGateway(t *testing.T) {
	w := partlyInterconnect(false, "n1", "n2", "n3")
	for i, n := range w.Nodes {
		n.GatewayBridge, n.SharedGateway = []string{"br-p", "br-p", "br-ex"}[i], i == 0
		n.Localnets = map[string]world.Localnet{"slb-lan-localnet": {Bridge: "br-p"}}
		n.Guarded = true
	}
	l := place.Compute(w)
	const want = `physical network "physnet" is bridge br-p of OVN-Kubernetes' own gateway (mode local) on 1 node, br-p of ` +
		`OVN-Kubernetes' own gateway (mode shared) on 1 node, br-p, which OVN-Kubernetes' own gateway does not use, on 1 node`
	if got := l.Domains[0].ModeMessage; !strings.HasSuffix(got, want) {
		t.Errorf("%s\nexcluded: %+v", got, l.Domains[0].Excluded)
	}
}

// A node without a transit switch is no gateway, and its pods can't reply.
func TestNodesWithoutOverlayCarryNothing(t *testing.T) {
	w := partlyInterconnect(false, "n1", "n2", "n3")
	w.Nodes[2].Agent.NoOverlay = true
	d := place.Compute(w).Domains[0]
	zones := world.ZonesOf(w.Nodes, true)
	if len(d.Excluded) != 1 || d.Excluded[0].Node != "n3" || d.Excluded[0].Reason != place.ReasonNoOverlay ||
		!strings.Contains(d.Excluded[0].Message, "no-overlay") || zones.Reaches(w.Nodes[2]) {
		t.Errorf("excluded: %+v, reached: %t", d.Excluded, zones.Reaches(w.Nodes[2]))
	}
}
