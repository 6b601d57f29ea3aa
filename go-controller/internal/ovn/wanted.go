// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// wanted are the newest plans.
type wanted struct {
	plans map[world.Key]*plan.Service
	// nodes are the plans that have backends on a node, by its name. What the node's rows
	// need is found in them when it is asked for: it is asked for seldom, and to keep it
	// would take more memory than anything else here.
	nodes map[string]map[*plan.Service]struct{}
	// unsure are the nodes whose rows may not be what their backends need.
	unsure map[string]bool
}

func newWanted() *wanted {
	return &wanted{plans: map[world.Key]*plan.Service{}, nodes: map[string]map[*plan.Service]struct{}{}, unsure: map[string]bool{}}
}

// set replaces the plan of a Service (nil for none), which nobody changes any more.
func (w *wanted) set(key world.Key, p *plan.Service) {
	old := w.plans[key]
	if old == p {
		return
	}
	if old != nil {
		delete(w.plans, key)
		rows.Returns(old, func(node string, _ rows.Behind, _ rows.Port) {
			w.unsure[node] = true
			if delete(w.nodes[node], old); len(w.nodes[node]) == 0 {
				delete(w.nodes, node)
			}
		})
	}
	if p == nil {
		return
	}
	w.plans[key] = p
	rows.Returns(p, func(node string, _ rows.Behind, _ rows.Port) {
		w.unsure[node] = true
		if w.nodes[node] == nil {
			w.nodes[node] = map[*plan.Service]struct{}{}
		}
		w.nodes[node][p] = struct{}{}
	})
}

// on are the backends on a node, and the ports of those that are pods.
func (w *wanted) on(node string) (behind []rows.Behind, ports []rows.Port) {
	seen, open := map[rows.Behind]bool{}, map[rows.Port]bool{}
	for p := range w.nodes[node] {
		rows.Returns(p, func(of string, b rows.Behind, port rows.Port) {
			if of != node {
				return
			}
			if !seen[b] {
				seen[b] = true
				behind = append(behind, b)
			}
			if !b.Host && !open[port] {
				open[port] = true
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
