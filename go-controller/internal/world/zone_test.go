// SPDX-License-Identifier: Apache-2.0

package world

import "testing"

func TestZonesOf(t *testing.T) {
	// zones has one zone per node: "-" is a node without a chassis, "" a node that reports no zone.
	for name, test := range map[string]struct {
		zones        []string
		central      string
		interconnect bool
	}{
		"no node":                    {},
		"central":                    {[]string{"global", "global"}, "global", false},
		"a release without zones":    {[]string{"", "", ""}, "global", false},
		"one node":                   {[]string{"n1"}, "n1", false},
		"interconnect":               {[]string{"n1", "n2", "n3"}, "", true},
		"two zones of several nodes": {[]string{"a", "a", "a", "b", "b"}, "a", false},
		"the first node moves, the others have no zone": {[]string{"n1", "", "", ""}, "global", false},
		"two nodes of many report other zones":          {[]string{"x", "y", "", "", ""}, "global", false},
		"half have moved":                               {[]string{"n1", "n2", "global", "global"}, "", true},
		"new nodes are not counted":                     {[]string{"n1", "n2", "-", "-", "-"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []*Node
			for _, zone := range test.zones {
				n := &Node{Chassis: "c", Zone: zone}
				if zone == "-" {
					n = &Node{}
				}
				nodes = append(nodes, n)
			}
			got := ZonesOf(nodes, false)
			if got.Central != test.central || got.Interconnect != test.interconnect {
				t.Errorf("central %q, interconnect %t; want %q, %t", got.Central, got.Interconnect, test.central, test.interconnect)
			}
		})
	}
}

// Without a database, no node can make another node's zone that of the cluster.
func TestZonesOfNodesAreNeverCentral(t *testing.T) {
	for name, test := range map[string]struct {
		zones        map[string]string // by node
		central      string
		interconnect bool
	}{
		"one node is left":             {map[string]string{"n1": "n1"}, "", true},
		"a node claims another's zone": {map[string]string{"n1": "n1", "n2": "n2", "n3": "n2"}, "", true},
		"central":                      {map[string]string{"n1": "global", "n2": "", "n3": "n3"}, "global", false},
	} {
		var nodes []*Node
		for node, zone := range test.zones {
			nodes = append(nodes, &Node{Name: node, Chassis: "c", Zone: zone, Agent: &ZoneAgent{}})
		}
		got := ZonesOf(nodes, true)
		if got.Central != test.central || got.Interconnect != test.interconnect {
			t.Errorf("%s: central %q, interconnect %t; want %q, %t", name, got.Central, got.Interconnect, test.central,
				test.interconnect)
		}
		for _, n := range nodes {
			if test.interconnect && got.Reaches(n) != (n.Zone == n.Name) {
				t.Errorf("%s: node %s in zone %s is reached: %t", name, n.Name, n.Zone, got.Reaches(n))
			}
		}
	}
}
