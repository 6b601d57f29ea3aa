// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The memory that a survey takes is proportional to the number of nodes, also if each runs another list of prefixes,
// which a tenant can cause by a few Services with endpoints on other nodes each.
func TestSurveyGrowsWithNodes(t *testing.T) {
	small, large := surveyBytes(t, 100), surveyBytes(t, 1000)
	if large > 15*small {
		t.Errorf("100 nodes: %d KB, 1,000 nodes: %d KB, want at most 15 times as much", small>>10, large>>10)
	}
}

// surveyBytes returns what the survey of one address allocates.
func surveyBytes(t *testing.T, nodes int) uint64 {
	t.Helper()
	const ofTenant = 12
	w := many(300, nodes)
	r := rand.New(rand.NewPCG(1, 2))
	w.FRR = &world.FRR{Namespace: "frr", Nodes: map[string]*world.FRRNode{}}
	for _, n := range w.Nodes {
		var list []netip.Prefix
		for i, s := range w.Services {
			if i >= ofTenant || r.IntN(2) == 0 {
				list = append(list, netip.PrefixFrom(s.Assigned[0], 32))
			}
		}
		slices.SortFunc(list, netip.Prefix.Compare)
		w.FRR.Nodes[n.Name] = &world.FRRNode{Running: frrapi.Running{"10.50.0.1": list}}
	}
	layout := place.Compute(w)
	l := bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
	survey := l.Survey()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	of := survey.Of(w.Services[299], w.Services[299].Assigned[0])
	runtime.ReadMemStats(&after)
	if of == nil {
		t.Fatal("the address is not advertised")
	}
	return after.TotalAlloc - before.TotalAlloc
}
