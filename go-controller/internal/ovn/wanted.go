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
	before, after := needs(old), needs(p)
	for n := range before {
		if !after[n] {
			w.unsure[n.node] = true
		}
		if delete(w.nodes[n.node], old); len(w.nodes[n.node]) == 0 {
			delete(w.nodes, n.node)
		}
	}
	if delete(w.plans, key); p != nil {
		w.plans[key] = p
	}
	for n := range after {
		if !before[n] {
			w.unsure[n.node] = true
		}
		if w.nodes[n.node] == nil {
			w.nodes[n.node] = map[*plan.Service]struct{}{}
		}
		w.nodes[n.node][p] = struct{}{}
	}
}

// need is what a plan needs of a node.
type need struct {
	node   string
	behind rows.Behind
	port   rows.Port
}

func needs(p *plan.Service) map[need]bool {
	all := map[need]bool{}
	if p != nil {
		rows.Returns(p, func(node string, b rows.Behind, port rows.Port) { all[need{node, b, port}] = true })
	}
	return all
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
