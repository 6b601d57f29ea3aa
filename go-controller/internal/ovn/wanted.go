// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// wanted are the newest plans.
type wanted struct {
	plans map[world.Key]*plan.Service
	// nodes are the plans that have backends on a node, once each, by its name. What the
	// node's rows need is found in them when it is asked for: it is asked for seldom, and to
	// keep it would take more memory than anything else here.
	nodes map[string][]*plan.Service
	// apart are wide plans by node, while the rows of nodes are made.
	apart map[*plan.Service]map[string][]rows.Behind
	// unsure are the nodes whose rows may not be what their backends need.
	unsure map[string]bool
}

func newWanted() *wanted {
	return &wanted{plans: map[world.Key]*plan.Service{}, nodes: map[string][]*plan.Service{}, unsure: map[string]bool{},
		apart: map[*plan.Service]map[string][]rows.Behind{}}
}

// set replaces the plan of a Service (nil for none), which nobody changes any more.
func (w *wanted) set(key world.Key, p *plan.Service) {
	old := w.plans[key]
	if old == p {
		return
	}
	before, after := byNode(old), byNode(p)
	for node, needs := range before {
		if !sameNeeds(needs, after[node]) {
			w.unsure[node] = true
		}
		w.drop(node, old)
	}
	delete(w.plans, key)
	if p != nil {
		w.plans[key] = p
	}
	for node := range after {
		if before[node] == nil {
			w.unsure[node] = true
		}
		w.nodes[node] = append(w.nodes[node], p)
	}
}

// drop takes a plan from a node.
func (w *wanted) drop(node string, p *plan.Service) {
	rest := slices.DeleteFunc(w.nodes[node], func(of *plan.Service) bool { return of == p })
	if w.nodes[node] = rest; len(rest) == 0 {
		delete(w.nodes, node)
	}
}

// byNode are the backends of a plan on each node, as often as the plan has them.
func byNode(p *plan.Service) map[string][]rows.Behind {
	if p == nil {
		return nil
	}
	n := map[string]int{}
	rows.Returns(p, func(node string, _ rows.Behind) { n[node]++ })
	all := make(map[string][]rows.Behind, len(n))
	rows.Returns(p, func(node string, b rows.Behind) {
		list := all[node]
		if list == nil {
			list = make([]rows.Behind, 0, n[node])
		}
		all[node] = append(list, b)
	})
	return all
}

// sameNeeds reports whether two lists have the same backends, however often.
func sameNeeds(a, b []rows.Behind) bool {
	if slices.Equal(a, b) {
		return true
	}
	distinct := func(list []rows.Behind) []rows.Behind {
		return slices.Compact(slices.SortedFunc(slices.Values(list), rows.Behind.Compare))
	}
	return slices.Equal(distinct(a), distinct(b))
}

// wideBackends is from how many backends on a plan is taken apart once for all its nodes, and not for each
// of them: that would be quadratic. Taken apart, all plans together would take more memory than anything
// else here.
const wideBackends = 2000

// on are the backends on a node, each as often as plans have it.
func (w *wanted) on(node string) (behind []rows.Behind) {
	for _, p := range w.nodes[node] {
		if isWide(p) {
			if w.apart[p] == nil {
				w.apart[p] = byNode(p)
			}
			if behind == nil {
				behind = slices.Clip(w.apart[p][node])
			} else {
				behind = append(behind, w.apart[p][node]...)
			}
			continue
		}
		rows.Returns(p, func(of string, b rows.Behind) {
			if of == node {
				behind = append(behind, b)
			}
		})
	}
	return behind
}

func isWide(p *plan.Service) bool {
	n := 0
	for i := range p.Listeners {
		if n += len(p.Listeners[i].Backends) + len(p.Listeners[i].Draining); n >= wideBackends {
			return true
		}
	}
	return false
}

// behind tells whether a Service has backends on a node.
func behind(p *plan.Service, node string) (yes bool) {
	rows.Returns(p, func(of string, _ rows.Behind) { yes = yes || of == node })
	return yes
}
