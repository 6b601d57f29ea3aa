// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/responder"
)

// respond starts a responder and returns its TCP and UDP ports.
func respond(t *testing.T) (tcp, udp netip.AddrPort) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	up, ended := make(chan [2]uint16, 1), make(chan error, 1)
	go func() {
		ended <- responder.Run(ctx, responder.Options{Name: "web", TCP: []uint16{0}, UDP: []uint16{0},
			Listening: func(tcp, udp []uint16) error {
				up <- [2]uint16{tcp[0], udp[0]}
				return nil
			}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	local := netip.MustParseAddr("127.0.0.1")
	select {
	case ports := <-up:
		return netip.AddrPortFrom(local, ports[0]), netip.AddrPortFrom(local, ports[1])
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return tcp, udp
	}
}

func TestCountedUnitsAreAnsweredOnceEach(t *testing.T) {
	tcp, udp := respond(t)
	for _, kind := range []Kind{Connect, Request, Datagram} {
		target := tcp
		if kind == Datagram {
			target = udp
		}
		const count = 50
		r, err := Run(t.Context(), Spec{Kind: kind, Targets: []netip.AddrPort{target, target}, Workers: 4,
			Duration: await.Limit, Count: count})
		if err != nil || r.Units != count || r.Failed != 0 {
			t.Errorf("%s: %+v, %v, want %d units", kind, r, err, count)
		}
	}
}

func TestStreamCountsWhatTheResponderConfirms(t *testing.T) {
	tcp, _ := respond(t)
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	r := newRun(ctx, Spec{Kind: Stream, Targets: []netip.AddrPort{tcp}, Workers: 1, Duration: await.Limit})
	ended := make(chan struct{})
	go func() { defer close(ended); r.work(0) }()
	await.True(t, "a chunk is confirmed", func() bool { return r.units.Load() > 0 })
	cancel()
	<-ended
	if units, failed := r.units.Load(), r.failed.Load(); units%chunk != 0 || failed != 0 {
		t.Errorf("%d bytes confirmed, %d failures", units, failed)
	}
}

func TestRefusedConnectionsAreFailures(t *testing.T) {
	closed := netip.MustParseAddrPort("127.0.0.1:1")
	for _, kind := range []Kind{Connect, Request} {
		r, err := Run(t.Context(), Spec{Kind: kind, Targets: []netip.AddrPort{closed}, Workers: 1, Duration: await.Limit,
			Count: 3})
		if err != nil || r.Units != 0 || r.Failed != 3 || r.Error == "" {
			t.Errorf("%s: %+v, %v, want 3 failures and a reason", kind, r, err)
		}
	}
}

func TestSpecsAreValidated(t *testing.T) {
	good := Spec{Kind: Stream, Targets: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}, Workers: 1, Duration: 1}
	for name, change := range map[string]func(*Spec){
		"kind": func(s *Spec) { s.Kind = "x" }, "targets": func(s *Spec) { s.Targets = nil },
		"workers": func(s *Spec) { s.Workers = 0 }, "duration": func(s *Spec) { s.Duration = 0 },
		"count": func(s *Spec) { s.Count = -1 },
	} {
		bad := good
		change(&bad)
		if bad.validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
}

// The segments were computed by another implementation of RFC 9293.
func TestSYNHasTheChecksumOfItsFamily(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"192.0.2.1:1024", "192.0.2.2:80", "0400005004000000000000005002ffff238f0000"},
		{"[2001:db8::1]:1024", "[2001:db8::2]:80", "0400005004000000000000005002ffff4c1e0000"},
	} {
		got := syn(netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to))
		if text := hex.EncodeToString(got); text != c.want {
			t.Errorf("%s to %s: %s, want %s", c.from, c.to, text, c.want)
		}
	}
}

func TestFloodsAreValidated(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	good := Flood{Target: netip.MustParseAddrPort("192.0.2.2:80"), Sources: []netip.Addr{v4, v4}, Count: 100_000, Rate: 1}
	for name, change := range map[string]func(*Flood){
		"family": func(f *Flood) { f.Sources = []netip.Addr{v4, v6} }, "pairs": func(f *Flood) { f.Sources = f.Sources[:1] },
		"rate": func(f *Flood) { f.Rate = 0 }, "count": func(f *Flood) { f.Count = 0 },
	} {
		bad := good
		change(&bad)
		if bad.validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
}
