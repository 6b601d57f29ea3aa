// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Add and Remove handle the many small changes between two calls of Allocate at little cost: Services that are
// added or deleted and affect no other Service. They do not update Pools.

// Add allocates for a Service that was added after the Allocation was computed and has no address yet, as if it
// were the youngest of all, and records the result. Allocate of a snapshot with this Service would confirm the
// result. If it returns false, the Allocation is invalid and must be recomputed.
func (a *Allocation) Add(s *world.Service) (Outcome, bool) {
	_, known := a.Services[s.Key]
	// A pending Service with the same sharing key may share what this one gets.
	if known || len(s.Assigned)+len(s.AssignedHosts)+len(s.Given)+len(s.ExternalIPs) > 0 ||
		a.hasPending && s.SharingKey != "" {
		return Outcome{}, false
	}
	a.allocator.services = append(a.allocator.services, s)
	asked := a.allocator.claims.asked
	o, waits := a.allocator.allocate(len(a.allocator.services)-1, ownership{}, external{})
	a.record(s, o, waits)
	return o, !a.allocator.cursorExhausted && a.allocator.claims.asked == asked
}

// Remove removes a Service that no longer exists. If it returns false, the Allocation is invalid: the addresses
// of the Service are not its own alone, or enter a cooldown, or other Services may be waiting for them.
func (a *Allocation) Remove(s *world.Service) bool {
	o, known := a.Services[s.Key]
	if !known || a.hasPending || s.SharingKey != "" || o.Reason != "" || len(o.HeldExternal) > 0 {
		return false
	}
	for _, addr := range o.Addrs {
		if !a.allocator.release(addr, s) {
			return false
		}
	}
	delete(a.Services, s.Key)
	return true
}

// record records an outcome, and whether the Service waits until others release addresses, or would take those back
// that another client has cleared.
func (a *Allocation) record(s *world.Service, o Outcome, waits bool) {
	a.Services[s.Key] = o
	a.hasPending = a.hasPending || waits || s.IsCleared() && !slices.Equal(o.Addrs, s.Given)
}

// release frees an address that only one Service has, and returns false if that is not the case. The address is
// available again to the next Allocation: the cursors of this one have already passed it.
func (st *state) release(addr netip.Addr, s *world.Service) bool {
	first, taken := st.holder[addr]
	p := st.poolOf(addr)
	if !taken || st.services[first].Key != s.Key || st.sharers[addr] != nil || st.ineligible[claim{addr, first}] ||
		p == nil || p.External != nil ||
		p.ReuseDelay > 0 {
		return false
	}
	if _, kept := st.reservations[addr]; kept {
		return false
	}
	delete(st.holder, addr)
	if st.load != nil {
		if load := st.loadOf(p.Name, addr); load != &st.unplaced {
			*load--
		}
	}
	st.quotaUsage.release(p, addr, s.Key.Namespace)
	p.freeList(world.FamilyOf(addr)).used--
	u := st.use[p.Name]
	if world.FamilyOf(addr) == world.IPv4 {
		u.Assigned4--
	} else {
		u.Assigned6--
	}
	st.use[p.Name] = u
	return true
}
