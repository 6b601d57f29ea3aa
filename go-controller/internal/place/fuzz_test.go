// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world/worldtest"
)

// decision is all that follows from a world.
type decision struct {
	layout *place.Layout
	alloc  *ipam.Allocation
	spots  *place.Spots
	fabric *plan.Fabric
	plans  map[world.Key]*plan.Service
}

func decide(w *world.Snapshot, held map[world.Key][]netip.Addr) decision {
	d := decision{layout: place.Lay(w), plans: map[world.Key]*plan.Service{}}
	d.alloc = ipam.Allocate(w, held, d.layout.ShardOf)
	d.spots = d.layout.Spots(w, d.alloc, nil)
	d.fabric = d.layout.Fabric(w, d.spots)
	for _, s := range w.Services {
		d.plans[s.Key] = plan.For(s, d.spots.VIPs(s.Key), plan.ReachOf(&world.Snapshot{}))
	}
	return d
}

func property(f *testing.F, check func(t *testing.T, w *world.Snapshot, held map[world.Key][]netip.Addr)) {
	f.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		choices := make([]byte, 200+r.IntN(300))
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		w, held := worldtest.Random(bytes.Clone(choices))
		check(t, w, held)
	})
}

var exact = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}), cmpopts.EquateEmpty(),
	cmpopts.IgnoreUnexported(place.Layout{}, place.Domain{}, place.Spots{}, ipam.Allocation{}), cmp.AllowUnexported(decision{}),
}

func FuzzOrderIndependent(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot, held map[world.Key][]netip.Addr) {
		before := decide(w, held)
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
		if d := cmp.Diff(before, decide(w, held), exact); d != "" {
			t.Errorf("another order, another decision:\n%s", d)
		}
	})
}

// carriedVIPs lists the VIPs that are carried.
func carriedVIPs(w *world.Snapshot, d decision) []plan.VIP {
	var vips []plan.VIP
	for _, s := range w.Services {
		vips = append(vips, d.spots.VIPs(s.Key)...)
	}
	return vips
}

// An address is in the shard that its hash says, whoever else has it, whatever is behind it.
func FuzzAddressDecides(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot, held map[world.Key][]netip.Addr) {
		d := decide(w, held)
		for _, v := range carriedVIPs(w, d) {
			if want, ok := d.layout.ShardOf(d.alloc.PoolOf(v.Addr), v.Addr); !ok || v.Shard != want {
				t.Errorf("%s is in %v, want %v (%t)", v.Addr, v.Shard, want, ok)
			}
		}
	})
}

// The fabric has every shard that a plan names, with gateways, and an anchor for each
// family in it that is one of its VIPs.
func FuzzFabric(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot, held map[world.Key][]netip.Addr) {
		d := decide(w, held)
		vips := map[world.ShardID]map[netip.Addr]bool{}
		families := map[world.ShardID]map[world.Family]bool{}
		for _, v := range carriedVIPs(w, d) {
			if vips[v.Shard] == nil {
				vips[v.Shard], families[v.Shard] = map[netip.Addr]bool{}, map[world.Family]bool{}
			}
			vips[v.Shard][v.Addr] = true
			families[v.Shard][world.FamilyOf(v.Addr)] = true
		}
		for _, domain := range d.fabric.Domains {
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
			t.Errorf("the fabric lacks shards that have VIPs: %v", vips)
		}
	})
}

// A plan has a listener for each VIP and port, its VIPs are those that are carried, and
// there is none without a VIP.
func FuzzPlan(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot, held map[world.Key][]netip.Addr) {
		d := decide(w, held)
		for _, s := range w.Services {
			p, vips := d.plans[s.Key], d.spots.VIPs(s.Key)
			if p == nil && len(vips) == 0 {
				continue
			}
			if p == nil || len(p.VIPs) != len(vips) || len(p.Listeners) != len(vips)*len(s.Ports) {
				t.Errorf("%s has plan %+v for VIPs %v and ports %v", s.Key, p, vips, s.Ports)
			}
		}
	})
}

// A gateway has a way to the segment, as far as is known. (In these worlds a chassis has no
// bridge, or it is not known.)
func FuzzGatewaysAreAttached(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot, _ map[world.Key][]netip.Addr) {
		for _, d := range place.Lay(w).Domains {
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

// Restarting with the order that was chosen before changes nothing, and who carries a
// shard goes on unless the domain says preempt.
func FuzzNonPreemptive(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot, _ map[world.Key][]netip.Addr) {
		before := place.Lay(w)
		carriersAfter(w, before, false)
		if d := cmp.Diff(before, place.Lay(w), exact); d != "" {
			t.Errorf("a restart changes the layout:\n%s", d)
		}
		carriersAfter(w, before, true)
		after := place.Lay(w)
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

// carriersAfter makes OVN have the order of a layout, and after a failover of all shards
// the last gateway of each active.
func carriersAfter(w *world.Snapshot, l *place.Layout, failover bool) {
	w.Carriers = map[world.ShardID]world.Carrier{}
	for _, d := range l.Domains {
		for _, s := range d.Shards {
			var c world.Carrier
			for _, g := range s.Gateways {
				c.Order = append(c.Order, g.Chassis)
			}
			if failover {
				c.Active, c.Settled = c.Order[len(c.Order)-1], true
			}
			w.Carriers[s.ID] = c
		}
	}
}

// unfitness orders nodes: one that drains is worse than one that does not, and one with a
// fault worse than both. The random worlds' domains are all on network "".
func unfitness(w *world.Snapshot, node string) int {
	i := slices.IndexFunc(w.Nodes, func(n *world.Node) bool { return n.Name == node })
	switch n := w.Nodes[i]; {
	case n.Faults[""] != "" || n.Faults[world.EveryNetwork] != "":
		return 2
	case n.Draining != "":
		return 1
	}
	return 0
}

// Nobody stands before a fitter one, but for the first, and the first is as fit as any.
func FuzzFittestFirst(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot, _ map[world.Key][]netip.Addr) {
		for _, d := range place.Lay(w).Domains {
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
