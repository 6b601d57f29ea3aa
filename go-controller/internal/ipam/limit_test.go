// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// externalsOf returns a Service that lists n addresses of the pool of allocateShared, from the given one on.
func externalsOf(name, first string, n int) *world.Service {
	s := &world.Service{Key: world.Key{Namespace: "one", Name: name}, Created: sharedAt,
		Families: []world.Family{world.IPv4}}
	for a := netip.MustParseAddr(first); len(s.ExternalIPs) < n; a = a.Next() {
		s.ExternalIPs = append(s.ExternalIPs, a)
	}
	return s
}

// Addresses of spec.externalIPs that a status may still show count in the limit of a namespace, once each, whether the
// Service still lists them or not. Otherwise a tenant would have twice as many after an edit in time.
func TestUnsettledExternalsCount(t *testing.T) {
	const n = 6_000
	before := externalsOf("web", "10.60.0.1", n).ExternalIPs
	for name, c := range map[string]struct {
		first string
		held  bool // according to the last decision
		want  int
	}{
		"others instead":         {"10.60.100.1", false, maxExternals - n},
		"the same":               {"10.60.0.1", true, n},
		"the same, not held yet": {"10.60.0.1", false, n},
	} {
		web, late := externalsOf("web", c.first, n), externalsOf("late", "10.60.200.1", n)
		late.Created = sharedAt.Add(time.Minute)
		w := snapshotShared(web, late)
		w.Unsettled = map[world.Key][]netip.Addr{web.Key: slices.Concat(before, before)}
		if c.held {
			w.HeldExternalIPs = map[world.Key][]netip.Addr{web.Key: before}
		}
		d := Allocate(w, noShard)
		if got := len(d.Services[web.Key].HeldExternal); got != c.want {
			t.Errorf("%s: %d addresses, want %d", name, got, c.want)
		}
		first, second := d.Services[web.Key].HeldExternal, d.Services[late.Key].HeldExternal
		if c.first == "10.60.0.1" && len(first)+len(second) != maxExternals {
			t.Errorf("%s: %d and %d addresses, want %d in all", name, len(first), len(second), maxExternals)
		}
	}
}
