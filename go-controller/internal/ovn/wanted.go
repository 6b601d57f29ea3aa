// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// wanted are the newest plans, and which backends they put on which way back.
type wanted struct {
	plans map[world.Key]*plan.Service
	uses  map[rows.Return]map[netip.Addr]int
}

func newWanted() *wanted {
	return &wanted{plans: map[world.Key]*plan.Service{}, uses: map[rows.Return]map[netip.Addr]int{}}
}

// touched are the backends whose presence on a way back has to be looked at.
type touched map[rows.Return]map[netip.Addr]bool

func (t touched) note(r rows.Return, a netip.Addr) {
	if t[r] == nil {
		t[r] = map[netip.Addr]bool{}
	}
	t[r][a] = true
}

// set replaces the plan of a Service (nil for none) and notes its old and new backends.
func (w *wanted) set(key world.Key, p *plan.Service, t touched) {
	if old := w.plans[key]; old != nil {
		delete(w.plans, key)
		rows.Returns(old, func(r rows.Return, a netip.Addr) {
			t.note(r, a)
			if w.uses[r][a]--; w.uses[r][a] == 0 {
				delete(w.uses[r], a)
			}
			if len(w.uses[r]) == 0 {
				delete(w.uses, r)
			}
		})
	}
	if p == nil {
		return
	}
	w.plans[key] = p
	rows.Returns(p, func(r rows.Return, a netip.Addr) {
		t.note(r, a)
		if w.uses[r] == nil {
			w.uses[r] = map[netip.Addr]int{}
		}
		w.uses[r][a]++
	})
}
