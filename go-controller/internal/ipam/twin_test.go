// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// twin is the allocator as one would write it for a pool of a dozen addresses: it enumerates all addresses
// repeatedly. It computes only addresses, pools and whether a Service is pending.
type twin struct {
	w       *world.Snapshot
	shardOf func(string, netip.Addr) (world.ShardID, bool)
	holder  map[netip.Addr][]*world.Service
	// taken are the addresses of holder in the order in which they were taken.
	taken []netip.Addr
	// allocated are the addresses that Services kept, apart from spec.externalIPs.
	allocated map[world.Key]map[world.Family]netip.Addr
	// exchanged are the Services that have got another address for one that they hold until the pass ends.
	exchanged map[netip.Addr][]*world.Service
	// reserved are the Services that hold an address only because their status shows it.
	reserved map[netip.Addr][]*world.Service
	// externals are the addresses of spec.externalIPs that are served, heldExternals those that belong to the Service.
	externals, heldExternals map[world.Key][]netip.Addr
	// cooldowns are the leases of addresses that were in cooldown when the first Service was served.
	cooldowns []world.Lease
}

type twinOutcome struct {
	addrs []netip.Addr
	pool  string
}

func wants(s *world.Service) []world.Family {
	if s.FamilyPolicy == world.SingleStack {
		return s.Families[:1]
	}
	return s.Families
}

func (t *twin) allocate() map[world.Key]twinOutcome {
	t.holder = map[netip.Addr][]*world.Service{}
	t.exchanged, t.reserved = map[netip.Addr][]*world.Service{}, map[netip.Addr][]*world.Service{}
	has := map[world.Key]map[world.Family]netip.Addr{}
	t.allocated = has
	services := ipam.ByAge(t.w.Services)
	foreign := map[world.Key]bool{}
	for _, s := range services {
		has[s.Key] = map[world.Family]netip.Addr{}
	}
	for _, claim := range []string{"given", "shown", "granted", "cleared"} {
		for _, s := range services {
			foreign[s.Key] = t.adopt(s, claim, has[s.Key])
		}
	}
	for _, s := range services {
		shown := slices.Clone(s.Assigned)
		if isCleared(s) {
			shown = slices.Clone(s.Given)
		}
		for _, a := range append(shown, t.w.Unsettled[s.Key]...) {
			t.reserve(s, a)
		}
	}
	kept, won := listing{}, listing{}
	t.keepExternals(services, kept, won)
	t.reserveExternals(services)
	t.startCooldowns()
	t.winExternals(services, kept, won)
	t.externals, t.heldExternals = won.inOrder(services), kept.inOrder(services)
	out := map[world.Key]twinOutcome{}
	for _, s := range services {
		var gets map[world.Family]netip.Addr
		if !foreign[s.Key] {
			gets = t.serve(s, has[s.Key])
		}
		var o twinOutcome
		for _, f := range wants(s) {
			if a, ok := gets[f]; ok {
				if p := t.inPool(a); p != nil && o.addrs == nil {
					o.pool = p.Name
				}
				o.addrs = append(o.addrs, a)
				t.take(s, a)
			}
		}
		out[s.Key] = o
	}
	return out
}

// join lets a Service share addresses, and returns the families that are still missing.
func (t *twin) join(s *world.Service, has, gets map[world.Family]netip.Addr, missing []world.Family,
	pools []*world.Pool) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		for _, a := range t.taken {
			with := maps.Clone(gets)
			with[f] = a
			p := t.inPool(a)
			waiter := t.waitsFor(a)
			given := waiter == (world.Key{}) && p != nil && slices.Contains(t.freeAddrs(p, f), a) || waiter == s.Key &&
				t.givable(s, a)
			if given && slices.Contains(pools, p) && world.FamilyOf(a) == f && !slices.Contains(t.holder[a], s) &&
				s.SharingKey != "" && t.fits(s, a) && t.affords(p, s, has, with, 0) {
				gets[f] = a
				return true
			}
		}
		return false
	})
}

func (t *twin) choose(s *world.Service, has, gets map[world.Family]netip.Addr, missing []world.Family,
	pools []*world.Pool) map[world.Family]*world.Pool {
	chosen := map[world.Family]*world.Pool{}
	for _, f := range missing {
		for _, p := range pools {
			more := 1
			for _, other := range chosen {
				if other == p {
					more++
				}
			}
			if len(t.free(p, f)) > 0 && t.affords(p, s, has, gets, more) {
				chosen[f] = p
				break
			}
		}
	}
	for _, p := range slices.Backward(pools) {
		lacks := slices.ContainsFunc(missing, func(f world.Family) bool { return len(t.free(p, f)) == 0 })
		if !lacks && t.affords(p, s, has, gets, len(missing)) {
			for _, f := range missing {
				chosen[f] = p
			}
		}
	}
	return chosen
}

func (t *twin) take(s *world.Service, a netip.Addr) {
	if t.holder[a] == nil {
		t.taken = append(t.taken, a)
	}
	if !slices.Contains(t.holder[a], s) {
		t.holder[a] = append(t.holder[a], s)
	}
	t.reserved[a] = slices.DeleteFunc(t.reserved[a], func(o *world.Service) bool { return o == s })
}

// fits reports whether all holders of an address would share it with the Service.
func (t *twin) fits(s *world.Service, a netip.Addr) bool {
	return !slices.ContainsFunc(t.holder[a], func(o *world.Service) bool {
		return o != s && (!share(o, s) || !t.inScope(a, o, s))
	})
}

func share(a, b *world.Service) bool {
	ports := map[string]bool{}
	for _, s := range []*world.Service{a, b} {
		for _, p := range s.Ports {
			ports[fmt.Sprint(p.Protocol, p.Port)] = true
		}
	}
	cluster := !a.LocalPolicy && !b.LocalPolicy
	same := len(a.Selector) > 0 && maps.Equal(a.Selector, b.Selector)
	return a.SharingKey != "" && a.SharingKey == b.SharingKey && len(ports) == len(a.Ports)+len(b.Ports) &&
		(cluster || same)
}

func (t *twin) serve(s *world.Service, has map[world.Family]netip.Addr) map[world.Family]netip.Addr {
	requested, ok := t.request(s, has)
	if !ok || len(s.Problems) > 0 || suspends(t.w) {
		return has
	}
	gets := map[world.Family]netip.Addr{}
	var missing []world.Family
	for _, f := range wants(s) {
		a, have := has[f]
		if have {
			gets[f] = a
		}
		switch {
		case requested[f].IsValid():
			gets[f] = requested[f]
		case !have, t.elsewhere(s, a):
			missing = append(missing, f)
		}
	}
	pools := t.pools(s, gets)
	missing = t.reclaim(s, has, gets, missing, pools)
	missing = t.join(s, has, gets, missing, pools)
	chosen := t.choose(s, has, gets, missing, pools)
	if s.FamilyPolicy == world.RequireDualStack && len(has) == 0 && len(chosen) < len(missing) {
		return nil
	}
	for _, f := range missing {
		if p := chosen[f]; p != nil {
			gets[f] = t.best(p, f)
			t.take(s, gets[f])
		}
	}
	for f, a := range has {
		if gets[f].IsValid() && gets[f] != a && slices.Contains(wants(s), f) && !t.listedIn(a, s.Key.Namespace) {
			t.exchanged[a] = append(t.exchanged[a], s)
		}
	}
	return gets
}

func (t *twin) elsewhere(s *world.Service, a netip.Addr) bool {
	if s.RequestedPool == "" || t.inPool(a) == nil || slices.Contains(s.FromRequested, a) {
		return false
	}
	p := t.named(s.RequestedPool)
	return p == nil || !slices.ContainsFunc(p.Ranges, func(r netipx.IPRange) bool { return r.Contains(a) })
}

func (t *twin) named(name string) *world.Pool {
	for _, p := range t.w.Pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (t *twin) request(s *world.Service, has map[world.Family]netip.Addr) (map[world.Family]netip.Addr, bool) {
	requested := map[world.Family]netip.Addr{}
	for _, a := range s.Requested {
		f := world.FamilyOf(a)
		if !slices.Contains(wants(s), f) || requested[f].IsValid() && requested[f] != a {
			return nil, false
		}
		requested[f] = a
	}
	for _, f := range wants(s) {
		if a := t.waiting(s, f); a.IsValid() && !has[f].IsValid() && !requested[f].IsValid() {
			requested[f] = a
		}
	}
	for f, a := range requested {
		if has[f] == a {
			continue
		}
		gets := maps.Clone(has)
		maps.Copy(gets, requested)
		if waiter := t.cooldownFor(a); len(waiter) > 0 && !slices.Contains(waiter, s.Key) {
			return nil, false
		}
		if !t.givable(s, a) || !t.affords(t.inPool(a), s, has, gets, 0) || s.RequestedPool != "" && t.inPool(a).
			Name != s.RequestedPool || !t.fits(s, a) {
			return nil, false
		}
	}
	return requested, true
}
