// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// words computes a decision for a snapshot and builds the statuses, with and without the cache.
type words struct {
	state decide.State
	last  Cache
}

func (w *words) say(of *world.Snapshot, k Observed) (remembered, fresh *status.Service) {
	d := w.state.Decide(of)
	v := NewBuilder(d, k)
	return v.Services(&w.last)[web], v.Services(&Cache{})[web]
}

// The status of a Service is rebuilt if and only if its inputs have changed. A cached status equals a rebuilt one.
func TestStatusTextIsCached(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	other := worldtest.Service(world.Key{Namespace: "shop", Name: "another"}, 2)
	for name, test := range map[string]struct {
		change func(*world.Snapshot, *Observed)
		anew   bool
	}{
		"nothing":         {func(*world.Snapshot, *Observed) {}, false},
		"another Service": {func(w *world.Snapshot, _ *Observed) { w.Services = append(w.Services, other) }, false},
		"another pool": {func(w *world.Snapshot, _ *Observed) {
			w.Pools = append(w.Pools, &world.Pool{Name: "z"})
		}, false},
		"a node": {func(w *world.Snapshot, _ *Observed) {
			w.Nodes = append(w.Nodes, &world.Node{Name: "n9"})
		}, false},
		"the node of its EgressService": {func(w *world.Snapshot, _ *Observed) {
			w.EgressHosts = map[world.Key]string{web: "n9"}
		}, true},
		"what was excluded": {func(w *world.Snapshot, _ *Observed) {
			w.Domains[0].Nodes = []string{"n2", "n1", "n3"}
		}, false},
		"standby gateways": {func(w *world.Snapshot, _ *Observed) {
			w.ShardStates[shard] = world.ShardState{
				Active: "n1", Settled: true, Order: []string{"n1", "n3"},
			}
		}, false},
		"the plan of another": {func(_ *world.Snapshot, k *Observed) { k.Programmed[other.Key] = loop.Result{} }, false},
		"the object": {func(w *world.Snapshot, _ *Observed) {
			s := *w.Services[0]
			s.Limits = []string{"something has no effect"}
			w.Services = []*world.Service{&s}
		}, true},
		"its address": {func(w *world.Snapshot, _ *Observed) {
			s := *w.Services[0]
			s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.103")}
			w.Services = []*world.Service{&s}
		}, true},
		"its pool": {func(w *world.Snapshot, _ *Observed) {
			w.Pools = []*world.Pool{{Name: "renamed", AutoAssign: true, Ranges: w.Pools[0].Ranges}}
		}, true},
		"the remark on its address": {func(w *world.Snapshot, _ *Observed) {
			p := *w.Pools[0]
			p.Exclude = []netipx.IPRange{p.Ranges[0]}
			w.Pools = []*world.Pool{&p}
		}, true},
		"its domain": {func(w *world.Snapshot, _ *Observed) { w.Domains = nil }, true},
		"the gateway": {func(w *world.Snapshot, _ *Observed) {
			w.ShardStates[shard] = world.ShardState{Active: "n2"}
		}, true},
		"two active gateways": {func(w *world.Snapshot, _ *Observed) {
			w.ShardStates[shard] = world.ShardState{Active: "n1", Rivals: []string{"n2"}}
		}, true},
		"no gateway":         {func(w *world.Snapshot, _ *Observed) { w.ShardStates = nil }, true},
		"the gateway's name": {func(w *world.Snapshot, _ *Observed) { w.Nodes = w.Nodes[1:] }, true},
		"what OVN has":       {func(_ *world.Snapshot, k *Observed) { k.Programmed[web] = loop.Result{Key: web} }, true},
		"an error": {func(_ *world.Snapshot, k *Observed) {
			k.Programmed[web] = loop.Result{Key: web, Err: errors.New("no such table")}
		}, true},
		"the databases are not read": {func(_ *world.Snapshot, k *Observed) { k.Synced = false }, true},
		"each node is a zone": {func(w *world.Snapshot, _ *Observed) {
			for _, n := range w.Nodes {
				n.Zone = n.Name
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var w words
			of := worldtest.Small(5, worldtest.Service(web, 1))
			of.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
			of.ShardStates = map[world.ShardID]world.ShardState{shard: {Active: "n1", Order: []string{"n1"}}}
			k := Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{}}
			k.Programmed[web] = loop.Result{Key: web, Plan: w.state.Decide(of).Plans[web]}
			before, _ := w.say(of, k)

			next := *of
			next.ShardStates, k.Programmed = maps.Clone(of.ShardStates), maps.Clone(k.Programmed)
			test.change(&next, &k)
			after, fresh := w.say(&next, k)
			if anew := after != before; anew != test.anew {
				t.Errorf("rebuilt: %t, want %t; before %+v, after %+v", anew, test.anew, *before, *after)
			}
			if text(after) != text(fresh) {
				t.Errorf("cached %s\nrebuilt %s", text(after), text(fresh))
			}
		})
	}
}

// The text of an error may differ each time it is formatted.
func TestErrorMessagesAreNotCached(t *testing.T) {
	var w words
	of := worldtest.Small(5, worldtest.Service(web, 1))
	k := Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{}}
	for _, says := range []string{"no such table", "no such column"} {
		k.Programmed[web] = loop.Result{Key: web, Err: errors.New(says)}
		got, _ := w.say(of, k)
		if want := says + "; retrying"; got.Announced == nil || got.Announced.Message != want {
			t.Errorf("Announced is %+v, want %q", got.Announced, want)
		}
	}
}

func text(s *status.Service) string {
	announced := "nothing"
	if s.Announced != nil {
		announced = string(s.Announced.Status) + " " + s.Announced.Reason + ": " + s.Announced.Message
	}
	return joined(s.Addrs) + ", " + string(s.Allocated.Status) + " " + s.Allocated.Reason + ": " + s.Allocated.Message +
		", " + announced
}

// The limits of L2Domains are reported only for a Service with an address in an L2Domain.
func TestSegmentLimitsAreReportedForSegments(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world.Snapshot)
		want   bool
	}{
		"on a segment": {func(*world.Snapshot) {}, true},
		"BGP alone":    {func(w *world.Snapshot) { w.Domains = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := worldtest.Service(web, 1)
			s.Layer2Limits = []string{"served like Cluster by L2Domains"}
			w := worldtest.Small(5, s)
			test.change(w)
			var m decide.State
			d := m.Decide(w)
			got := NewBuilder(d, programmed(d)).Services(&Cache{})[web].Allocated
			if got.Status != metav1.ConditionTrue || strings.Contains(got.Message, "L2Domains") != test.want {
				t.Errorf("got %+v, want L2Domains mentioned: %t", got, test.want)
			}
		})
	}
}
