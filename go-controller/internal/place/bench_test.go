// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func BenchmarkPlacements10000(b *testing.B) {
	w := worldtest.Large(10_000, 20)
	l := place.Compute(w)
	a := ipam.Allocate(w, l.ShardOf)
	b.ReportAllocs()
	for b.Loop() {
		l.Place(w, a, nil)
	}
}

// All nodes of a large cluster may be gateways.
func BenchmarkCompute2000Nodes(b *testing.B) {
	w := worldtest.Large(0, 0)
	for i := range 2_000 {
		n := &world.Node{Name: fmt.Sprintf("worker-%d", i), Chassis: fmt.Sprintf("c-%d", i)}
		w.Nodes = append(w.Nodes, n)
		w.Domains[0].Nodes = append(w.Domains[0].Nodes, n.Name)
	}
	b.ReportAllocs()
	for b.Loop() {
		place.Compute(w)
	}
}
