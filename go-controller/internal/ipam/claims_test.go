// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// provider is a provider of addresses that makes every mistake, and users that delete and change what is its.
type provider struct {
	r *rand.Rand
	w *world.Snapshot
}

// withProvider makes every other pool external, for Services without addresses.
func withProvider(w *world.Snapshot, r *rand.Rand) *provider {
	for i, s := range w.Services {
		s.UID, s.Assigned, s.Given, s.FromRequested, s.AssignedHosts = s.Key.Name, nil, nil, nil, nil
		s.ExternalIPs, s.HeldExternalIPs = nil, nil
		if i%3 > 0 {
			s.Requested = nil
		}
	}
	for i, p := range w.Pools {
		if p.ReuseDelay, p.Leases, p.ExternalIPs = 0, nil, false; i%2 == 0 {
			p.Ranges, p.Exclude, p.Reservations, p.AvoidBuggyIPs = nil, nil, nil, false
			p.External = &world.ExternalPool{PoolRef: world.PoolRef{APIGroup: "g", Kind: "Pool", Name: p.Name},
				Family: []world.Family{world.IPv4, world.IPv6}[r.IntN(2)]}
		}
	}
	w.HeldExternalIPs, w.Unsettled, w.LeavingShared, w.Leaving = nil, nil, nil, nil
	w.Claims = &world.Claims{Namespace: "home", ByName: map[string]*world.Claim{}}
	return &provider{r, w}
}

// act applies the difference of a decision as the controller does, and lets provider and users do something.
func (p *provider) act(a *ipam.Allocation) {
	wanted, next := map[string]*world.WantedClaim{}, map[string]*world.Claim{}
	for _, c := range a.Claims() {
		wanted[c.Name] = c
		if !c.InUse && p.w.Claims.ByName[c.Name] == nil {
			next[c.Name] = &world.Claim{Name: c.Name, Namespace: c.Service.Namespace, UID: c.UID,
				Pool: c.Pool, Ref: c.Ref}
		}
	}
	for name, c := range p.w.Claims.ByName {
		if want := wanted[name]; want == nil || c.Deleting && !want.InUse {
			if p.r.IntN(2) == 0 {
				continue
			}
			left := *c // The provider has not released it yet.
			left.Deleting = true
			c = &left
		}
		next[name] = c
	}
	for _, c := range sortedClaims(next) {
		changed := *c
		switch p.r.IntN(8) {
		case 0, 1, 2:
			changed.Addr, changed.Refusal, changed.Problem = p.address(), "", ""
		case 3:
			changed.Addr, changed.Refusal = netip.Addr{}, "PoolExhausted"
		case 4:
			changed.Addr, changed.Problem = netip.Addr{}, "IPAddress a does not exist"
		case 5:
			changed.Deleting = true
		case 6:
			if p.r.IntN(4) == 0 {
				delete(next, c.Name) // with its finalizers
				continue
			}
		}
		next[c.Name] = &changed
	}
	p.w.Claims = &world.Claims{Namespace: "home", ByName: next}
}

func sortedClaims(m map[string]*world.Claim) []*world.Claim {
	var list []*world.Claim
	for _, c := range m {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *world.Claim) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// address returns one of few addresses, which worldtest's pools and nodes have, too.
func (p *provider) address() netip.Addr {
	n := byte(p.r.IntN(12))
	if p.r.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{10, 0, 0, 240 + n})
	}
	return netip.AddrFrom16([16]byte{0xfd, 15: n})
}

// Whatever a provider does: no address is given twice, no Service loses one, what a Service has stays in its pool
// without any claim (as nodes decide), and a claim whose address a Service has is not released.
func FuzzClaims(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		seed := fnv.New64()
		for _, s := range w.Services {
			seed.Write([]byte(s.Key.String() + s.SharingKey))
		}
		p := withProvider(w, rand.New(rand.NewPCG(seed.Sum64(), uint64(len(w.Pools)))))
		for range 8 {
			a := ipam.Allocate(w, threeShards)
			assertClaims(t, w, a)
			showPools(w, a)
			if d := cmp.Diff(a.Services, ipam.Allocate(w, threeShards).Services, sameOutcome); d != "" && allServed(a) {
				t.Errorf("nothing changed but the outcome:\n%s", d)
			}
			node := *w
			node.Claims = nil
			unread := ipam.Allocate(&node, threeShards)
			for k, o := range a.Services {
				for _, addr := range o.Addrs {
					got, want, has := unread.PoolOf(addr), a.PoolOf(addr), unread.Services[k].Addrs
					if got != want || !slices.Contains(has, addr) {
						t.Errorf("%s of %s: a node has it in pool %q for %v, the controller in %q", addr, k, got, has, want)
					}
				}
			}
			p.act(a)
		}
	})
}

// allServed reports whether no Service waits for another one's address.
func allServed(a *ipam.Allocation) bool {
	for _, o := range a.Services {
		if o.Reason != "" {
			return false
		}
	}
	return true
}

func assertClaims(t *testing.T, w *world.Snapshot, a *ipam.Allocation) {
	t.Helper()
	wanted := map[string]*world.WantedClaim{}
	for _, c := range a.Claims() {
		wanted[c.Name] = c
	}
	holders := map[netip.Addr][]*world.Service{}
	for _, s := range w.Services {
		o := a.Services[s.Key]
		explained(t, s, o)
		for _, had := range s.Assigned {
			if !slices.Contains(o.Addrs, had) && len(s.Requested) == 0 && s.RequestedPool == "" {
				t.Errorf("%s lost %s: %+v", s.Key, had, o)
			}
		}
		for _, addr := range o.Addrs {
			for _, other := range holders[addr] {
				if !share(s, other) {
					t.Errorf("%s is given to %s and to %s", addr, s.Key, other.Key)
				}
			}
			holders[addr] = append(holders[addr], s)
		}
	}
	for name, c := range w.Claims.ByName {
		mine := slices.ContainsFunc(holders[c.Addr], func(s *world.Service) bool {
			return slices.ContainsFunc(w.Pools, func(p *world.Pool) bool {
				return p.External != nil && p.Name == a.PoolOf(c.Addr) && world.ClaimName(p, s.UID) == name
			})
		})
		if mine && (wanted[name] == nil || !wanted[name].InUse) {
			t.Errorf("claim %s of %s is not kept: %+v", name, c.Addr, wanted[name])
		}
	}
}

// showPools writes an outcome into the statuses as the controller does, with the pools of the addresses.
func showPools(w *world.Snapshot, a *ipam.Allocation) {
	write(w, a)
	for _, s := range w.Services {
		s.GivenFrom = nil
		for _, addr := range s.Given {
			s.GivenFrom = append(s.GivenFrom, a.PoolOf(addr))
		}
	}
}
