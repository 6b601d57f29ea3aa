// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"flag"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// threeShards places IPv4 addresses on three shards, nine consecutive ones on each, so that the last of the examined
// addresses may be the best, and IPv6 addresses on none.
func threeShards(_ string, a netip.Addr) (world.ShardID, bool) {
	b := a.As16()
	return world.ShardID{Domain: "d", Index: int(b[15]) / 9 % 3}, a.Is4()
}

// property checks one property of random snapshots.
func property(f *testing.F, check func(t *testing.T, w *world.Snapshot)) {
	f.Helper()
	worldtest.Fuzz(f, rand.New(rand.NewPCG(1, 2)), 60, 260, check)
}

// write writes an outcome into the statuses.
func write(w *world.Snapshot, a *ipam.Allocation) {
	for _, s := range w.Services {
		show(s, a.Services[s.Key])
	}
	w.Granted, w.HeldExternalIPs = nil, nil
	for _, p := range w.Pools {
		p.Leases = a.Pools[p.Name].Leases
	}
}

// show writes an outcome into the status of a Service.
func show(s *world.Service, o ipam.Outcome) {
	if !o.Foreign {
		s.Assigned, s.AssignedHosts = o.Addrs, nil
	}
	s.Given, s.HeldExternalIPs = o.Addrs, o.HeldExternal
	s.FromRequested = slices.DeleteFunc(slices.Clone(s.FromRequested), func(a netip.Addr) bool {
		return !slices.Contains(o.Addrs, a)
	})
	if len(o.Addrs) > 0 && s.RequestedPool != "" && o.Pool == s.RequestedPool {
		s.FromRequested = append(s.FromRequested, o.Addrs[0])
	}
}

func byKey(w *world.Snapshot) map[world.Key]*world.Service {
	m := map[world.Key]*world.Service{}
	for _, s := range w.Services {
		m[s.Key] = s
	}
	return m
}

func FuzzExclusive(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		services := byKey(w)
		holders := map[netip.Addr][]world.Key{}
		a := ipam.Allocate(w, threeShards)
		for k, o := range a.Services {
			for _, addr := range slices.Concat(o.VIPs(), o.HeldExternal) {
				if slices.Contains(holders[addr], k) {
					continue
				}
				if i := slices.IndexFunc(holders[addr], func(o world.Key) bool {
					return !together(w, addr, services[k], services[o])
				}); i >= 0 {
					t.Errorf("%s is given to %s and to %s", addr, k, holders[addr][i])
				}
				holders[addr] = append(holders[addr], k)
				for _, s := range w.Services {
					// An address that is new to k must not be in the status of another Service.
					if k != s.Key && slices.Contains(o.Addrs, addr) && !together(w, addr, services[k], s) &&
						slices.Contains(s.Assigned, addr) && !slices.Contains(services[k].Assigned, addr) &&
						!slices.Contains(w.Granted[k], addr) {
						t.Errorf("%s is given to %s and still in the status of %s", addr, k, s.Key)
					}
				}
			}
			explained(t, services[k], o)
		}
	})
}

// explained checks that a Service without an address has a reason, and that a reason has a message.
func explained(t *testing.T, s *world.Service, o ipam.Outcome) {
	t.Helper()
	if !o.Foreign && len(o.Addrs) < len(wants(s)) && o.Reason == "" {
		t.Errorf("%s lacks an address, and no reason is reported: %+v", s.Key, o)
	}
	if (o.Reason == "") != (o.Message == "") && len(s.ExternalIPs) == 0 {
		t.Errorf("%s: reason %q, message %q", s.Key, o.Reason, o.Message)
	}
}

// together reports whether two Services may have one address.
func together(w *world.Snapshot, a netip.Addr, x, y *world.Service) bool {
	return share(x, y) && (&twin{w: w}).inScope(a, x, y)
}

// listAll makes each Service list the external addresses of all Services.
func listAll(w *world.Snapshot) {
	for _, s := range w.Services {
		for _, o := range w.Services {
			for _, a := range o.ExternalIPs {
				if !slices.Contains(s.ExternalIPs, a) {
					s.ExternalIPs = append(slices.Clip(s.ExternalIPs), a)
				}
			}
		}
	}
}

// An address of spec.externalIPs stays with the Service that owns it, whichever other Service lists it, even after a
// pool served external IPs for no Service for a while, and although new ones exceed the quota or are not admitted.
func FuzzHolderKeeps(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		first := ipam.Allocate(w, threeShards)
		write(w, first)
		listAll(w)
		assertKept := func(when string, what func(ipam.Outcome) []netip.Addr) {
			a := ipam.Allocate(w, threeShards)
			for k, o := range first.Services {
				for _, addr := range o.External {
					if !slices.Contains(what(a.Services[k]), addr) {
						t.Errorf("%s lost %s %s: %+v", k, addr, when, a.Services[k])
					}
				}
			}
			write(w, a)
		}
		owned := func(o ipam.Outcome) []netip.Addr { return o.HeldExternal }
		served := func(o ipam.Outcome) []netip.Addr { return o.External }
		assertKept("at once", served)
		for what, edit := range map[string]func(*world.Pool){
			"excluded":  func(p *world.Pool) { p.Exclude = p.Ranges },
			"in no use": func(p *world.Pool) { p.ExternalIPs = false },
			"invalid":   func(p *world.Pool) { p.Problems = []string{"a mistake"} },
		} {
			for _, p := range w.Pools {
				before := *p
				edit(p)
				assertKept("while pool "+p.Name+" is "+what, owned)
				leases := p.Leases
				*p = before
				p.Leases = leases
				assertKept("after pool "+p.Name+" was "+what, served)
			}
		}
		for _, p := range w.Pools {
			p.Quota, p.Admission = 1, &world.Admission{}
		}
		assertKept("after the pools admit no Service", served)
	})
}

func FuzzSticky(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		first := ipam.Allocate(w, threeShards)
		for _, s := range w.Services {
			show(s, first.Services[s.Key])
			s.Requested, s.RequestedPool = nil, ""
		}
		w.Granted = nil // they are in the statuses now
		// The pools change completely.
		for i, p := range w.Pools {
			switch i % 3 {
			case 0:
				p.Ranges = p.Ranges[:1]
				p.Exclude = p.Ranges
			case 1:
				p.Disabled, p.AutoAssign = true, false
			}
		}
		w.Pools = w.Pools[:len(w.Pools)/2]
		second := ipam.Allocate(w, threeShards)
		for k, o := range first.Services {
			for _, addr := range o.Addrs {
				if !slices.Contains(second.Services[k].Addrs, addr) {
					t.Errorf("%s lost %s: %+v", k, addr, second.Services[k])
				}
			}
		}
	})
}

var sameOutcome = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreUnexported(ipam.Allocation{}),
	cmpopts.EquateEmpty()}

func FuzzOrderIndependent(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		before := ipam.Allocate(w, threeShards)
		slices.Reverse(w.Pools)
		slices.Reverse(w.Domains)
		slices.Reverse(w.Nodes)
		r := rand.New(rand.NewPCG(3, 4))
		r.Shuffle(len(w.Services), func(i, j int) { w.Services[i], w.Services[j] = w.Services[j], w.Services[i] })
		if d := cmp.Diff(before, ipam.Allocate(w, threeShards), sameOutcome); d != "" {
			t.Errorf("another order, another outcome:\n%s", d)
		}
	})
}

func FuzzIdempotent(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		// Grants that are not observed yet are held. Each pass may free addresses that other Services wait for, but
		// never takes away an allocated one.
		granted := map[world.Key][]netip.Addr{}
		var last *ipam.Allocation
		for range 2 * len(w.Services) {
			last = ipam.Allocate(w, threeShards)
			for k, o := range last.Services {
				for _, addr := range granted[k] {
					if !slices.Contains(o.Addrs, addr) && byKey(w)[k].Requested == nil && byKey(w)[k].RequestedPool == "" {
						t.Errorf("%s lost %s: %+v", k, addr, o)
					}
				}
				granted[k] = o.Addrs
			}
			notShown := *w
			notShown.Granted = granted
			unobserved := ipam.Allocate(&notShown, threeShards)
			for k, o := range last.Services {
				if w.Granted == nil && len(o.Addrs) > 0 && !slices.Equal(o.Addrs, unobserved.Services[k].Addrs) {
					t.Errorf("%s: %v given and held, then %v", k, o.Addrs, unobserved.Services[k].Addrs)
				}
			}
			write(w, last)
		}
		again := ipam.Allocate(w, threeShards)
		if d := cmp.Diff(last, again, sameOutcome); d != "" {
			t.Errorf("nothing changed but the outcome:\n%s", d)
		}
	})
}

func FuzzTwin(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) { agree(t, w) })
}

// agree compares the allocator with its twin.
func agree(t *testing.T, w *world.Snapshot) {
	t.Helper()
	got := ipam.Allocate(w, threeShards)
	tw := &twin{w: w, shardOf: threeShards}
	for k, want := range tw.allocate() {
		if o := got.Services[k]; !slices.Equal(o.Addrs, want.addrs) || o.Pool != want.pool {
			t.Errorf("%s has %v of pool %q, the twin says %v of pool %q (%s: %s)", k, o.Addrs, o.Pool, want.addrs, want.pool,
				o.Reason, o.Message)
		}
		if o := got.Services[k]; !slices.Equal(o.External, tw.externals[k]) {
			t.Errorf("%s answers for its own %v, the twin says %v (%s: %s)", k, o.External, tw.externals[k], o.Reason, o.Message)
		}
		if o := got.Services[k]; !slices.Equal(o.HeldExternal, tw.heldExternals[k]) {
			t.Errorf("%s holds %v, the twin says %v (%s: %s)", k, o.HeldExternal, tw.heldExternals[k], o.Reason, o.Message)
		}
	}
	whole := tw.unreserved()
	for i, p := range w.Pools {
		want := ipam.PoolUsage{
			Capacity4: int64(len(whole.freeAddrs(whole.w.Pools[i], world.IPv4))),
			Capacity6: int64(len(whole.freeAddrs(whole.w.Pools[i], world.IPv6))),
		}
		want.Reserved4, want.Reserved6 = tw.unusedReservations(whole, i)
		for a := range tw.holder {
			if tw.inPool(a) != p {
				continue
			}
			if a.Is4() {
				want.Assigned4++
			} else {
				want.Assigned6++
			}
		}
		if gives(p) && !suspends(w) {
			want.Available4, want.Available6 = int64(len(tw.free(p, world.IPv4))), int64(len(tw.free(p, world.IPv6)))
		}
		tw.use(p, &want)
		if d := cmp.Diff(want, got.Pools[p.Name], cmpopts.IgnoreFields(ipam.PoolUsage{}, "Problems", "Suspended"),
			sameOutcome); d != "" {
			t.Errorf("pool %s (-twin +got):\n%s", p.Name, d)
		}
		if got.PoolOf(p.Ranges[0].From()) != tw.inPool(p.Ranges[0].From()).Name {
			t.Errorf("%s is in pool %s, not %s", p.Ranges[0].From(), tw.inPool(p.Ranges[0].From()).Name,
				got.PoolOf(p.Ranges[0].From()))
		}
	}
}

var worlds = flag.Int("worlds", 5_000, "how many random worlds the allocator and its twin are compared in")

// Many more random snapshots than the fuzz seeds.
func TestTwinAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range worldtest.Rounds(*worlds) {
		choices := make([]byte, 400)
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		w := worldtest.Random(choices)
		agree(t, w)
		if t.Failed() {
			t.Fatalf("choices %x", choices)
		}
	}
}
