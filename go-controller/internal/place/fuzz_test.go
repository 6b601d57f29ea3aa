// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// decision is everything that is computed from a snapshot.
type decision struct {
	layout     *place.Layout
	alloc      *ipam.Allocation
	placements *place.Placements
	topology   *plan.Topology
	plans      map[world.Key]*plan.Service
}

func decide(w *world.Snapshot) decision {
	d := decision{layout: place.Compute(w), plans: map[world.Key]*plan.Service{}}
	d.alloc = ipam.Allocate(w, d.layout.ShardOf)
	d.placements = d.layout.Place(w, d.alloc, nil)
	d.topology = d.layout.Topology(w, d.placements)
	for _, s := range w.Services {
		d.plans[s.Key] = plan.For(s, d.placements.VIPs(s.Key), plan.NewReachability(&world.Snapshot{}))
	}
	return d
}

// property checks one property of random snapshots.
func property(f *testing.F, check func(t *testing.T, w *world.Snapshot)) {
	f.Helper()
	worldtest.Fuzz(f, rand.New(rand.NewPCG(7, 8)), 200, 500, check)
}

var exact = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}), cmpopts.EquateEmpty(),
	cmpopts.IgnoreUnexported(place.Layout{}, place.Domain{}, place.Placements{}, ipam.Allocation{}),
	cmp.AllowUnexported(decision{}),
}

func FuzzOrderIndependent(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		before := decide(w)
		slices.Reverse(w.Pools)
		slices.Reverse(w.Domains)
		slices.Reverse(w.Nodes)
		for _, d := range w.Domains {
			slices.Reverse(d.Nodes)
			slices.Reverse(d.Pools)
		}
		for _, s := range w.Services {
			slices.Reverse(s.Slices)
			for _, slice := range s.Slices {
				slices.Reverse(slice.Endpoints)
			}
		}
		slices.Reverse(w.Services)
		if d := cmp.Diff(before, decide(w), exact); d != "" {
			t.Errorf("another order, another decision:\n%s", d)
		}
	})
}

// carriedVIPs returns the VIPs that are carried.
func carriedVIPs(w *world.Snapshot, d decision) []plan.VIP {
	var vips []plan.VIP
	for _, s := range w.Services {
		vips = append(vips, d.placements.VIPs(s.Key)...)
	}
	return vips
}

// An address is in the shard that its hash determines, whichever Services have it and whatever their backends are.
func FuzzAddressDecides(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		d := decide(w)
		for _, v := range carriedVIPs(w, d) {
			if want, ok := d.layout.ShardOf(d.alloc.PoolOf(v.Addr), v.Addr); !ok || v.Shard != want {
				t.Errorf("%s is in %v, want %v (%t)", v.Addr, v.Shard, want, ok)
			}
		}
	})
}

// The topology has every shard that a plan refers to, with gateways, and for each family in the shard an anchor that is
// one of its VIPs.
func FuzzTopology(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		d := decide(w)
		vips := map[world.ShardID]map[netip.Addr]bool{}
		families := map[world.ShardID]map[world.Family]bool{}
		for _, v := range carriedVIPs(w, d) {
			if vips[v.Shard] == nil {
				vips[v.Shard], families[v.Shard] = map[netip.Addr]bool{}, map[world.Family]bool{}
			}
			vips[v.Shard][v.Addr] = true
			families[v.Shard][world.FamilyOf(v.Addr)] = true
		}
		for _, domain := range d.topology.Domains {
			for _, s := range domain.Shards {
				if len(s.Gateways) == 0 {
					t.Errorf("shard %v has no gateway", s.ID)
				}
				if len(s.Anchors) != len(families[s.ID]) {
					t.Errorf("shard %v: anchors %v for VIPs %v", s.ID, s.Anchors, vips[s.ID])
				}
				for _, anchor := range s.Anchors {
					if !vips[s.ID][anchor.Addr()] {
						t.Errorf("shard %v: anchor %v is none of its VIPs", s.ID, anchor)
					}
				}
				delete(vips, s.ID)
			}
		}
		if len(vips) > 0 {
			t.Errorf("the topology lacks shards that have VIPs: %v", vips)
		}
	})
}

// A plan has a listener per VIP and port, its VIPs are those that are carried, and a Service without a VIP has no
// plan.
func FuzzPlan(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		d := decide(w)
		for _, s := range w.Services {
			p, vips := d.plans[s.Key], d.placements.VIPs(s.Key)
			if p == nil && len(vips) == 0 {
				continue
			}
			if p == nil || len(p.VIPs) != len(vips) || len(p.Listeners) != len(vips)*len(s.Ports) {
				t.Errorf("%s has plan %+v for VIPs %v and ports %v", s.Key, p, vips, s.Ports)
			}
		}
	})
}

// A gateway is attached to the segment, as far as is known. (In these snapshots a chassis has no bridge, or its
// bridges are unknown.)
func FuzzGatewaysAreAttached(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		for _, d := range place.Compute(w).Domains {
			for _, s := range d.Shards {
				for _, g := range s.Gateways {
					if _, known := w.Bridges[g.Chassis]; known {
						t.Errorf("%v: gateway %s has no bridge", s.ID, g.Node)
					}
				}
			}
		}
	})
}

// A restart with the order that was chosen before changes nothing, and the current gateway of a shard stays unless
// the domain sets preempt.
func FuzzNonPreemptive(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		for _, d := range w.Domains {
			if d.Preempt { // Its shards may be moving, and then have another order afterwards.
				maps.DeleteFunc(w.ShardStates, func(id world.ShardID, _ world.ShardState) bool { return id.Domain == d.Name })
			}
		}
		before := place.Compute(w)
		carriersAfter(w, before, false)
		if d := cmp.Diff(before, place.Compute(w), exact); d != "" {
			t.Errorf("a restart changes the layout:\n%s", d)
		}
		carriersAfter(w, before, true)
		after := place.Compute(w)
		for i, d := range before.Domains {
			for j, s := range d.Shards {
				want := s.Gateways[0]
				if last := s.Gateways[len(s.Gateways)-1]; !d.Spec.Preempt && unfitness(w, last.Node) == unfitness(w, want.Node) {
					want = last
				}
				if got := after.Domains[i].Shards[j].Gateways[0]; want != got {
					t.Errorf("%v: %v is first, want %v", s.ID, got, want)
				}
			}
		}
	})
}

// carriersAfter makes OVN have the order of a layout and, after a failover of all shards, the last gateway of each
// active.
func carriersAfter(w *world.Snapshot, l *place.Layout, failover bool) {
	w.ShardStates = map[world.ShardID]world.ShardState{}
	for _, d := range l.Domains {
		for _, s := range d.Shards {
			var c world.ShardState
			for _, g := range s.Gateways {
				c.Order = append(c.Order, g.Node)
			}
			if failover {
				c.Active, c.Settled = c.Order[len(c.Order)-1], true
			}
			w.ShardStates[s.ID] = c
		}
	}
}

// unfitness orders nodes: a draining node is worse than one that does not drain, and a faulty one is worse than both.
// The domains of the random snapshots are all on network "".
func unfitness(w *world.Snapshot, node string) int {
	i := slices.IndexFunc(w.Nodes, func(n *world.Node) bool { return n.Name == node })
	switch n := w.Nodes[i]; {
	case n.FaultOf("").Message != "":
		return 2
	case n.Draining != "":
		return 1
	}
	return 0
}

// No gateway precedes a fitter one, except the first, and the first is as fit as any.
func FuzzFittestFirst(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		for _, d := range place.Compute(w).Domains {
			for _, s := range d.Shards {
				for i, g := range s.Gateways[1:] {
					if unfitness(w, s.Gateways[i].Node) > unfitness(w, g.Node) {
						t.Errorf("%v: %s stands before %s", s.ID, s.Gateways[i].Node, g.Node)
					}
				}
			}
		}
	})
}
