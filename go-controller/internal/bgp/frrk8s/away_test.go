// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// While the webhook is away now and then, tenants edit Services, the number of prefixes crosses that of an object, and
// a kubelet takes the labels of other nodes: no route of another tenant is absent after any write.
func TestNoRouteIsLostWhileTheWebhookIsAway(t *testing.T) {
	const nodes, stable, local = 5, 0, 1 // Services without edits, the second one with endpoints on nodes 1 and 2
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := many(140, nodes)
		for i, n := range w.Nodes {
			n.Created = time.Unix(int64(i), 0)
		}
		for i, label := range []string{"a", "b"} {
			ad, preference := *w.Advertisements[0], uint32(100+i)
			ad.Name, ad.LocalPref = label, &preference
			ad.Services = []world.Selector{{{Key: "x", Values: []string{label}}}}
			w.Advertisements = append(w.Advertisements, &ad)
		}
		w.Advertisements = w.Advertisements[1:]
		for _, service := range w.Services {
			service.Labels = map[string]string{"x": "a"}
		}
		endpointsOn(w.Services[local], 1, 2)
		all, s := w.Services, newSite(w)
		s.settle(t)
		away, lost := false, 0
		s.away = func(string) bool {
			if r.IntN(30) == 0 {
				away = !away
			}
			return away
		}
		s.wrote = func() {
			for _, n := range []int{0, 1, 2, 4} {
				if !s.advertises(nodeName(n), all[stable].Assigned[0]) ||
					(n == 1 || n == 2) && !s.advertises(nodeName(n), all[local].Assigned[0]) {
					lost++
				}
			}
		}
		for range 40 {
			away = r.IntN(5) < 2
			w.Services = all[:20+r.IntN(121)]
			for range r.IntN(4) {
				edit(r, all[10+r.IntN(10)], nodes)
			}
			w.Nodes[3].Hostname = nodeName([]int{3, 0, 1, 4}[r.IntN(4)])
			if s.round(); lost > 0 {
				t.Fatalf("seed %d: a route absent after %d writes", seed, lost)
			}
		}
		s.away = func(string) bool { return false }
		s.settle(t)
	}
}

// While no object can be created, those that are no longer desired stay, without what no other one needs.
func TestObjectsThatStayAreReduced(t *testing.T) {
	const nodes = 3
	w := many(131, nodes)
	all := w.Services
	w.Services = all[:128]
	s := newSite(w)
	s.settle(t)
	s.away = func(name string) bool { return s.objects[name] == nil }
	w.Services = all[1:] // in two objects
	w.Nodes[2].NetworkUnavailable = true
	for range 3 {
		s.round()
	}
	for n, want := range []bool{true, true, false} {
		if s.advertises(nodeName(n), all[0].Assigned[0]) || s.advertises(nodeName(n), all[5].Assigned[0]) != want {
			t.Errorf("%s advertises the Service that is gone, or another one, want %t", nodeName(n), want)
		}
	}
	s.away = func(string) bool { return false }
	s.settle(t)
	if len(s.objects) != 3 {
		t.Errorf("%d objects, want 3", len(s.objects))
	}
}
