// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A restart of a database must not move shards.
func TestProblemsAreReportedOnceTheyLast(t *testing.T) {
	a := &Agent{wake: make(chan struct{}, 1)}
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
		if got := a.lasting(step.problem, start.Add(step.after)); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
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
		published: newPublished()}
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
