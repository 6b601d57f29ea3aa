// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// wanted are the newest plans, and what their backends need of the nodes they are on.
type wanted struct {
	plans map[world.Key]*plan.Service
	nodes map[string]*uses
	// unsure are the nodes whose rows may not be what their backends need.
	unsure map[string]bool
}

// uses count how often plans name a backend behind a shard, and a port of pods, of a node.
type uses struct {
	behind map[rows.Behind]int
	ports  map[rows.Port]int
}

func newWanted() *wanted {
	return &wanted{plans: map[world.Key]*plan.Service{}, nodes: map[string]*uses{}, unsure: map[string]bool{}}
}

// set replaces the plan of a Service (nil for none).
func (w *wanted) set(key world.Key, p *plan.Service) {
	old := w.plans[key]
	if old == p {
		return
	}
	if old != nil {
		delete(w.plans, key)
		rows.Returns(old, func(node string, b rows.Behind, port rows.Port) {
			w.unsure[node] = true
			u := w.nodes[node]
			if !b.Host {
				less(u.ports, port)
			}
			if less(u.behind, b); len(u.behind) == 0 {
				delete(w.nodes, node)
			}
		})
	}
	if p == nil {
		return
	}
	w.plans[key] = p
	rows.Returns(p, func(node string, b rows.Behind, port rows.Port) {
		w.unsure[node] = true
		u := w.nodes[node]
		if u == nil {
			u = &uses{behind: map[rows.Behind]int{}, ports: map[rows.Port]int{}}
			w.nodes[node] = u
		}
		u.behind[b]++
		if !b.Host {
			u.ports[port]++
		}
	})
}

// less counts one down and forgets what is used no more.
func less[K comparable](counts map[K]int, k K) {
	if counts[k]--; counts[k] == 0 {
		delete(counts, k)
	}
}
