// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// scale is how much smaller plans and figures are in these tests. A large plan has large backends and 1.2 MB / scale.
const (
	scale = 10
	large = 5000 / scale
)

// plans returns the plans of Services with the given number of backends. Those of another version have other backends.
func plans(namespace string, services, backends, version int) map[world.Key]*plan.Service {
	out := map[world.Key]*plan.Service{}
	for i := range services {
		key := world.Key{Namespace: namespace, Name: fmt.Sprintf("web-%d", i)}
		vip := netip.AddrFrom4([4]byte{10, 50, byte(len(namespace)), byte(i)})
		l := plan.Listener{VIP: vip, Protocol: world.TCP, Port: 80}
		for n := range backends {
			l.Backends = append(l.Backends, plan.Backend{Node: strings.Repeat("n", 200), Addr: netip.AddrPortFrom(
				netip.AddrFrom4([4]byte{10, 244, byte(n >> 8), byte(n)}), uint16(8000+version))})
		}
		out[key] = &plan.Service{Key: key, VIPs: []plan.VIP{{Addr: vip, Shard: world.ShardID{Domain: "lan"}}},
			Listeners: []plan.Listener{l}}
	}
	return out
}

// isVersion reports whether a plan is that of plans with this version.
func isVersion(s *v1alpha1.ServicePlanSpec, version int) bool {
	return s != nil && len(s.Listeners) == 1 && len(s.Listeners[0].Backends) > 0 &&
		strings.HasSuffix(s.Listeners[0].Backends[0].Address, fmt.Sprint(":", 8000+version))
}

// A tenant with large Services changes all of them each second. What is written of them is limited. Another tenant's
// Services, and small ones, are written at once. In the end, the newest plans are published.
func TestPlansOfANamespaceArePaced(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services, seconds = 4, 6
		small := world.Key{Namespace: "wide", Name: "small"}
		other := world.Key{Namespace: "other", Name: "web-0"}
		for version := range seconds {
			changed := plans("wide", services, large, version)
			for key, p := range plans("other", 1, large, version) {
				changed[key] = p
			}
			changed[small] = plans("little", 1, 100, version)[world.Key{Namespace: "little", Name: "web-0"}]
			changed[small].Key = small
			b.runner.Change(changed)
			for _, key := range []world.Key{small, other} {
				if !isVersion(b.published(key), version) {
					t.Errorf("version %d of %s is not published", version, key)
				}
			}
			<-time.After(time.Second)
		}
		if most := int64(paceBurst+(seconds+1)*paceRate) / scale; b.written.Load() > most {
			t.Errorf("%d bytes were written in %d seconds, want at most %d", b.written.Load(), seconds, most)
		}
		<-time.After(2 * services * time.Second)
		for key := range plans("wide", services, 0, 0) {
			if !isVersion(b.published(key), seconds-1) {
				t.Errorf("the newest plan of %s is not published", key)
			}
			if got := b.runner.Result(key); got == nil || got.Err != nil || got.Postponed {
				t.Errorf("result of %s: %+v", key, got)
			}
		}
	})
}

// A plan that waits while the published one has an address that the Service gave up would take another Service's
// clients. It is written before others or, if there are too many, the published one is deleted until its turn.
func TestAddressesAreFreedAtOnce(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services = 4
		moved := func(version int) map[world.Key]*plan.Service {
			all := plans("wide", services, large, version)
			for key, p := range all {
				p.VIPs[0].Addr = netip.AddrFrom4([4]byte{10, 60, byte(version), p.VIPs[0].Addr.As4()[3]})
				p.Listeners[0].VIP, all[key] = p.VIPs[0].Addr, p
			}
			return all
		}
		deleted := 0
		for version := range 5 {
			all := moved(version)
			b.runner.Change(all)
			for key, p := range all {
				switch s := b.published(key); {
				case s == nil && version <= 2: // those of the first version have another limit
					t.Errorf("version %d of %s is not published", version, key)
				case s == nil:
					deleted++
				case s.VIPs[0].Address != p.VIPs[0].Addr.String():
					t.Errorf("version %d of %s: published with address %s", version, key, s.VIPs[0].Address)
				}
			}
		}
		if most := int64(3*paceBurst) / scale; deleted == 0 || b.written.Load() > most {
			t.Errorf("%d plans without a turn, %d bytes written at once, want at most %d", deleted, b.written.Load(), most)
		}
		<-time.After(2 * services * time.Second)
		for key, p := range moved(4) {
			if s := b.published(key); s == nil || s.VIPs[0].Address != p.VIPs[0].Addr.String() || !isVersion(s, 4) {
				t.Errorf("%s has no address when it is due", key)
			}
		}
	})
}

// A Service that is deleted is removed at once, whether its plan was written or waits.
func TestDeletionIsNotPaced(t *testing.T) {
	withPublisher(t, func(t *testing.T, b *publishing) {
		const services = 10
		b.runner.Change(plans("wide", services, large, 0))
		waiting := 0
		for key := range plans("wide", services, 0, 0) {
			if b.published(key) == nil {
				waiting++
			}
		}
		if waiting == 0 {
			t.Error("no plan waits")
		}
		gone := map[world.Key]*plan.Service{}
		for key := range plans("wide", services, 0, 0) {
			gone[key] = nil
		}
		b.runner.Change(gone)
		for key := range gone {
			if b.published(key) != nil {
				t.Errorf("%s is still published", key)
			}
		}
		if results := b.runner.Results(); len(results) > 0 {
			t.Errorf("%d results", len(results))
		}
		// What was not written delays nothing.
		one := world.Key{Namespace: "wide", Name: "web-0"}
		for version := range 10 {
			b.runner.Change(plans("wide", services, large, version))
			b.published(one)
			b.runner.Change(gone)
			b.published(one)
		}
		b.runner.Change(plans("wide", 1, large, 0))
		<-time.After(services * time.Second)
		if b.published(one) == nil {
			t.Error("a Service waits for those that are gone")
		}
	})
}

// A plan that is too large for etcd stays an error until the Service is smaller. It is published without listeners.
func TestTooLargePlanIsAnError(t *testing.T) {
	withPublisherOf(t, newPace(paceRate, paceBurst), func(t *testing.T, b *publishing) {
		p := wide(8000, 1, 10, true)
		b.runner.Change(map[world.Key]*plan.Service{p.Key: p})
		if s := b.published(p.Key); s == nil || len(s.Listeners) != 8000 || b.runner.Result(p.Key).Err != nil {
			t.Error("it is not published when it fits")
		}
		b.runner.Change(map[world.Key]*plan.Service{p.Key: wide(8000, 1, 250, true)})
		s, got := b.published(p.Key), b.runner.Result(p.Key)
		if s == nil || len(s.VIPs) != 1 || s.Listeners != nil || got.Err == nil ||
			!strings.Contains(got.Err.Error(), "fewer ports or endpoints") {
			t.Errorf("published %.200v, result %.200v", s, got)
		}
	})
}

// A rolling update of a Service with 100 backends whose pods all change in one second is not delayed.
func TestRollingUpdateIsNotPaced(t *testing.T) {
	p, now := newPace(paceRate, paceBurst), time.Unix(1000, 0)
	for version := range 400 {
		for key, want := range plans("wide", 1, 100, version) {
			spec := Encode(want, nil)
			if due := p.next(key, sizeOf(&spec), false, now); due.After(now) {
				t.Fatalf("change %d waits for %v", version, due.Sub(now))
			}
			p.endTurn(key, true)
		}
	}
	if p.prune(now); len(p.paid) != 1 {
		t.Errorf("%d limits", len(p.paid))
	}
	if p.prune(now.Add(20 * time.Second)); len(p.paid) != 0 {
		t.Errorf("%d limits after all of them were written", len(p.paid))
	}
}

// Plans that were to be written of Services that are gone delay no other, and a plan that grows while it waits delays
// others as one that was as large from the start.
func TestPlansPayForWhatIsWritten(t *testing.T) {
	const size = 1_000_000
	p, now := newPace(paceRate, paceBurst), time.Unix(1000, 0)
	key := func(i int) world.Key { return world.Key{Namespace: "wide", Name: fmt.Sprint("web-", i)} }
	expect := func(i, size int, urgent bool, want time.Duration) {
		t.Helper()
		if got := p.next(key(i), size, urgent, now).Sub(now); got != want {
			t.Errorf("Service %d waits for %v, want %v", i, got, want)
		}
	}
	for i := range 10 {
		expect(i, size, false, 0)
		p.endTurn(key(i), true)
	}
	for i := range 1000 {
		expect(10+i, size, false, time.Second)
		p.endTurn(key(10+i), false)
	}
	expect(1, smallPlan+1, false, p.cost(smallPlan+1))
	expect(1, size, false, p.cost(smallPlan+1))
	expect(2, size, false, 2*time.Second)
	expect(2, size, true, 0)
	p.endTurn(key(2), true)
	expect(3, size, false, 2*time.Second)
	now = now.Add(time.Hour)
	expect(3, size, false, 2*time.Second-time.Hour)
	expect(3, size, false, 2*time.Second-time.Hour)
}
