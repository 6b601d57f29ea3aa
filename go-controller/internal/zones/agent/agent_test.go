// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A restart of a database must not move shards.
func TestProblemsAreReportedOnceTheyLast(t *testing.T) {
	var g grace
	start := time.Now()
	for i, step := range []struct {
		after   time.Duration
		problem string
		want    string
	}{
		{0, "no database", ""},
		{problemGracePeriod - time.Second, "no database", ""},
		{problemGracePeriod - time.Second, "", ""},
		{problemGracePeriod, "no room", ""},
		{2*problemGracePeriod - time.Second, "no room", ""},
		{2 * problemGracePeriod, "still no room", "still no room"},
		{3 * problemGracePeriod, "", ""},
		{3 * problemGracePeriod, "no room", ""},
	} {
		if got := g.lasting(step.problem, start.Add(step.after), func() {}); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// The shards of a zone that can't be changed stay, but those of one that can't serve move: a southbound database that
// restarts while ovn-northd has been down for long is not reported.
func TestProblemsLastEachOnItsOwn(t *testing.T) {
	var p problems
	start := time.Now()
	const northd, southbound = "no ovn-northd", "no southbound database"
	for i, step := range []struct {
		after               time.Duration
		problem, unwritable string
		want                [2]string
	}{
		{0, "", northd, [2]string{}},
		{problemGracePeriod, "", northd, [2]string{"", northd}},
		{problemGracePeriod + time.Second, southbound, northd, [2]string{"", northd}},
		{problemGracePeriod + 2*time.Second, "", northd, [2]string{"", northd}},
		{problemGracePeriod + 3*time.Second, southbound, northd, [2]string{"", northd}},
		{2*problemGracePeriod + 3*time.Second, southbound, northd, [2]string{southbound, northd}},
	} {
		problem, unwritable := p.lasting(step.problem, step.unwritable, start.Add(step.after), func() {})
		if got := [2]string{problem, unwritable}; got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

func TestShardsThatFailDoNotMakeAZoneUnwritable(t *testing.T) {
	refused := errors.New("constraint violation")
	shards := dataplane.ShardsError{{Domain: "provider", Index: 1}: "no router number is available"}
	for _, c := range []struct{ topology, want error }{
		{nil, nil}, {refused, refused}, {fmt.Errorf("configure shards: %w", shards), nil},
	} {
		if got := ofZone(c.topology); got != c.want { //nolint:errorlint // the same error, not one that wraps it
			t.Errorf("%v prevents changes as %v, want %v", c.topology, got, c.want)
		}
	}
}

func TestClaimsKeepTheirTime(t *testing.T) {
	shard, c, now := world.ShardID{Domain: "lan"}, claims{}, time.Unix(1000, 0).UTC()
	carried := map[world.ShardID]world.ShardState{shard: {Active: "c1"}}
	if got := c.update(carried, "c1", now); !got[shard].Equal(now) {
		t.Errorf("claimed: %v", got)
	}
	if got := c.update(nil, "c1", now.Add(time.Hour)); !got[shard].Equal(now) {
		t.Errorf("the database can't be read: %v", got)
	}
	if got := c.update(carried, "c1", now.Add(time.Hour)); !got[shard].Equal(now) {
		t.Errorf("still claimed: %v", got)
	}
	for name, shardStates := range map[string]map[world.ShardID]world.ShardState{
		"another node": {shard: {Active: "c2"}}, "no shard": {},
	} {
		c[shard] = now
		if got := c.update(shardStates, "c1", now); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// In a failover or a planned move, the statuses name the new gateway while the old one's claim is still there. Only a
// live agent reports a contested claim, and the last report of a gateway that died has none.
func TestClaimsAreContestedOnceAnotherGatewayIsActiveForAWhile(t *testing.T) {
	shard, start := world.ShardID{Domain: "lan"}, time.Now()
	a := &Agent{options: Options{Node: "n1"}, wake: make(chan struct{}, 1), contestedSince: map[world.ShardID]time.Time{},
		published: newPublished(nil)}
	claimed, none := claims{shard: start}, claims{}
	for i, step := range []struct {
		after  time.Duration
		active string
		claims claims
		want   bool
	}{
		{0, "n1", claimed, false},
		{0, "n2", claimed, false},
		{contestTime - time.Second, "n2", claimed, false},
		{contestTime, "n2", claimed, true},
		{contestTime, "n1", claimed, false},
		{contestTime, "n2", claimed, false},
		{2*contestTime - time.Second, "n2", none, false},
		{2 * contestTime, "n2", claimed, false},
		{3 * contestTime, "n2", claimed, true},
		{3 * contestTime, "", claimed, false},
	} {
		a.domains["lan"] = &v1alpha1.L2Domain{Status: v1alpha1.L2DomainStatus{
			Shards: []v1alpha1.ShardStatus{{Active: step.active}}}}
		if got := a.contested(step.claims, start.Add(step.after)); got[shard] != step.want {
			t.Errorf("step %d: contested %t, want %t", i, got[shard], step.want)
		}
	}
}

func TestTransitSwitchIsMissingAtOnceOrAfterAWhile(t *testing.T) {
	start := time.Now()
	for name, steps := range map[string][]struct {
		after       time.Duration
		read, lacks bool
		want        bool
	}{
		"never there": {{0, true, true, true}, {0, false, false, true}, {time.Second, true, false, false}},
		"not read":    {{0, false, true, false}, {0, true, false, false}},
		"deleted": {{0, true, false, false}, {time.Second, true, true, false}, {problemGracePeriod, true, true, false},
			{problemGracePeriod + time.Second, true, true, true}, {time.Hour, true, false, false}},
		"away for a moment": {{0, true, false, false}, {0, true, true, false}, {time.Second, true, false, false},
			{problemGracePeriod, true, true, false}},
	} {
		var o overlayState
		for i, step := range steps {
			if got := o.missing(step.read, step.lacks, start.Add(step.after), func() {}); got != step.want {
				t.Errorf("%s, step %d: %t, want %t", name, i, got, step.want)
			}
		}
	}
}

func TestNothingIsWrittenBeforeTheZoneIsKnown(t *testing.T) {
	a := &Agent{}
	if a.fence() == nil {
		t.Error("an agent that has read nothing may write")
	}
	a.owns.Store(true)
	if err := a.fence(); err != nil {
		t.Error(err)
	}
}

// In central mode, the database of a node may not exist.
func TestOnlyAnAgentWithAZoneWaitsForDatabases(t *testing.T) {
	a := &Agent{options: Options{Node: "n1"}, published: *small()}
	for _, test := range []struct {
		zone    string
		healthy bool
	}{{"n1", false}, {"global", true}, {"n1", false}} {
		a.setNode(nil, node("n1", test.zone))
		if err := a.Healthy(); (err == nil) != test.healthy {
			t.Errorf("zone %s: %v, want healthy %t", test.zone, err, test.healthy)
		}
	}
}

// A step passes on what has changed: everything, single plans, or that rows must be checked. Nothing may be written
// while the databases are not those of the node alone.
func TestStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zone, err := ovn.New(ovn.Options{NB: ovn.Endpoint{Address: "unix:/nowhere"}})
		if err != nil {
			t.Fatal(err)
		}
		d := &recording.Dataplane{}
		a := &Agent{options: Options{Node: "n1", Boot: "boot-1"}, wake: make(chan struct{}, 1), dataplane: zone,
			runner: loop.New(d, loop.Options{}), published: *small()}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.runner.Run(ctx)
		var before recording.Calls
		step := func(what string, owns bool, want recording.Calls) {
			t.Helper()
			<-time.After(minRest)
			if got := a.step(); got != owns || (a.fence() == nil) != owns {
				t.Errorf("%s: the zone is programmed: %t, fence %v; want %t", what, got, a.fence(), owns)
			}
			synctest.Wait()
			now := d.Calls()
			got := recording.Calls{Configure: now.Configure - before.Configure, Apply: now.Apply - before.Apply,
				Prune: now.Prune - before.Prune, Changes: now.Changes - before.Changes}
			if before = now; got != want {
				t.Errorf("%s: calls %+v, want %+v", what, got, want)
			}
		}
		a.setNode(nil, node("n1", "global"))
		step("the database of the whole cluster", false, recording.Calls{})
		a.setNode(node("n1", "global"), nil)
		step("no Node, and no database that names it", false, recording.Calls{})
		a.setNode(nil, node("n1", "n1"))
		step("the first topology", true, recording.Calls{Configure: 1, Prune: 1})
		if boot := d.Topology().Zone.Boot; boot != "boot-1" {
			t.Errorf("boot %q", boot)
		}
		step("nothing", true, recording.Calls{})
		a.setPlan(nil, servicePlan("web", 5, 0))
		a.setPlan(nil, servicePlan("api", 6, 0))
		step("two plans", true, recording.Calls{Apply: 1, Changes: 2})
		a.setPlan(servicePlan("api", 6, 0), nil)
		step("a plan is deleted", true, recording.Calls{Apply: 1, Changes: 1})
		unread := servicePlan("unread", 7, 0)
		unread.Spec.VIPs[0].Address = "x"
		a.setPlan(nil, unread)
		step("a plan can't be read", true, recording.Calls{})
		a.domains["lan"].Status.Shards[0].Gateways = []string{"n1", "n2"}
		a.whole = true
		step("another order", true, recording.Calls{Configure: 1})
		a.domains["lan"].Status.Shards[0].Gateways = []string{"n2"}
		a.whole = true
		step("the node is no gateway any more", true, recording.Calls{Configure: 1, Apply: 1, Prune: 1, Changes: 1})
		key := world.Key{Namespace: "shop", Name: "unread"}
		d.Put(key, &plan.Service{Key: key})
		a.resync.Store(true)
		step("rows have changed", true, recording.Calls{Configure: 1, Apply: 1, Changes: 1, Prune: 1})
		if _, stays := d.Services()[key]; !stays {
			t.Error("what the zone had of a plan that can't be read is gone")
		}
		a.setNode(nil, node("n1", "global"))
		step("the database of the whole cluster", false, recording.Calls{})
	})
}

// The control socket of ovn-northd may be elsewhere. What was never observed is no fault.
func TestNorthdFaults(t *testing.T) {
	const hangs, gone = "ovn-northd does not answer", "ovn-northd is not running"
	const idle = "ovn-northd does not translate changes"
	var n northd
	for i, step := range []struct {
		heartbeat unixctl.ProbeResult
		waiting   time.Duration
		want      string
	}{
		{unixctl.Absent, 0, ""}, {unixctl.Absent, time.Minute, idle}, {unixctl.Answered, time.Second, ""},
		{unixctl.Silent, 0, hangs}, {unixctl.Silent, time.Minute, hangs}, {unixctl.Answered, time.Minute, idle},
		{unixctl.Answered, 0, ""}, {unixctl.Crashed, 0, gone}, {unixctl.Absent, 0, gone}, {unixctl.Answered, 0, ""},
	} {
		was := n.problem()
		if changed := n.observe(step.heartbeat, step.waiting); n.problem() != step.want || changed != (was != step.want) {
			t.Errorf("step %d: %q, changed %t; want %q", i, n.problem(), changed, step.want)
		}
	}
	if n = (northd{}); !n.observe(unixctl.Crashed, 0) || n.problem() != gone {
		t.Errorf("crashed before the agent started: %q", n.problem())
	}
}
