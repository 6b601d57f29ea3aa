// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// twoOnBrEx is a cluster with the gateways n1 and n2 on the bridge of OVN-Kubernetes' own gateway, and OVN, which
// follows each order.
type twoOnBrEx struct {
	state State
	w     *world.Snapshot
	addr  string
}

func newTwoOnBrEx() *twoOnBrEx {
	s := worldtest.Service(web, 1)
	c := &twoOnBrEx{w: worldtest.OnBrEx(s)}
	c.w.Nodes, c.w.Domains[0].Nodes = c.w.Nodes[:2], []string{"n1", "n2"}
	c.pass(0)
	s.Assigned = c.state.overlay.grants[web].addrs
	s.Given, c.addr = s.Assigned, s.Assigned[0].String()
	return c
}

// pass decides some seconds after the last pass. The bridges of some nodes have a stale flow.
func (c *twoOnBrEx) pass(seconds int, stale ...string) (*Decision, *place.Domain) {
	c.w.Now = c.w.Now.Add(time.Duration(seconds) * time.Second)
	for _, n := range c.w.Nodes {
		worldtest.ReportStale(n)
		if slices.Contains(stale, n.Name) {
			worldtest.ReportStale(n, c.addr)
		}
	}
	d := c.state.Decide(c.w)
	c.w.Services[0].ListsPorts = d.ListsPorts(c.w.Services[0])
	c.w.ShardStates = map[world.ShardID]world.ShardState{}
	for _, s := range d.Layout.Domains[0].Shards {
		state := world.ShardState{Active: s.Gateways[0].Node, Settled: true}
		for _, g := range s.Gateways {
			state.Order = append(state.Order, g.Node)
		}
		c.w.ShardStates[s.ID] = state
	}
	return d, d.Layout.Domains[0]
}

func orderOf(d *place.Domain) string { return fmt.Sprint(d.Shards[0].Gateways) }

// OVN-Kubernetes may install a stale flow and another one by turns, as often as a user edits any Service. Shards do not
// move as often, and not either when it is over.
func TestStaleFlowsByTurnsMoveShardsOnce(t *testing.T) {
	for _, first := range []int{0, 1} {
		c, changes := newTwoOnBrEx(), 0
		_, domain := c.pass(1)
		order := orderOf(domain)
		pass := func(stale ...string) {
			_, domain = c.pass(2, stale...)
			if now := orderOf(domain); now != order {
				order = now
				changes++
			}
		}
		for i := range 30 {
			pass(c.w.Nodes[(first+i)%2].Name)
		}
		for range 60 {
			pass()
		}
		if changes > 1 {
			t.Errorf("n%d first: the order changed %d times", first+1, changes)
		}
		if len(domain.Excluded)+len(domain.RecentlyStale) > 0 {
			t.Errorf("n%d first: excluded in the end: %v, recently stale: %v", first+1, domain.Excluded, domain.RecentlyStale)
		}
	}
}

// Nor do they while one of the two gateways drains, or both do, with or without preempt.
func TestStaleFlowsByTurnsMoveShardsOnceWhileGatewaysDrain(t *testing.T) {
	for _, preempt := range []bool{false, true} {
		for _, draining := range [][]int{{0}, {1}, {0, 1}} {
			c, moves := newTwoOnBrEx(), 0
			c.w.Domains[0].Preempt = preempt
			for _, i := range draining {
				c.w.Nodes[i].Draining = "a label"
			}
			_, domain := c.pass(1, "n1", "n2")
			first := domain.Shards[0].Gateways[0].Node
			for i := range 30 {
				_, domain = c.pass(2, c.w.Nodes[i%2].Name)
				if now := domain.Shards[0].Gateways[0].Node; now != first {
					first = now
					moves++
				}
			}
			if moves > 1 {
				t.Errorf("preempt %t, %v drain: shards moved %d times", preempt, draining, moves)
			}
		}
	}
}

// A gateway whose flows were stale a short while ago takes no shard from another one, and a pass follows when it may.
// That takes longer each time that they are stale again after it.
func TestFlowsThatWereStaleCountForAWhile(t *testing.T) {
	c := newTwoOnBrEx()
	for hold := 30; hold <= 120; hold *= 2 {
		if _, domain := c.pass(10, "n1"); len(domain.Excluded) != 1 {
			t.Fatalf("stale, excluded: %v", domain.Excluded)
		}
		d, _ := c.pass(1)
		until := c.w.Now.Add(time.Duration(hold) * time.Second)
		if !d.Due.Equal(until) {
			t.Errorf("a pass is due at %s, want %s", d.Due, until)
		}
		for _, seconds := range []int{0, hold - 1} {
			if _, domain := c.pass(seconds); !domain.RecentlyStale["n1"] || len(domain.Excluded) > 0 ||
				!strings.Contains(fmt.Sprint(domain.Warnings), "n1 (until "+until.UTC().Format(time.RFC3339)+")") {
				t.Errorf("after %d s, excluded %v, warnings %q", seconds, domain.Excluded, domain.Warnings)
			}
		}
		if _, domain := c.pass(1); len(domain.Excluded)+len(domain.RecentlyStale) > 0 {
			t.Errorf("after %d s, excluded: %v, recently stale: %v", hold, domain.Excluded, domain.RecentlyStale)
		}
	}
	c.pass(int(maxHoldTime.Seconds()))
	c.w.Domains = nil
	c.state.Decide(c.w)
	if n := len(c.state.overlay.staleGateways); n > 0 {
		t.Errorf("%d gateways are remembered without an L2Domain", n)
	}
}
