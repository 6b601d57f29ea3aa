// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A gateway that died leaves its last report behind.
func TestTheLaterClaimIsTheCurrentOne(t *testing.T) {
	w := observed(func(_, _ *world.ZoneAgent) {})
	want := map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2",
		Order: []string{"n2", "n1"}}}
	if diff := cmp.Diff(want, w.ShardStates); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w = observed(func(_, n2 *world.ZoneAgent) { n2.Silent = true })
	if got := w.ShardStates[world.ShardID{Domain: "lan"}].Active; got != "n1" {
		t.Errorf("active: %s, though only c1 reports", got)
	}
	w = observed(func(n1, n2 *world.ZoneAgent) { n1.Silent, n2.Silent = true, true })
	if got := w.ShardStates[world.ShardID{Domain: "lan"}].Active; got != "n2" {
		t.Errorf("active: %s, while neither reports", got)
	}
	bridges := map[string]world.Bridges{"c1": {"physnet": "br-p"}, "c2": {"physnet": "br-p"}}
	if diff := cmp.Diff(bridges, w.Bridges); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The clocks of two nodes differ, and only time shows that a claim has settled.
func TestClaimsAreTimedByTheClockOfTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changed atomic.Int32
		p := New(Options{Changed: func() { changed.Add(1) }})
		shard := world.ShardID{Domain: "lan"}
		start := time.Now()
		ahead, behind := start.Add(-time.Minute), start.Add(-time.Hour)
		unreachable := false
		observe := func(n1, n2 map[world.ShardID]time.Time) world.ShardState {
			w := &world.Snapshot{Now: time.Now(),
				Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1", "n2"}}}},
				Nodes: []*world.Node{{Name: "n1", Chassis: "c1", Unreachable: unreachable,
					Agent: &world.ZoneAgent{Claims: n1}}, {Name: "n2", Chassis: "c2", Agent: &world.ZoneAgent{Claims: n2}}}}
			p.Observe(w)
			return w.ShardStates[shard]
		}
		both := []string{"n1", "n2"}
		check := func(got, want world.ShardState) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		dead := map[world.ShardID]time.Time{shard: ahead}
		check(observe(dead, nil), world.ShardState{Active: "n1", Settled: true, Order: both})
		<-time.After(time.Second)
		heir := map[world.ShardID]time.Time{shard: behind}
		check(observe(dead, heir), world.ShardState{Active: "n2", Order: both})
		changed.Store(0)
		<-time.After(settleTime)
		synctest.Wait()
		if changed.Load() == 0 {
			t.Error("nothing wakes the controller when the claim has settled")
		}
		check(observe(dead, heir), world.ShardState{Active: "n2", Order: both})
		unreachable = true
		check(observe(dead, heir), world.ShardState{Active: "n2", Settled: true, Order: both})
	})
}

// A claim that another one has superseded does not count again because the other node's report has expired: a node that
// has booted renews what it reported before, with its claims of then.
func TestASupersededClaimDoesNotCountAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shard := New(Options{}), world.ShardID{Domain: "lan"}
		dead := &world.ZoneAgent{Claims: map[world.ShardID]time.Time{shard: time.Now()}}
		next, off := &world.ZoneAgent{}, false
		active := func() string {
			w := &world.Snapshot{Now: time.Now(),
				Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1", "n2"}}}},
				Nodes: []*world.Node{{Name: "n1", Chassis: "c1", Agent: dead, Unreachable: off},
					{Name: "n2", Chassis: "c2", Agent: next}}}
			p.Observe(w)
			return w.ShardStates[shard].Active
		}
		check := func(when, want string) {
			t.Helper()
			if got := active(); got != want {
				t.Errorf("%s: active %q, want %q", when, got, want)
			}
			<-time.After(time.Minute)
		}
		check("claimed", "n1")
		next.Claims = map[world.ShardID]time.Time{shard: time.Now()}
		check("claimed by the next", "n2")
		dead.Silent, off = true, true
		check("the first is lost", "n2")
		dead.Silent, next.Silent, off = false, true, false
		check("it is renewed, and that of the next has expired", "n2")
		dead.Claims = map[world.ShardID]time.Time{shard: time.Now()}
		check("claimed anew", "n1")
		dead.Claims = nil
		check("released", "n2")
	})
}

// A forged claim leaves nothing behind: the claim of the gateway that stood by it throughout counts when the report of
// the other node expires, although the claim in that report stays.
func TestAClaimThatStandsCountsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shard := New(Options{}), world.ShardID{Domain: "lan"}
		is := &world.ZoneAgent{Claims: map[world.ShardID]time.Time{shard: time.Now()}}
		forged := &world.ZoneAgent{}
		active := func() world.ShardState {
			w := &world.Snapshot{Now: time.Now(),
				Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1", "n2"}}}},
				Nodes:   []*world.Node{{Name: "n1", Chassis: "c1", Agent: is}, {Name: "n2", Chassis: "c2", Agent: forged}}}
			p.Observe(w)
			return w.ShardStates[shard]
		}
		active()
		<-time.After(time.Minute)
		forged.Claims = map[world.ShardID]time.Time{shard: time.Now()}
		if got := active(); got.Active != "n2" || got.Settled {
			t.Errorf("forged: %+v", got)
		}
		<-time.After(time.Minute)
		forged.Silent = true
		if got := active(); got.Active != "n1" || !got.Settled {
			t.Errorf("the report of the forger has expired: %+v", got)
		}
	})
}

// The claim of a node takes no shard from a gateway that stands by its own: the order of gateways stays as it is, also
// after a restart of the controller, whatever time the node writes. It does once the other one is gone or does not
// work.
func TestAClaimTakesNoShardFromAGatewayThatStands(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	for name, c := range map[string]struct {
		change  func(is, forged *world.Node)
		settled bool
	}{
		"stands":                {func(_, _ *world.Node) {}, false},
		"written in the past":   {func(_, forged *world.Node) { forged.Agent.Claims[shard] = time.Unix(1, 0) }, false},
		"can't be changed":      {func(is, _ *world.Node) { is.Agent.Unwritable = "the northbound database is away" }, false},
		"no longer claims":      {func(is, _ *world.Node) { is.Agent.Claims = nil }, true},
		"silent":                {func(is, _ *world.Node) { is.Agent.Silent = true }, false},
		"its kubelet is silent": {func(is, _ *world.Node) { is.Unreachable = true }, true},
		"its guard has a fault": {func(is, _ *world.Node) {
			is.Faults = map[string]world.Fault{"physnet": {Kind: world.FaultUplink, Message: "no carrier"}}
		}, true},
		"its zone has a fault": {func(is, _ *world.Node) { is.Agent.Problem = "the southbound database is away" }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			for _, restarted := range []bool{false, true} {
				p := New(Options{})
				claims := func(at time.Time) map[world.ShardID]time.Time { return map[world.ShardID]time.Time{shard: at} }
				is := &world.Node{Name: "n1", Chassis: "c1", Agent: &world.ZoneAgent{Claims: claims(time.Now())}}
				observe := func(nodes ...*world.Node) world.ShardState {
					w := &world.Snapshot{Now: time.Now(), Nodes: nodes,
						Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1", "n2"}}}}}
					p.Observe(w)
					return w.ShardStates[shard]
				}
				if got := observe(is); got.Active != "n1" {
					t.Fatalf("%s: the only claim: %+v", name, got)
				}
				<-time.After(time.Minute)
				forged := &world.Node{Name: "n2", Chassis: "c2", Agent: &world.ZoneAgent{Claims: claims(time.Now())}}
				c.change(is, forged)
				if restarted {
					p = New(Options{})
				}
				observe(is, forged)
				<-time.After(settleTime)
				if got := observe(is, forged); got.Settled != c.settled {
					t.Errorf("%s, restarted %t: %+v, want settled %t", name, restarted, got, c.settled)
				}
			}
		})
	}
}

// The clock of a node counts only for the claims that exist at the start, not whenever no shard is claimed.
func TestClaimsAfterAnOutageOfAllGatewaysHaveNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{})
		shard := world.ShardID{Domain: "lan"}
		observe := func(claims map[world.ShardID]time.Time) world.ShardState {
			w := &world.Snapshot{Now: time.Now(),
				Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1"}}}},
				Nodes:   []*world.Node{{Name: "n1", Chassis: "c1", Agent: &world.ZoneAgent{Claims: claims}}}}
			p.Observe(w)
			return w.ShardStates[shard]
		}
		for range 2 {
			observe(nil)
		}
		claimed := map[world.ShardID]time.Time{shard: time.Now().Add(-time.Hour)} // its clock is behind
		if got := observe(claimed); got.Active != "n1" || got.Settled {
			t.Errorf("claimed just now: %+v", got)
		}
		<-time.After(settleTime)
		if got := observe(claimed); !got.Settled {
			t.Errorf("claimed a while ago: %+v", got)
		}
	})
}

// A node that was cut off claims a shard when it returns, until its BFD session with the active gateway is up. Its
// claim does not count meanwhile, unless the other one is gone or does not work. That of a gateway that was not cut off
// counts at once.
func TestClaimOfAReturningNodeDoesNotCountYet(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	cutOff, back := &world.Tunnels{AllDown: 2}, &world.Tunnels{}
	missing := func(chassis string) *world.Tunnels { return &world.Tunnels{Down: []string{chassis}} }
	for name, c := range map[string]struct {
		tunnels, later *world.Tunnels
		change         func(is *world.Node)
		want, wantThen string
	}{
		"cut off":                     {tunnels: cutOff, later: cutOff, want: "n1", wantThen: "n1"},
		"then it reaches all":         {tunnels: cutOff, later: back, want: "n1", wantThen: "n2"},
		"then it reaches another one": {tunnels: cutOff, later: missing("c1"), want: "n1", wantThen: "n1"},
		"then it misses another one":  {tunnels: cutOff, later: missing("c3"), want: "n1", wantThen: "n2"},
		"it was not cut off":          {tunnels: back, later: missing("c1"), want: "n2", wantThen: "n2"},
		"without a guard":             {want: "n2", wantThen: "n2"},
		"the other one releases it": {tunnels: cutOff, later: cutOff, want: "n2", wantThen: "n2",
			change: func(is *world.Node) { is.Agent.Claims = nil }},
		"the other one's kubelet is gone": {tunnels: cutOff, later: cutOff, want: "n2", wantThen: "n2",
			change: func(is *world.Node) { is.Unreachable = true }},
		"the other one has no uplink": {tunnels: cutOff, later: cutOff, want: "n2", wantThen: "n2",
			change: func(is *world.Node) {
				is.Faults = map[string]world.Fault{"physnet": {Kind: world.FaultUplink, Message: "no carrier"}}
			}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := New(Options{})
			claims := func() map[world.ShardID]time.Time { return map[world.ShardID]time.Time{shard: time.Now()} }
			is := &world.Node{Name: "n1", Chassis: "c1", Agent: &world.ZoneAgent{Claims: claims()}}
			returning := &world.Node{Name: "n2", Chassis: "c2", Agent: &world.ZoneAgent{}, Tunnels: c.tunnels}
			active := func() string {
				w := &world.Snapshot{Now: time.Now(), Nodes: []*world.Node{is, returning},
					Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1", "n2"}}}}}
				p.Observe(w)
				return w.ShardStates[shard].Active
			}
			if got := active(); got != "n1" {
				t.Fatalf("%s: the only claim: active %q", name, got)
			}
			<-time.After(time.Minute)
			returning.Agent.Claims = claims()
			if c.change != nil {
				c.change(is)
			}
			if got := active(); got != c.want {
				t.Errorf("%s: active %q, want %q", name, got, c.want)
			}
			<-time.After(time.Second)
			returning.Tunnels = c.later
			if got := active(); got != c.wantThen {
				t.Errorf("%s: then active %q, want %q", name, got, c.wantThen)
			}
		})
	}
}

func TestGatewaysThatContestAShardAreItsRivals(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	for name, c := range map[string]struct {
		change func(n1, n2 *world.ZoneAgent)
		want   []string
	}{
		"the later claim is active, the other current": {func(n1, _ *world.ZoneAgent) {
			n1.Contested = map[world.ShardID]bool{shard: true}
		}, []string{"n1"}},
		"the report has expired": {func(n1, _ *world.ZoneAgent) {
			n1.Contested, n1.Silent = map[world.ShardID]bool{shard: true}, true
		}, nil},
		"it claims the shard no longer": {func(n1, _ *world.ZoneAgent) {
			n1.Contested, n1.Claims = map[world.ShardID]bool{shard: true}, nil
		}, nil},
		"the active gateway itself": {func(_, n2 *world.ZoneAgent) {
			n2.Contested = map[world.ShardID]bool{shard: true}
		}, nil},
	} {
		w := observed(c.change)
		if got := w.ShardStates[shard].Rivals; !slices.Equal(got, c.want) {
			t.Errorf("%s: rivals %v, want %v", name, got, c.want)
		}
	}
}
