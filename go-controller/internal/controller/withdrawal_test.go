// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestAddressesAreReleasedAfterWithdrawal(t *testing.T) {
	up := map[string]map[string]world.PeerSession{"n1": {"tor": {Established: true}}}
	rows := map[world.Key]loop.Result{{Namespace: "shop", Name: "web"}: {}}
	silent := map[string]map[string]world.PeerSession{"n1": {"tor": {Unknown: true}}}
	synced := report.Observed{Synced: true, Configured: true}
	programmed := synced
	programmed.Programmed = rows
	zone := func(a *world.ZoneAgent) []*world.Node { return []*world.Node{{Name: "n1", Zone: "n1", Agent: a}} }
	claims := map[world.ShardID]time.Time{{Domain: "lan"}: time.Unix(1_600_000_000, 0)}
	type step struct {
		after    time.Duration
		mode     world.Mode
		known    report.Observed
		sessions map[string]map[string]world.PeerSession
		nodes    []*world.Node
		released bool
	}
	for name, test := range map[string]struct {
		absent bool
		steps  []step
	}{
		"rows": {steps: []step{
			{mode: world.Disabled, known: programmed}, {after: time.Minute, mode: world.Disabled, known: programmed},
			{after: time.Second, mode: world.Disabled, known: synced, released: true},
		}},
		"sessions": {steps: []step{
			{mode: world.Disabled, known: synced, sessions: up}, {after: time.Second, mode: world.Disabled, known: synced,
				sessions: up},
			{after: time.Second, mode: world.Disabled, known: synced, released: true},
		}},
		"a node that never reports": {steps: []step{
			{mode: world.Disabled, known: synced, sessions: up}, {after: withdrawLatest, mode: world.Disabled, known: synced,
				sessions: up, released: true},
		}},
		"a node that is silent": {steps: []step{
			{mode: world.Disabled, known: synced, sessions: silent}, {after: time.Second, mode: world.Disabled, known: synced,
				sessions: silent},
			{after: withdrawLatest, mode: world.Disabled, known: synced, sessions: silent, released: true},
		}},
		"a zone with claims": {steps: []step{
			{mode: world.Disabled, known: synced, nodes: zone(&world.ZoneAgent{Claims: claims})},
			{after: time.Second, mode: world.Disabled, known: synced, nodes: zone(&world.ZoneAgent{Claims: claims})},
			{after: time.Second, mode: world.Disabled, known: synced, nodes: zone(&world.ZoneAgent{}), released: true},
		}},
		"a zone that keeps its claims": {steps: []step{
			{mode: world.Disabled, known: synced, nodes: zone(&world.ZoneAgent{Claims: claims})},
			{after: withdrawLatest - 1, mode: world.Disabled, known: synced, nodes: zone(&world.ZoneAgent{Claims: claims})},
			{after: 1, mode: world.Disabled, known: synced, nodes: zone(&world.ZoneAgent{Claims: claims}), released: true},
		}},
		"a zone whose agent is silent": {steps: []step{
			{mode: world.Disabled, known: synced, nodes: zone(&world.ZoneAgent{Claims: claims})},
			{after: time.Second, mode: world.Disabled, known: synced, released: true,
				nodes: zone(&world.ZoneAgent{Claims: claims, Silent: true})},
		}},
		"a zone without ServicePlans": {absent: true, steps: []step{
			{mode: world.Disabled, nodes: zone(&world.ZoneAgent{Claims: claims})},
			{after: time.Second, mode: world.Disabled, nodes: zone(&world.ZoneAgent{}), released: true},
		}},
		"databases that are not read": {steps: []step{
			{mode: world.Disabled}, {after: time.Minute, mode: world.Disabled},
			{after: time.Second, mode: world.Disabled, known: synced, released: true},
		}},
		"once done, it stays so": {steps: []step{
			{mode: world.Disabled, known: synced}, {after: time.Second, mode: world.Disabled, known: synced, released: true},
			{after: time.Second, mode: world.Disabled, sessions: up, released: true},
			{after: time.Second, mode: world.BGPOnly, known: synced, released: true}, // unchanged unless Disabled
			{after: time.Second, mode: world.Disabled, known: synced},
		}},
		"without a dataplane": {absent: true, steps: []step{{mode: world.Disabled, released: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var d withdrawal
			now := time.Unix(1_700_000_000, 0)
			for i, s := range test.steps {
				now = now.Add(s.after)
				w := &world.Snapshot{Now: now, Sessions: s.sessions, Nodes: s.nodes}
				w.Cluster.ModeSetting = world.ModeSetting{Mode: s.mode, Release: true}
				due := d.deferRelease(w, s.known, test.absent)
				if w.Cluster.ModeSetting.Release != s.released {
					t.Errorf("step %d: released %v, want %v", i, w.Cluster.ModeSetting.Release, s.released)
				}
				if due.After(now) == s.released {
					t.Errorf("step %d: next check at %s, now is %s", i, due, now)
				}
			}
		})
	}
}
