// SPDX-License-Identifier: Apache-2.0

package ipam

import "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"

// countClaims counts the claims for pools with a quota whose addresses no Service has: those of Services that wait, and
// those that the provider has not released yet. Without them, a namespace whose provider is slow could claim addresses
// again and again. One claim is counted with each address that Services have.
func (st *state) countClaims() {
	hasQuota := func(p *pool) bool { return p != nil && p.External != nil && p.Quota > 0 }
	if !st.claims.known() {
		return
	}
	held := map[string]bool{}
	for a := range st.holder {
		p := st.poolOf(a)
		if !hasQuota(p) || st.backing(a) != nil {
			continue
		}
		for _, service := range st.holders(a) {
			if name := world.ClaimName(p.Pool, st.services[service].UID); st.claims.ByName[name] != nil {
				held[name] = true
				break
			}
		}
	}
	for name, c := range st.claims.ByName {
		p := st.byName[c.Pool]
		if !hasQuota(p) || c.Ref != p.External.PoolRef || held[name] {
			continue
		}
		if st.backing(c.Addr) == c && st.poolOf(c.Addr) == p &&
			(st.taken(c.Addr) || st.quotaUsage.services[addrInNamespace{c.Addr, c.Namespace}] > 0) {
			continue
		}
		st.claims.counted[name] = true
		st.quotaUsage.waiting[quotaKey{p.Name, c.Namespace}]++
	}
}

// hasCounted reports whether countClaims has counted the claim of a Service for a pool.
func (st *state) hasCounted(p *pool, service int) bool {
	return len(st.claims.counted) > 0 && p.External != nil &&
		st.claims.counted[world.ClaimName(p.Pool, st.services[service].UID)]
}

// uncount takes the claim of a Service that asks for its address out of the usage of its namespace.
func (st *state) uncount(p *pool, service int) {
	if st.hasCounted(p, service) {
		name := world.ClaimName(p.Pool, st.services[service].UID)
		delete(st.claims.counted, name)
		st.quotaUsage.waiting[quotaKey{p.Name, st.claims.ByName[name].Namespace}]--
	}
}
