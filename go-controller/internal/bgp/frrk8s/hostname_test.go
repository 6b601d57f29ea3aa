// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A label that several nodes have stands for the one that has it as its name, then for one whose name differs by a
// domain, then for the oldest, whatever the order in which nodes are listed.
func TestLabelStandsForOneNode(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for name, nodes := range map[string][]*world.Node{ // the first one is that of the label
		"name":   {{Name: "b", Created: at(3)}, {Name: "b.example", Created: at(1)}, {Name: "a", Created: at(2)}},
		"domain": {{Name: "b.example", Created: at(3)}, {Name: "a", Created: at(1)}, {Name: "c", Created: at(2)}},
		"age":    {{Name: "y", Created: at(1)}, {Name: "x", Created: at(2)}, {Name: "z", Created: at(3)}},
		"order":  {{Name: "x", Created: at(1)}, {Name: "y", Created: at(1)}},
	} {
		for _, n := range nodes {
			n.Hostname = "b"
		}
		other := &world.Node{Name: "other", Hostname: "other"}
		listed := append(slices.Clone(nodes), other)
		for range 2 {
			h := newHostnames(listed)
			for _, n := range nodes {
				if owns := h.problem(n) == ""; owns != (n == nodes[0]) || !h.sharesLabel(n.Name) {
					t.Errorf("%s: node %s owns the label: %t, alone: %t", name, n.Name, owns, h.sharesLabel(n.Name))
				}
			}
			if h.problem(other) != "" || h.sharesLabel("other") {
				t.Errorf("%s: %q, alone: %t", name, h.problem(other), h.sharesLabel("other"))
			}
			slices.Reverse(listed)
		}
	}
}
