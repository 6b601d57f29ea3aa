// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestGoldens(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) string {
		return text(ipam.Allocate(c.World, place.Compute(c.World).ShardOf))
	})
}

func reservedText(u ipam.PoolUsage) string {
	if u.Reserved4+u.Reserved6 == 0 {
		return ""
	}
	return fmt.Sprintf(" reserved %d+%d", u.Reserved4, u.Reserved6)
}

func text(a *ipam.Allocation) string {
	var out strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(a.Services), world.Key.Compare) {
		o := a.Services[k]
		fmt.Fprintf(&out, "%s:", k)
		for _, addr := range o.Addrs {
			fmt.Fprintf(&out, " %s", addr)
		}
		if len(o.Addrs) > 0 {
			fmt.Fprintf(&out, " from %s", cmp.Or(o.Pool, "no pool"))
		}
		if len(o.External) > 0 {
			fmt.Fprintf(&out, " and its own %v", o.External)
		}
		if !slices.Equal(o.HeldExternal, o.External) {
			fmt.Fprintf(&out, " and keeps the claim on %v", o.HeldExternal)
		}
		if o.Message != "" {
			fmt.Fprintf(&out, " (%s) %s", o.Reason, o.Message)
		}
		out.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Pools)) {
		u := a.Pools[name]
		fmt.Fprintf(&out, "pool %s: assigned %d+%d available %d+%d%s", name, u.Assigned4, u.Assigned6, u.Available4,
			u.Available6, reservedText(u))
		if !u.NextCooldownEnd.IsZero() {
			fmt.Fprintf(&out, " cooldown %d+%d, the first until %s", u.Cooldown4, u.Cooldown6, u.NextCooldownEnd.UTC().
				Format(time.RFC3339Nano))
		}
		out.WriteString("\n")
		for _, l := range u.Leases {
			fmt.Fprintf(&out, "  lease: %s %s", l.Addr, l.Service)
			if !l.Released.IsZero() {
				fmt.Fprintf(&out, " released %s", l.Released.UTC().Format(time.RFC3339))
			}
			out.WriteString("\n")
		}
		if u.Suspended.Reason != "" {
			fmt.Fprintf(&out, "  suspended: %s\n", u.Suspended.Message)
		}
		if u.ClaimReason != "" {
			fmt.Fprintf(&out, "  claims: (%s) %s\n", u.ClaimReason, u.ClaimMessage)
		}
		for _, p := range u.Problems {
			fmt.Fprintf(&out, "  problem: %s\n", p)
		}
	}
	for _, c := range a.Claims() {
		if c.InUse {
			fmt.Fprintf(&out, "claim %s: in use\n", c.Name)
		} else {
			fmt.Fprintf(&out, "claim %s: for %s from %s of %s\n", c.Name, c.Service, c.Ref, c.Pool)
		}
	}
	return out.String()
}
