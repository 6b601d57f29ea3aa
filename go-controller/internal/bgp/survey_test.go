// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A tenant decides how many addresses a Service has and how many nodes its EndpointSlices name. What a survey takes for
// it grows with the sum of both, not with their product.
func TestSurveyOfManyAddressesOnManyNodes(t *testing.T) {
	const endpoints, addresses = 5000, 2000
	w := large(10)
	s := w.Services[0]
	s.LocalPolicy = true
	slice := &world.Slice{Family: world.IPv4, Ports: s.Slices[0].Ports}
	for i := range endpoints {
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 7, byte(i >> 8), byte(i)}),
			Node: fmt.Sprintf("a-node-that-only-the-slice-names-%d", i), Ready: true, Serving: true})
	}
	s.Slices = []*world.Slice{slice}
	r := compute(w).Survey()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range addresses {
		if a := r.Of(s, s.Assigned[0]); a == nil || len(a.Nodes) > 0 {
			t.Fatalf("advertised: %+v", a)
		}
	}
	runtime.ReadMemStats(&after)
	const most = 16 << 20
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("%d addresses with endpoints on %d nodes took %d MB, want at most %d", addresses, endpoints, took>>20,
			most>>20)
	}
}
