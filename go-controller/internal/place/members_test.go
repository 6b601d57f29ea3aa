// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"testing"
)

// A condition has room for a limited number of names.
func TestExcludedNamesAreLimited(t *testing.T) {
	for n, want := range map[int]string{
		1:  "n01",
		3:  "n01, n02, n03",
		18: "n01, n02, n03, n04, n05, n06, n07, n08, n09, n10, n11, n12, n13, n14, n15, n16 and 2 more",
	} {
		var d Domain
		for i := range n {
			d.exclude(fmt.Sprintf("n%02d", i+1), ReasonNotAttached, "")
		}
		if got := d.excludedNames(); got != want {
			t.Errorf("%d nodes: %q, want %q", n, got, want)
		}
	}
}
