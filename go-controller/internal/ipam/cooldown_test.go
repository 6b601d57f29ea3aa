// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// No other Service gets the addresses of a deleted Service until the delay has passed, whether it requests them or
// not, unless it shared the address. Afterwards no address is in cooldown.
func FuzzCooldown(f *testing.F) {
	property(f, func(t *testing.T, w *world.Snapshot) {
		pass := func() *ipam.Allocation {
			a := ipam.Allocate(w, threeShards)
			write(w, a)
			return a
		}
		for range 2 * len(w.Services) {
			pass()
		}
		gone, start := w.Services[0], w.Now
		w.Services = w.Services[1:]
		for i, s := range w.Services {
			if i%2 == 0 {
				s.Requested = gone.Assigned
			}
		}
		for range 8 {
			after := pass()
			for _, a := range gone.Assigned {
				if delayOf(w, after.PoolOf(a)) > w.Now.Sub(start) {
					assertUnassigned(t, w, after, a, gone)
				}
			}
			w.Now = w.Now.Add(time.Second)
		}
		// The end of a cooldown may let another Service move, and its former address enters a cooldown.
		for range 2 * len(w.Services) {
			pass()
			w.Now = w.Now.Add(10 * time.Second)
		}
		for name, use := range pass().Pools {
			if use.Cooldown4+use.Cooldown6 != 0 || !use.NextCooldownEnd.IsZero() {
				t.Errorf("pool %s: all delays have passed, and some are in cooldown until %s", name, use.NextCooldownEnd)
			}
		}
	})
}

func delayOf(w *world.Snapshot, pool string) time.Duration {
	i := slices.IndexFunc(w.Pools, func(p *world.Pool) bool { return p.Name == pool })
	if i < 0 {
		return 0
	}
	return w.Pools[i].ReuseDelay
}

func assertUnassigned(t *testing.T, w *world.Snapshot, a *ipam.Allocation, addr netip.Addr, but *world.Service) {
	t.Helper()
	for k, o := range a.Services {
		if slices.Contains(o.Addrs, addr) && !share(but, byKey(w)[k]) {
			t.Errorf("%s is given to %s at %s although it is in cooldown for %s", addr, k, w.Now, but.Key)
		}
	}
}

// However fast addresses are allocated and released, a pool records a bounded number of cooldowns, the latest ones.
func TestCooldownsOverTheLimitEndEarly(t *testing.T) {
	const over = 7
	w := worldtest.Large(0, 0)
	w.Now = time.Unix(1_000_000, 0)
	p := w.Pools[0]
	p.ReuseDelay = 24 * time.Hour
	first := netip.MustParseAddr("10.0.1.1")
	for a, i := first, 0; i < v1alpha1.MaxLeases+over; a, i = a.Next(), i+1 {
		p.Leases = append(p.Leases, world.Lease{Addr: a, Service: world.Key{Namespace: "shop", Name: "web"},
			Released: w.Now.Add(time.Duration(i-10_000) * time.Second)})
	}
	use := ipam.Allocate(w, threeShards).Pools[p.Name]
	oldest := p.Leases[over]
	if n := len(use.Leases); n != v1alpha1.MaxLeases || use.Leases[n-1] != oldest {
		t.Errorf("%d leases, the last %v; want %d and %v", n, use.Leases[n-1], v1alpha1.MaxLeases, oldest)
	}
	if want := oldest.Released.Add(p.ReuseDelay); !use.NextCooldownEnd.Equal(want) {
		t.Errorf("the first cooldown ends at %s, want %s", use.NextCooldownEnd, want)
	}
}

// The limit of a pool does not end the cooldowns of all namespaces if there are more of these than cooldowns.
func TestCooldownsOfMoreNamespacesThanTheLimit(t *testing.T) {
	w := worldtest.Large(0, 0)
	w.Now = time.Unix(1_000_000, 0)
	p := w.Pools[0]
	p.ReuseDelay = 24 * time.Hour
	for a, i := netip.MustParseAddr("10.0.1.1"), 0; i <= v1alpha1.MaxLeases; a, i = a.Next(), i+1 {
		p.Leases = append(p.Leases, world.Lease{Addr: a, Released: w.Now.Add(time.Duration(i-10_000) * time.Second),
			Service: world.Key{Namespace: fmt.Sprintf("tenant-%d", i), Name: "web"}})
	}
	leases, oldest := ipam.Allocate(w, threeShards).Pools[p.Name].Leases, p.Leases[1]
	if n := len(leases); n != v1alpha1.MaxLeases || leases[n-1] != oldest {
		t.Errorf("%d leases, want %d, of which %v is the oldest", n, v1alpha1.MaxLeases, oldest)
	}
}

// A tenant within its quota, whose Services share addresses, does not end the cooldown of another tenant's address:
// each of its Services has a lease of each of them.
func TestCooldownsOfSharersEndNoOther(t *testing.T) {
	const quota, sharers = 50, v1alpha1.MaxLeases/50 + 1
	w := worldtest.Large(1, 0)
	w.Now = time.Unix(1_800_000_000, 0)
	p, victim := w.Pools[0], w.Services[0]
	p.ReuseDelay, p.Quota, p.ExternalIPs = 10*time.Minute, quota, true
	var shared []netip.Addr
	for i := range quota {
		shared = append(shared, netip.AddrFrom4([4]byte{10, 0, 99, byte(i + 1)}))
	}
	for i := range sharers {
		s := *victim
		s.Key = world.Key{Namespace: "other", Name: fmt.Sprintf("web-%d", i)}
		s.Families, s.SharingKey, s.ExternalIPs = []world.Family{world.IPv6}, "key", shared
		s.Requested = []netip.Addr{netip.MustParseAddr("fd01::1")} // none that it gets
		s.Ports = []world.Port{{Protocol: world.TCP, Port: uint16(i + 1)}}
		w.Services = append(w.Services, &s)
	}
	pass := func() *ipam.Allocation {
		w.Now = w.Now.Add(time.Second)
		a := ipam.Allocate(w, threeShards)
		write(w, a)
		return a
	}
	if n := len(pass().Services[w.Services[sharers].Key].HeldExternal); n != quota {
		t.Fatalf("the last Service has %d external addresses, want %d", n, quota)
	}
	addr, rest := victim.Assigned[0], w.Services[1:]
	w.Services = rest
	pass()
	thief := *rest[0]
	thief.Key.Name, thief.ExternalIPs, thief.SharingKey, thief.HeldExternalIPs = "thief", nil, "", nil
	thief.Families, thief.Requested = []world.Family{world.IPv4}, []netip.Addr{addr}
	w.Services = []*world.Service{&thief}
	pass()
	if o := pass().Services[thief.Key]; o.Reason != ipam.ReasonAddressCoolingDown {
		t.Errorf("another tenant gets address %s of Service %s, which is in cooldown: %+v", addr, victim.Key, o)
	}
}
