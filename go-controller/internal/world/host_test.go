// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAddressOfSeveralNodesIsThatOfTheOldest(t *testing.T) {
	host := Host{Addr: netip.MustParseAddr("172.18.0.11"), Masquerade: netip.MustParseAddr("169.254.169.3")}
	node := func(name string, days int, change func(*Node)) *Node {
		n := &Node{Name: name, Chassis: name, Created: time.Unix(0, 0).AddDate(0, 0, days), Hosts: []Host{host}}
		if change != nil {
			change(n)
		}
		return n
	}
	deleted, silent := func(n *Node) { n.Deleting = true }, func(n *Node) { n.Unreachable = true }
	ownZone, joining := func(n *Node) { n.Zone = n.Name }, func(n *Node) { n.Chassis = "" }
	for name, c := range map[string]struct {
		nodes     []*Node
		has       string // the nodes that have the address
		contested string // all that report it
	}{
		"one node":                      {[]*Node{node("n1", 1, nil)}, "n1", ""},
		"the older one":                 {[]*Node{node("n1", 2, nil), node("n2", 1, nil)}, "n2", "n2 n1"},
		"of one age, by name":           {[]*Node{node("n2", 1, nil), node("n1", 1, nil)}, "n1", "n1 n2"},
		"the oldest is being deleted":   {[]*Node{node("n1", 1, deleted), node("n2", 2, nil)}, "n2", "n2 n1"},
		"the oldest is silent":          {[]*Node{node("n1", 1, silent), node("n2", 2, nil)}, "n2", "n2 n1"},
		"all are being deleted":         {[]*Node{node("n1", 2, deleted), node("n2", 1, deleted)}, "n2", "n2 n1"},
		"only one, being deleted":       {[]*Node{node("n1", 1, deleted)}, "n1", ""},
		"the oldest has no chassis yet": {[]*Node{node("n1", 1, joining), node("n2", 2, nil)}, "n2", ""},
		"interconnect":                  {[]*Node{node("n1", 1, ownZone), node("n2", 2, ownZone)}, "n1 n2", "n1 n2"},
		"a zone of its own":             {[]*Node{node("n1", 1, ownZone), node("n2", 2, nil)}, "n1 n2", "n1 n2"},
	} {
		t.Run(name, func(t *testing.T) {
			of := HostsOf(c.nodes)
			var has, contested []string
			for _, n := range c.nodes {
				if len(of(n)) > 0 {
					has = append(has, n.Name)
				}
			}
			if got := strings.Join(has, " "); got != c.has {
				t.Errorf("%q have the address, want %q", got, c.has)
			}
			for _, h := range ContestedHosts(c.nodes) {
				for _, n := range h.Nodes {
					contested = append(contested, n.Name)
				}
			}
			if got := strings.Join(contested, " "); got != c.contested {
				t.Errorf("contested by %q, want %q", got, c.contested)
			}
		})
	}
}
