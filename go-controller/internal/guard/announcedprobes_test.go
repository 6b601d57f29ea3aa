// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

const shardMAC, otherMAC = "0a:58:0a:32:00:01", "02:00:00:00:00:99"

// announced returns the first addresses of a shard.
func announced(n int) map[netip.Addr]announcedAddress {
	out := map[netip.Addr]announcedAddress{}
	for a := netip.MustParseAddr("10.50.0.0"); len(out) < n; a = a.Next() {
		out[a] = announcedAddress{mac: shardMAC, network: "provider", vlan: 7}
	}
	return out
}

func claimOf(a netip.Addr, mac string) neighbour.Answer {
	return neighbour.Answer{Addr: a, MAC: mac, VLAN: 7}
}

// prober is a running announcedProber on a virtual clock.
type prober struct {
	*announcedProber
	asked, reports atomic.Int64
	addrs          atomic.Pointer[map[netip.Addr]announcedAddress]
	last           atomic.Pointer[map[netip.Addr]convert.ConflictReport]
}

func newProber(t *testing.T, addrs map[netip.Addr]announcedAddress) *prober {
	t.Helper()
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &prober{}
	p.addrs.Store(&addrs)
	networks := func() (map[string]ovn.Uplinks, bool) {
		p.asked.Add(1) // Each probe asks for the networks.
		return map[string]ovn.Uplinks{"provider": {Links: []ovn.Uplink{{Name: "eth1", NoCarrier: true}}}}, true
	}
	list := func(context.Context) (map[netip.Addr]announcedAddress, error) {
		if now := p.addrs.Load(); now != nil {
			return *now, nil
		}
		return nil, errors.New("no database")
	}
	p.announcedProber = newAnnouncedProber(networks, list, func(found map[netip.Addr]convert.ConflictReport) {
		p.reports.Add(1)
		p.last.Store(&found)
	})
	p.metrics = m
	go p.run(t.Context())
	synctest.Wait()
	return p
}

// wait lets time pass and returns the number of probes in it.
func (p *prober) wait(d time.Duration) int64 {
	before := p.asked.Load()
	<-time.After(d)
	synctest.Wait()
	return p.asked.Load() - before
}

// hears lets the prober receive a claim of an address on a device.
func (p *prober) hears(device string, a netip.Addr, mac string) {
	p.received <- receivedAnswer{device, claimOf(a, mac)}
	synctest.Wait()
}

// Each announced address is probed once per round, evenly spread, and many addresses at a limited rate.
func TestAnnouncedAddressesAreProbedInTurn(t *testing.T) {
	for _, c := range []struct {
		addrs int
		in    time.Duration
		want  int64
	}{
		{0, time.Hour, 0}, {1, 10 * announcedInterval, 10}, {30, 10 * time.Second, 10}, {1500, announcedInterval, 1500},
		{10000, announcedInterval, 1500}, {10000, 200 * time.Second, 10000},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := newProber(t, announced(c.addrs)).wait(c.in); got != c.want {
				t.Errorf("%d addresses: %d probes in %s, want %d", c.addrs, got, c.in, c.want)
			}
		})
	}
}

// The order of probes does not start over when addresses come and go: each has its turn.
func TestAnnouncedAddressesKeepTheirTurns(t *testing.T) {
	var q announcedProbes
	q.set(announced(10), time.Now())
	for range 4 {
		q.next()
	}
	q.set(announced(20), time.Now())
	if a, _, _ := q.next(); a.String() != "10.50.0.4" {
		t.Errorf("next is %s, want the one after the last", a)
	}
	q.set(announced(2), time.Now())
	if a, _, last := q.next(); a.String() != "10.50.0.0" || last {
		t.Errorf("next is %s, want the first", a)
	}
}

// A host that claims an announced address is reported until it has left three probes unanswered. Our own router, other
// segments and other addresses are not reported.
func TestHostWithAnAnnouncedAddressIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := netip.MustParseAddr("10.50.0.3")
		p := newProber(t, announced(10))
		expect := func(when string, want map[netip.Addr]convert.ConflictReport) {
			t.Helper()
			synctest.Wait()
			if got := p.last.Load(); got == nil || !maps.Equal(*got, want) {
				t.Errorf("%s: reported %v, want %v", when, got, want)
			}
		}
		p.wait(announcedInterval - time.Second)
		if p.last.Load() != nil {
			t.Error("reported before all addresses were probed")
		}
		p.wait(time.Second + conflictReportInterval)
		expect("no other host", nil)
		for _, claim := range []neighbour.Answer{claimOf(a, shardMAC), {Addr: a, MAC: otherMAC},
			claimOf(netip.MustParseAddr("10.50.0.99"), otherMAC)} {
			p.received <- receivedAnswer{"eth1", claim}
		}
		p.hears("eth2", a, otherMAC)
		p.wait(time.Minute)
		expect("none of these is another host", nil)

		found := map[netip.Addr]convert.ConflictReport{a: {MAC: otherMAC, Since: time.Now().UTC().Truncate(time.Second)}}
		p.hears("eth1", a, otherMAC)
		expect("claimed", found)
		for range 5 {
			p.wait(announcedInterval)
			p.hears("eth1", a, "02:00:00:00:00:98")
		}
		expect("answered by another one", found)
		p.wait(announcedProbeNum * announcedInterval)
		expect("just gone", found)
		p.wait(announcedInterval)
		expect("gone", nil)

		p.hears("eth1", a, otherMAC)
		p.wait(conflictReportInterval)
		p.addrs.Store(nil)
		for range 4 {
			p.hears("eth1", a, otherMAC)
			p.wait(announcedInterval)
		}
		if len(*p.last.Load()) != 1 {
			t.Error("the addresses can't be read for a moment: the conflict is forgotten")
		}
		p.wait(time.Minute)
		expect("and for long", nil)
	})
}

// An address was withdrawn since the addresses were read, another host takes it for a while, and it is announced again.
// The answer meanwhile was no conflict with what this node announces.
func TestAnswerForAWithdrawnAddressIsNoConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, before := netip.MustParseAddr("10.50.0.3"), announced(10)
		p := newProber(t, before)
		p.wait(announcedInterval + conflictReportInterval)
		without := maps.Clone(before)
		delete(without, a)
		p.addrs.Store(&without)
		p.hears("eth1", a, otherMAC)
		p.wait(time.Second)
		p.addrs.Store(&before)
		p.wait(2 * announcedInterval)
		if found := *p.last.Load(); len(found) > 0 {
			t.Errorf("reported %v", found)
		}
		p.hears("eth1", a, otherMAC)
		p.wait(conflictReportInterval)
		if found := *p.last.Load(); len(found) != 1 {
			t.Errorf("announced again: reported %v", found)
		}
	})
}

// A host that claims everything fills no Lease, and causes few reports.
func TestHostThatClaimsAllAnnouncedAddressesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const addrs = 3 * convert.MaxAnnouncedConflicts
		p := newProber(t, announced(addrs))
		p.wait(announcedInterval + conflictReportInterval)
		before := p.reports.Load()
		for range 10 {
			for a := range announced(addrs) {
				p.received <- receivedAnswer{"eth1", claimOf(a, otherMAC)}
			}
			p.wait(time.Second)
		}
		if n := p.reports.Load() - before; n > 3 || len(*p.last.Load()) != convert.MaxAnnouncedConflicts {
			t.Errorf("%d conflicts in %d reports within 10 s", len(*p.last.Load()), n)
		}
	})
}
