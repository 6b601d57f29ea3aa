// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"testing"
)

// nodesWithTunnels returns nodes n1, n2 and so on, of which the first three are gateways, with their reports.
func nodesWithTunnels(reports ...*Tunnels) ([]*Node, []*Domain) {
	var nodes []*Node
	for i, r := range reports {
		number := string(rune('1' + i))
		nodes = append(nodes, &Node{Name: "n" + number, Chassis: "c" + number, Tunnels: r})
	}
	return nodes, []*Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1", "n2", "n3"}, 1: {"n3", "n1", "n2"}}}}
}

func down(chassis ...string) *Tunnels { return &Tunnels{Down: chassis} }

func TestTunnelsDown(t *testing.T) {
	t.Parallel()
	up := &Tunnels{}
	for _, c := range []struct {
		name    string
		reports []*Tunnels
		want    []string
	}{
		{"all up", []*Tunnels{up, up, up, up}, nil},
		{"no reports", []*Tunnels{nil, nil, nil, nil}, nil},
		{"a gateway that reaches none", []*Tunnels{{AllDown: 3}, down("c1"), down("c1"), up}, []string{"n1"}},
		{"a node that reaches no gateway", []*Tunnels{down("c4"), down("c4"), down("c4"), {AllDown: 3}}, []string{"n4"}},
		{"one without a guard", []*Tunnels{down("c4"), down("c4"), down("c4"), nil}, []string{"n4"}},
		{"two of three gateways", []*Tunnels{down("c4"), up, down("c4"), up}, []string{"n4"}},
		{"one of three gateways", []*Tunnels{down("c4"), up, up, up}, nil},
		{"the only gateway that reports", []*Tunnels{down("c4"), nil, nil, nil}, nil},
		{"two gateways that do not reach each other", []*Tunnels{down("c2"), down("c1"), up, up}, nil},
		{"nodes that are no gateways", []*Tunnels{up, up, up, down("c1"), down("c1"), down("c1")}, nil},
		{"a node that reaches none, about others", []*Tunnels{down("c4"), {AllDown: 3, Down: []string{"c4"}}, up, up},
			[]string{"n2"}},
		{"a node about itself, as if it were another", []*Tunnels{down("c1"), down("c1"), up, up}, nil},
		{"a lie about all", []*Tunnels{down("c2", "c3", "c4", "c5"), up, up, up, up}, nil},
	} {
		nodes, domains := nodesWithTunnels(c.reports...)
		if got := slices.Sorted(maps.Keys(TunnelsDown(nodes, domains))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A node may be dead if no other gateway reaches it and it does not report that itself.
func TestUnansweredNodes(t *testing.T) {
	t.Parallel()
	up := &Tunnels{}
	for _, c := range []struct {
		name    string
		reports []*Tunnels
		want    bool
	}{
		{"none reaches it", []*Tunnels{down("c4"), down("c4"), down("c4"), up}, true},
		{"none reaches it, and it has no guard", []*Tunnels{down("c4"), down("c4"), down("c4"), nil}, true},
		{"one reaches it", []*Tunnels{down("c4"), up, down("c4"), up}, false},
		{"it reports that its tunnels are cut", []*Tunnels{down("c4"), down("c4"), down("c4"), {AllDown: 3}}, false},
		{"it reports some of them", []*Tunnels{down("c4"), down("c4"), down("c4"), down("c1", "c2", "c3")}, false},
	} {
		nodes, domains := nodesWithTunnels(c.reports...)
		if got := TunnelsDown(nodes, domains)["n4"]; got.Why == "" || got.Unanswered != c.want {
			t.Errorf("%s: %+v, want unanswered %v", c.name, got, c.want)
		}
	}
}

// Whatever one node reports, no statement about another node follows from it alone.
func TestOneReportBlamesNoOtherNode(t *testing.T) {
	t.Parallel()
	choices := []*Tunnels{nil, {}, down("c1"), down("c2"), down("c3", "c4"), down("c1", "c2", "c3", "c4"), {AllDown: 3}}
	for liar := range 4 {
		for _, lie := range choices {
			reports := []*Tunnels{{}, {}, {}, {}}
			reports[liar] = lie
			nodes, domains := nodesWithTunnels(reports...)
			for name := range TunnelsDown(nodes, domains) {
				if name != nodes[liar].Name {
					t.Errorf("%s reports %+v, which blames %s", nodes[liar].Name, lie, name)
				}
			}
		}
	}
}

// A node whose kubelet is silent may be dead, which other messages say, and its report does not count.
func TestTunnelsOfADeadNodeAreNotReported(t *testing.T) {
	t.Parallel()
	nodes, domains := nodesWithTunnels(down("c3", "c4"), down("c3", "c4"), &Tunnels{AllDown: 3}, nil)
	nodes[2].Unreachable = true
	if got := slices.Sorted(maps.Keys(TunnelsDown(nodes, domains))); !slices.Equal(got, []string{"n4"}) {
		t.Errorf("%q, want n4 only", got)
	}
}

func TestThroughTunnel(t *testing.T) {
	t.Parallel()
	is := map[string]TunnelFault{"n3": {Why: "why"}}
	for _, c := range []struct{ gateway, endpoint, want string }{
		{"n1", "n2", ""}, {"n1", "n3", "n3"}, {"n3", "n1", "n3"}, {"n3", "n3", ""}, {"", "n3", "n3"}, {"", "n1", ""},
	} {
		if got := ThroughTunnel(is, c.gateway, c.endpoint); got != c.want {
			t.Errorf("from %q to %q: %q, want %q", c.gateway, c.endpoint, got, c.want)
		}
	}
}
