// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestPodSubnetsOf(t *testing.T) {
	for name, c := range map[string]struct{ claims, want string }{
		"distinct":       {"10.0.1.0/24 | 10.0.2.0/24 fd00:2::/64 | 10.0.3.0/24", "same"},
		"of two lengths": {"10.0.1.0/24 | 10.0.2.0/24 | 10.1.0.0/22", "same"},
		"narrower, of others": {"10.0.1.0/24 | 10.0.2.0/24 10.0.1.0/25 10.0.1.128/25 | 10.0.3.0/24",
			"10.0.1.0/24 | 10.0.2.0/24 | 10.0.3.0/24"},
		"narrower, of its own": {"10.0.1.0/24 | 10.0.2.0/24 10.0.2.0/25 | 10.0.3.0/24", "same"},
		"wider": {"10.0.1.0/24 | 10.0.2.0/24 10.0.0.0/16 | 10.0.3.0/24",
			"10.0.1.0/24 | 10.0.2.0/24 | 10.0.3.0/24"},
		"narrower, of IPv6":      {"fd00:1::/64 | fd00:2::/64 fd00:1::/65 |", "fd00:1::/64 | fd00:2::/64 |"},
		"as often, so undecided": {"10.0.1.0/24 | 10.0.1.0/25 |", "same"},
		"the same, so undecided": {"10.0.1.0/24 | 10.0.1.0/24 | 10.0.3.0/24", "same"},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []*Node
			for i, claims := range strings.Split(c.claims, "|") {
				n := &Node{Name: fmt.Sprint("n", i)}
				for _, p := range strings.Fields(claims) {
					n.PodSubnets = append(n.PodSubnets, netip.MustParsePrefix(p))
				}
				nodes = append(nodes, n)
			}
			if c.want == "same" {
				c.want = c.claims
			}
			of := PodSubnetsOf(nodes)
			for i, want := range strings.Split(c.want, "|") {
				if got := strings.Trim(fmt.Sprint(of(nodes[i])), "[]"); got != strings.TrimSpace(want) {
					t.Errorf("%s: %s, want %s", nodes[i].Name, got, want)
				}
			}
		})
	}
}
