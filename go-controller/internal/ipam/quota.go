// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// account is a namespace's share of a pool.
type account struct{ pool, namespace string }

// within reports whether a Service that had some addresses and gets others may have n
// more of the pool. An address given in exchange for one of the same pool is free.
func (l *ledger) within(p *pool, s *world.Service, had, gets perFamily, n int) bool {
	if p.Quota == 0 {
		return true
	}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		before, after := *had.of(f), *gets.of(f)
		if before == after {
			continue
		}
		if before.IsValid() && l.of(before) == p && l.alone(before, s) {
			n--
		}
		if after.IsValid() && l.of(after) == p && l.alone(after, s) {
			n++
		}
	}
	return n <= 0 || l.spent[account{p.Name, s.Key.Namespace}]+n <= p.Quota
}

// overdrawn says what a namespace has of a pool with a quota.
func (l *ledger) overdrawn(p *pool, s *world.Service) string {
	return fmt.Sprintf("pool %q: namespace %q has %d of the %d addresses that it may have (spec.quotaPerNamespace)",
		p.Name, s.Key.Namespace, l.spent[account{p.Name, s.Key.Namespace}], p.Quota)
}
