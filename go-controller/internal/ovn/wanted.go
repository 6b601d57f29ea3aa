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
	// unsure are the nodes whose rows may not be what their backends need.
	unsure map[string]bool
}

func newWanted() *wanted {
	return &wanted{plans: map[world.Key]*plan.Service{}, nodes: map[string][]*plan.Service{}, unsure: map[string]bool{}}
}

// set replaces the plan of a Service (nil for none), which nobody changes any more.
func (w *wanted) set(key world.Key, p *plan.Service) {
	old := w.plans[key]
	if old == p {
		return
	}
	before := needs(old)
	if old != nil {
		after := needs(p)
		left := map[string]bool{}
		for n := range before {
			if !after[n] {
				w.unsure[n.node] = true
			}
			if !left[n.node] { // A plan needs much of a node, and is there once: to look for it is to go through all plans there.
				left[n.node] = true
				w.drop(n.node, old)
			}
		}
	}
	if p == nil {
		delete(w.plans, key)
		return
	}
	w.plans[key] = p
	rows.Returns(p, func(node string, b rows.Behind, port rows.Port) {
		if !before[need{node, b, port}] {
			w.unsure[node] = true
		}
		// Another backend on the node may have put the plan there: then it is the last one.
		if have := w.nodes[node]; len(have) == 0 || have[len(have)-1] != p {
			w.nodes[node] = append(have, p)
		}
	})
}

// drop takes a plan from a node.
func (w *wanted) drop(node string, p *plan.Service) {
	rest := slices.DeleteFunc(w.nodes[node], func(of *plan.Service) bool { return of == p })
	if w.nodes[node] = rest; len(rest) == 0 {
		delete(w.nodes, node)
	}
}

// need is what a plan needs of a node.
type need struct {
	node   string
	behind rows.Behind
	port   rows.Port
}

func needs(p *plan.Service) map[need]bool {
	if p == nil {
		return nil
	}
	all := map[need]bool{}
	rows.Returns(p, func(node string, b rows.Behind, port rows.Port) { all[need{node, b, port}] = true })
	return all
}

// on are the backends on a node, each as often as plans have it, and the ports of those
// that are pods.
func (w *wanted) on(node string) (behind []rows.Behind, ports []rows.Port) {
	for _, p := range w.nodes[node] {
		rows.Returns(p, func(of string, b rows.Behind, port rows.Port) {
			if of != node {
				return
			}
			behind = append(behind, b)
			if !b.Host && !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		})
	}
	return behind, ports
}

// behind tells whether a Service has backends on a node.
func behind(p *plan.Service, node string) (yes bool) {
	rows.Returns(p, func(of string, _ rows.Behind, _ rows.Port) { yes = yes || of == node })
	return yes
}
