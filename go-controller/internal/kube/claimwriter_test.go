// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// What is done with a claim, by what is wanted and what is there. An address that a Service may have is never released.
func TestClaimChanges(t *testing.T) {
	needed, inUse := &world.WantedClaim{Name: "c"}, &world.WantedClaim{Name: "c", InUse: true}
	kept, bare := &world.Claim{Name: "c", Kept: true}, &world.Claim{Name: "c"}
	leaving, left := &world.Claim{Name: "c", Kept: true, Deleting: true}, &world.Claim{Name: "c", Deleting: true}
	for _, c := range []struct {
		want *world.WantedClaim
		have *world.Claim
		verb claimVerb
	}{
		{needed, nil, createClaim}, {inUse, nil, ""}, {nil, kept, deleteClaim}, {nil, bare, deleteClaim},
		{needed, kept, ""}, {inUse, kept, ""}, {needed, bare, keepClaim}, {inUse, bare, keepClaim},
		{nil, leaving, releaseClaim}, {needed, leaving, releaseClaim}, {inUse, leaving, ""},
		{nil, left, ""}, {needed, left, ""}, {inUse, left, ""},
	} {
		want, have := map[string]*world.WantedClaim{}, map[string]*world.Claim{}
		if c.want != nil {
			want["c"] = c.want
		}
		if c.have != nil {
			have["c"] = c.have
		}
		got := claimVerb("")
		if changes := claimChanges(want, have); len(changes) > 0 {
			got = changes[0].verb
		}
		if got != c.verb {
			t.Errorf("wanted %s, there is %+v: %q, want %q", fmt.Sprint(c.want), c.have, got, c.verb)
		}
	}
}
