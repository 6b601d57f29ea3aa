// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Amending serves the many small changes between two Allocations at little cost: of
// Services that come and go plainly. Pools keeps what it said.

// Admit decides about a Service that came after the Allocation was made and has no
// address yet, as if it were the youngest of all, and takes what it gives. What it gives
// is what an Allocate of the world with this Service would confirm. With false the
// Allocation is spoilt: only a new one can tell.
func (a *Allocation) Admit(s *world.Service) (Outcome, bool) {
	_, known := a.Services[s.Key]
	if known || len(s.Assigned) > 0 || len(s.ExternalIPs) > 0 || a.waiting && s.SharingKey != "" { // who waits may share what this one is given
		return Outcome{}, false
	}
	a.desk.services = append(a.desk.services, s)
	o := a.desk.serve(len(a.desk.services)-1, assets{}, external{})
	a.note(s, o)
	return o, !a.desk.dry
}

// Dismiss takes a Service out that exists no more. With false the Allocation is spoilt:
// what the Service had is not its own alone, or comes to rest, or others may wait for it.
func (a *Allocation) Dismiss(s *world.Service) bool {
	o, known := a.Services[s.Key]
	if !known || a.waiting || s.SharingKey != "" || o.Reason != "" || len(o.External) > 0 {
		return false
	}
	for _, addr := range o.Addrs {
		if !a.desk.release(addr, s) {
			return false
		}
	}
	delete(a.Services, s.Key)
	return true
}

// note records an outcome. Who lacks something waits for others to leave.
func (a *Allocation) note(s *world.Service, o Outcome) {
	a.Services[s.Key] = o
	a.waiting = a.waiting || o.Reason != ""
}

// release makes an address free that one Service alone has; false if that is not so. It
// is given again by the next Allocation: the cursors of this one are past it.
func (l *ledger) release(addr netip.Addr, s *world.Service) bool {
	first, taken := l.holder[addr]
	p := l.of(addr)
	if !taken || l.services[first].Key != s.Key || len(l.sharers[addr]) > 0 || l.odd[claim{addr, first}] || p == nil || p.ReuseDelay > 0 {
		return false
	}
	if _, kept := l.kept[addr]; kept {
		return false
	}
	delete(l.holder, addr)
	if l.load != nil {
		if load := l.loadOf(p.Name, addr); load != &l.unplaced {
			*load--
		}
	}
	if p.Quota > 0 {
		l.spent[account{p.Name, s.Key.Namespace}]--
	}
	p.stock(world.FamilyOf(addr)).used--
	u := l.use[p.Name]
	if world.FamilyOf(addr) == world.IPv4 {
		u.Assigned4--
	} else {
		u.Assigned6--
	}
	l.use[p.Name] = u
	return true
}
