// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// sharedAggregate is a cluster in which the first Service, of one tenant, is in an aggregate with those of another one.
// A second advertisement selects Services by label.
func sharedAggregate(nodes int) (s *site, absent map[string]int) {
	w := many(257, nodes) // the last one is in another aggregate
	second := *w.Advertisements[0]
	second.Name = "a-second" // the older one by its name
	second.Services = []world.Selector{{{Key: "x", Values: []string{"b"}}}}
	w.Advertisements = append(w.Advertisements, &second)
	for _, ad := range w.Advertisements {
		ad.Length4 = 24
	}
	s, absent = newSite(w), map[string]int{}
	s.wrote = func() {
		has := map[string]bool{}
		for _, c := range s.objects {
			for _, n := range c.Nodes {
				has[n] = has[n] || slices.Contains(c.Spec.BGP.Routers[0].Prefixes, "192.168.0.0/24")
			}
		}
		for n := range nodes {
			if !has[nodeName(n)] {
				absent[nodeName(n)]++
			}
		}
	}
	return s, absent
}

// A tenant moves the aggregate to objects of nodes, with another local preference on one of them. It is absent there
// for a moment, and on no other node.
func TestPreferenceOfOneNodeTakesNoAggregateFromOthers(t *testing.T) {
	s, absent := sharedAggregate(100)
	for i, ad := range s.world.Advertisements {
		preference := uint32(100 + i)
		ad.LocalPref = &preference
	}
	s.settle(t)
	clear(absent)
	s.world.Services[1].Labels = map[string]string{"x": "b"}
	endpointsOn(s.world.Services[1], 0)
	s.settle(t)
	if len(absent) > 1 || absent[nodeName(0)] > 2 {
		t.Errorf("the aggregate is absent on %d nodes, for writes: %v", len(absent), absent)
	}
}

// A tenant moves the aggregate to objects of nodes, which lose something at the same time.
func TestObjectsGetBeforeOthersLose(t *testing.T) {
	const nodes = 100
	s, absent := sharedAggregate(nodes)
	everywhere := make([]int, nodes)
	for n := range everywhere {
		everywhere[n] = n
	}
	endpointsOn(s.world.Services[1], everywhere...)
	s.settle(t)
	clear(absent)
	s.world.Services[2].Labels = map[string]string{"x": "b"}
	endpointsOn(s.world.Services[2], everywhere...)
	s.world.Services = slices.Delete(s.world.Services, 1, 2)
	s.settle(t)
	if len(absent) > 0 {
		t.Errorf("the aggregate is absent on %d nodes, for writes: %v", len(absent), absent)
	}
}
