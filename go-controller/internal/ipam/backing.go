// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The address of a Service in an external pool is backed while the provider has it for a claim that stays as long as
// the Service has it. Otherwise the provider may give it again. It may do so to another Service here: the claim of that
// one has the address, too, and does not back it.

// backing returns the claim that backs an address, rather one that is not being deleted; nil if there is none.
func (st *state) backing(a netip.Addr) *world.Claim {
	var deleting *world.Claim
	for _, c := range st.claims.byAddr[a] {
		switch {
		case !st.backs(c):
		case !c.Deleting:
			return c
		case deleting == nil:
			deleting = c
		}
	}
	return deleting
}

// backs reports whether a claim backs its address for the Services that have it: it is the claim of one of them, or of
// one that shared the address with them, and is gone or has another one now. The claim of a Service that waits for its
// address does not: the provider has given that twice.
func (st *state) backs(c *world.Claim) bool {
	service, exists := st.claims.services[c.UID]
	if !exists || !st.taken(c.Addr) || st.holds(c.Addr, service) {
		return true
	}
	s := st.services[service]
	return s.RequestedPool != c.Pool && slices.ContainsFunc(s.Shown(), func(has netip.Addr) bool {
		return has != c.Addr && world.FamilyOf(has) == world.FamilyOf(c.Addr)
	})
}

// unbacked reports whether an address in use is in an external pool, and no claim that stays backs it.
func (st *state) unbacked(a netip.Addr) bool {
	if !st.claims.known() {
		return false
	}
	if p := st.poolOf(a); p == nil || p.External == nil {
		return false
	}
	c := st.backing(a)
	return c == nil || c.Deleting
}

// unbackedMessage describes why no claim backs an address of a Service.
func (st *state) unbackedMessage(p *pool, s *world.Service, a netip.Addr) string {
	c, subject, why := st.backing(a), "its IPAddressClaim", "does not exist"
	if c == nil { // Another spec.externalPool since gives another name.
		for _, own := range st.claims.byUID[s.UID] {
			if own.Pool == p.Name && (c == nil || own.Name == world.ClaimName(p.Pool, s.UID)) {
				c = own
			}
		}
	}
	if c != nil {
		subject = st.claims.named(c.Name)
		switch {
		case c.Deleting:
			why = "is being deleted"
		case c.Problem != "":
			why = "has lost it: " + c.Problem
		case c.Addr.IsValid():
			why = fmt.Sprintf("has address %s now", c.Addr)
		default:
			why = "has no address any more"
		}
	}
	consequence := "so the provider may give the address to others"
	if slices.ContainsFunc(st.claims.byAddr[a], func(c *world.Claim) bool { return !st.backs(c) }) {
		consequence = "and the provider has given the address to another claim"
	}
	return fmt.Sprintf("address %s: %s %s, %s", a, subject, why, consequence)
}
