// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// quotaKey identifies the usage of a pool by a namespace.
type quotaKey struct{ pool, namespace string }

// withinQuota reports whether the quota allows a Service that had some addresses and gets others to take n more from
// the pool. An address that replaces one of the same pool does not count, unless a Service of the namespace keeps that
// one because spec.externalIPs lists it, or may still take it back.
func (st *state) withinQuota(p *pool, service int, had, gets perFamily, n int) bool {
	if p.Quota == 0 {
		return true
	}
	namespace := st.services[service].Key.Namespace
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		before, after := *had.of(f), *gets.of(f)
		if before == after {
			continue
		}
		if before.IsValid() && st.poolOf(before) == p && !st.listedIn[addrInNamespace{before, namespace}] &&
			st.isSoleInNamespace(before, service) {
			n--
		}
		if after.IsValid() && st.poolOf(after) == p && !st.staysIn(after, namespace) {
			n++
		}
	}
	return n <= 0 || st.quotaUsed[quotaKey{p.Name, namespace}]+n <= p.Quota
}

// quotaMessage describes the usage of a pool with a quota by a namespace.
func (st *state) quotaMessage(p *pool, s *world.Service) string {
	return fmt.Sprintf("pool %q: namespace %q has %s, and its quota is %d (spec.quotaPerNamespace)", p.Name,
		s.Key.Namespace, world.Count(st.quotaUsed[quotaKey{p.Name, s.Key.Namespace}], "address"), p.Quota)
}
