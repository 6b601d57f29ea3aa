// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"testing"
)

// A message has at most three causes, each with at most three nodes, and the numbers of the others.
func TestCausesAreBounded(t *testing.T) {
	var same, different []ExcludedNode
	for i := range 5 {
		name := fmt.Sprintf("n%d", i)
		same = append(same, ExcludedNode{name, ReasonFaulty, fmt.Sprintf("node %q reports: no carrier", name)})
		different = append(different, ExcludedNode{name, ReasonFaulty, fmt.Sprintf("node %q reports: fault %d", name, i)})
	}
	enough := ExcludedNode{"n8", ReasonEnoughGateways, "every shard has enough"}
	for want, excluded := range map[string][]ExcludedNode{
		`node "n0" reports: no carrier`:                          same[:1],
		`node "n0", "n1" reports: no carrier`:                    same[:2],
		`node "n0", "n1", "n2" and 2 more reports: no carrier`:   same,
		`node "n0" reports: fault 0; node "n1" reports: fault 1`: different[:2],
		"every shard has enough":                                 {enough, enough},
		`node "n0" reports: fault 0; every shard has enough`:     {different[0], enough},
		`node "n0" reports: fault 0; node "n1" reports: fault 1; ` +
			`node "n2" reports: fault 2; 2 other causes`: different,
	} {
		if got := causes(excluded); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
