// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Each benchmark measures one full pass over all Services.

func BenchmarkAllocate5000Pending(b *testing.B) {
	w := worldtest.Large(5_000, 0)
	shardOf := place.Compute(w).ShardOf
	b.ReportAllocs()
	for b.Loop() {
		a := ipam.Allocate(w, shardOf)
		if got := a.Pools["large"].Assigned4; got != 5_000 {
			b.Fatalf("%d addresses assigned, want 5000", got)
		}
	}
}

func BenchmarkAllocate10000Assigned(b *testing.B) {
	w := worldtest.Large(10_000, 0)
	shardOf := place.Compute(w).ShardOf
	a := ipam.Allocate(w, shardOf)
	for _, s := range w.Services {
		s.Assigned = a.Services[s.Key].Addrs
	}
	b.ReportAllocs()
	for b.Loop() {
		ipam.Allocate(w, shardOf)
	}
}

// The same with a pool that records leases.
func BenchmarkAllocate10000Leased(b *testing.B) {
	w := worldtest.Large(10_000, 0)
	w.Pools[0].ReuseDelay = time.Hour
	shardOf := place.Compute(w).ShardOf
	write(w, ipam.Allocate(w, shardOf))
	b.ReportAllocs()
	for b.Loop() {
		if n := len(ipam.Allocate(w, shardOf).Pools["large"].Leases); n != 10_000 {
			b.Fatalf("%d leases, want 10000", n)
		}
	}
}

// One more Service in addition to ten thousand.
func BenchmarkAllocateOneMore(b *testing.B) {
	w := worldtest.Large(10_001, 0)
	shardOf := place.Compute(w).ShardOf
	a := ipam.Allocate(w, shardOf)
	for _, s := range w.Services[:10_000] {
		s.Assigned = a.Services[s.Key].Addrs
	}
	b.ReportAllocs()
	for b.Loop() {
		ipam.Allocate(w, shardOf)
	}
}

// Two thousand nodes whose addresses are in the pool.
func BenchmarkAllocate2000Nodes(b *testing.B) {
	w := worldtest.Large(0, 0)
	for i := range 2_000 {
		w.Nodes = append(w.Nodes, &world.Node{
			Name: fmt.Sprintf("worker-%d", i),
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i / 200), byte(i % 200)}),
				netip.AddrFrom4([4]byte{172, 16, byte(i / 200), byte(i % 200)})},
		})
	}
	shardOf := place.Compute(w).ShardOf
	b.ReportAllocs()
	for b.Loop() {
		ipam.Allocate(w, shardOf)
	}
}
