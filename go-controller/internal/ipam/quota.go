// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// quotaUsage is what namespaces have of pools with a quota. A namespace has an address as long as one of its Services
// has it, or may get it back after an edit, because its status shows it.
type quotaUsage struct {
	// used counts the addresses of a pool that a namespace has. services counts the Services of a namespace that have an
	// address.
	used     map[quotaKey]int
	services map[addrInNamespace]int
	// reserved are the claims to addresses that the status of the Service shows or may still show, and that it gives up.
	// untilWritten counts those of a namespace. To share the address with them only, or to take it back, costs as much as
	// a free one. unwritten counts those of a Service in a pool.
	reserved     map[claim]bool
	untilWritten map[addrInNamespace]int
	unwritten    map[poolOfService]int
	// listed are the addresses that a Service of a namespace has besides another one, through spec.externalIPs, or would
	// have again after an edit, because its status still shows them.
	listed map[addrInNamespace]bool
	// waiting counts the addresses for which a namespace waits that a provider is to choose, and the claims that
	// countClaims counts.
	waiting map[quotaKey]int
}

// quotaKey identifies the usage of a pool by a namespace.
type quotaKey struct{ pool, namespace string }

// poolOfService is a pool and the index in services of a Service with addresses of it.
type poolOfService struct {
	pool    *pool
	service int
}

type addrInNamespace struct {
	addr      netip.Addr
	namespace string
}

func newQuotaUsage() *quotaUsage {
	return &quotaUsage{map[quotaKey]int{}, map[addrInNamespace]int{}, map[claim]bool{}, map[addrInNamespace]int{},
		map[poolOfService]int{}, map[addrInNamespace]bool{}, map[quotaKey]int{}}
}

// usage returns how many addresses of a pool a namespace has, or has claimed.
func (q *quotaUsage) usage(p *pool, namespace string) int {
	at := quotaKey{p.Name, namespace}
	return q.used[at] + q.waiting[at]
}

// count counts a Service that has an address of a pool, which may have a quota.
func (q *quotaUsage) count(p *pool, a netip.Addr, namespace string) {
	if p.Quota == 0 {
		return
	}
	at := addrInNamespace{a, namespace}
	if q.services[at]++; q.services[at] == 1 {
		q.used[quotaKey{p.Name, namespace}]++
	}
}

// exchange takes an address out of the usage of a namespace, because a Service gets another one for it. It stays taken
// in this pass, but a Service that shares it now must count: when the next pass begins, it has it alone. p is nil for
// an address in no pool.
func (q *quotaUsage) exchange(p *pool, a netip.Addr, namespace string) {
	at := addrInNamespace{a, namespace}
	if p == nil || p.Quota == 0 || q.listed[at] {
		return
	}
	if q.services[at]--; q.services[at] == 0 {
		q.used[quotaKey{p.Name, namespace}]--
	}
}

// release takes an address out of the usage of a namespace that no Service has any more.
func (q *quotaUsage) release(p *pool, a netip.Addr, namespace string) {
	if p.Quota > 0 {
		q.used[quotaKey{p.Name, namespace}]--
		delete(q.services, addrInNamespace{a, namespace})
	}
}

// markListed records that a Service of a namespace has an address besides another one, or may take it back. p is nil
// for an address in no pool.
func (q *quotaUsage) markListed(p *pool, a netip.Addr, namespace string) {
	if p != nil && p.Quota > 0 {
		q.listed[addrInNamespace{a, namespace}] = true
	}
}

// reserve records that a Service of a namespace gives up an address that its status shows. p is nil for an address in
// no pool.
func (q *quotaUsage) reserve(p *pool, c claim, namespace string) {
	q.reserved[c] = true
	q.untilWritten[addrInNamespace{c.addr, namespace}]++
	q.unwritten[poolOfService{p, c.service}]++
}

// keep undoes reserve, and reports whether that was called.
func (q *quotaUsage) keep(p *pool, c claim, namespace string) bool {
	if !q.reserved[c] {
		return false
	}
	delete(q.reserved, c)
	q.untilWritten[addrInNamespace{c.addr, namespace}]--
	q.unwritten[poolOfService{p, c.service}]--
	return true
}

// staysIn reports whether a Service of a namespace has an address of a pool with a quota, and keeps it.
func (q *quotaUsage) staysIn(a netip.Addr, namespace string) bool {
	at := addrInNamespace{a, namespace}
	return q.services[at] > q.untilWritten[at]
}

// withinQuota reports whether the quota allows a Service that had some addresses and gets others to take n more from
// the pool. An address that replaces one of the same pool does not count, unless a Service of the namespace keeps that
// one because spec.externalIPs lists it, or may still take it back. One that the namespace does not have yet counts as
// long as the Service has other ones that its status shows or may still show: a tenant can write a Service whose status
// is never stored, and request one address after the other.
func (st *state) withinQuota(p *pool, service int, had, gets perFamily, n int) bool {
	if p.Quota == 0 {
		return true
	}
	namespace, isNew := st.services[service].Key.Namespace, n > 0
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		before, after := *had.of(f), *gets.of(f)
		if before == after {
			continue
		}
		if before.IsValid() && st.poolOf(before) == p && !st.quotaUsage.listed[addrInNamespace{before, namespace}] &&
			st.isSoleInNamespace(before, service) {
			n--
		}
		if after.IsValid() && st.poolOf(after) == p && !st.quotaUsage.staysIn(after, namespace) {
			n++
		}
		isNew = isNew || after.IsValid() && st.poolOf(after) == p &&
			st.quotaUsage.services[addrInNamespace{after, namespace}] == 0
	}
	if n <= 0 && (!isNew || st.quotaUsage.unwritten[poolOfService{p, service}] == 0) {
		return true
	}
	if st.hasCounted(p, service) {
		n-- // The claim is the Service's own.
	}
	return st.quotaUsage.usage(p, namespace)+n <= p.Quota
}

// isSoleInNamespace reports whether no other Service in the namespace has an address of a pool with a quota.
func (st *state) isSoleInNamespace(a netip.Addr, service int) bool {
	n := st.quotaUsage.services[addrInNamespace{a, st.services[service].Key.Namespace}]
	return n == 0 || n == 1 && st.holds(a, service)
}

// quotaMessage describes the usage of a pool with a quota by a namespace.
func (st *state) quotaMessage(p *pool, s *world.Service) string {
	has := "has"
	if st.quotaUsage.waiting[quotaKey{p.Name, s.Key.Namespace}] > 0 {
		has = "has or has claimed"
	}
	return fmt.Sprintf("pool %q: namespace %q %s %s, and its quota is %d (spec.quotaPerNamespace)", p.Name,
		s.Key.Namespace, has, world.Count(st.quotaUsage.usage(p, s.Key.Namespace), "address"), p.Quota)
}
