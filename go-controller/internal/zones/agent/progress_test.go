// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Many plans that fail do not keep the others from being reported as applied, and the report fits in a Lease.
func TestManyFailuresHoldBackNoOtherPlan(t *testing.T) {
	const many, good = 500, 1000
	p, results := small(), map[world.Key]loop.Result{}
	long := errors.New(strings.Repeat("no room; ", 1000))
	for i := range many {
		p.setPlan(nil, servicePlan(fmt.Sprintf("failing-%03d-%s", i, strings.Repeat("x", 51)), 10+i, 0))
	}
	p.setPlan(nil, servicePlan("good", good, 0))
	_, plans, _ := p.desired("n1", world.Cluster{}, nil)
	for key, plan := range plans {
		results[key] = loop.Result{Key: key, Plan: plan, Err: long}
		if key.Name == "good" {
			results[key] = loop.Result{Key: key, Plan: plan}
		}
	}
	applied, failed := p.progress("n1", results)
	if applied != good || len(failed) != many {
		t.Errorf("applied up to %d with %d failures, want %d with %d", applied, len(failed), good, many)
	}
	text, err := convert.ZoneReport(&world.ZoneAgent{Failed: failed})
	if err != nil || len(text) > 150_000 {
		t.Errorf("a report of %d bytes, %v; want at most 150000 of the 256 KiB for all annotations", len(text), err)
	}
	p.setPlan(nil, servicePlan("one-more", 500, 0))
	_, plans, _ = p.desired("n1", world.Cluster{}, nil)
	key := world.Key{Namespace: "shop", Name: "one-more"}
	results[key] = loop.Result{Key: key, Plan: plans[key], Err: long}
	if applied, _ := p.progress("n1", results); applied >= 500 {
		t.Errorf("applied up to %d, which claims a plan that failed and is not listed", applied)
	}
}

// Each change of an endpoint may concern all nodes. What a zone has applied is reported with other news, or once per
// interval, and never withdrawn: an agent that starts applies everything again.
func TestBackendsOfTheNodeAreReportedAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := small()
		a := &Agent{published: *p, wake: make(chan struct{}, 1)}
		start := time.Now()
		interval := zones.ReportInterval(len(a.nodes))
		for _, c := range []struct {
			at      time.Duration
			here    uint64
			problem string
			want    uint64
		}{
			{0, 7, "", 7}, {time.Second, 9, "", 7}, {2 * time.Second, 9, "x", 9}, {3 * time.Second, 10, "x", 9},
			{2*time.Second + interval, 10, "x", 10}, {2 * interval, 0, "x", 10}, {3 * interval, 4, "", 10},
		} {
			<-time.After(time.Until(start.Add(c.at)))
			r := &world.ZoneAgent{Problem: c.problem}
			if a.paceHere(r, c.here, time.Now()); r.AppliedHere != c.want {
				t.Errorf("after %s: reported %d, want %d", c.at, r.AppliedHere, c.want)
			}
		}
		<-time.After(interval)
		if len(a.wake) != 1 {
			t.Error("nothing wakes the agent to report what was applied meanwhile")
		}
	})
}

func TestProgressOfBackendsOnTheNode(t *testing.T) {
	p, results := small(), map[world.Key]loop.Result{}
	for name, version := range map[string]int{"a": 10, "b": 20, "c": 30} {
		o := servicePlan(name, version, 0)
		if name != "c" {
			o.Spec.Listeners[0].Backends = []v1alpha1.PlannedBackend{{Address: "10.244.1.1:80", NodeName: "n1"}}
		}
		p.setPlan(nil, o)
	}
	_, plans, _ := p.desired("n1", world.Cluster{}, nil)
	check := func(want uint64, unwritable bool) {
		t.Helper()
		if got := p.progressHere("n1", results, unwritable); got != want {
			t.Errorf("applied up to %d, want %d", got, want)
		}
	}
	check(0, false)
	for key, plan := range plans {
		results[key] = loop.Result{Key: key, Plan: plan}
	}
	check(20, false)
	b := world.Key{Namespace: "shop", Name: "b"}
	results[b] = loop.Result{Key: b, Plan: plans[b], Err: errors.New("no room")}
	check(20, false)
	check(10, true)
}

// A node that has the chassis of another one is no gateway there. The other one leaves out the shards with no other
// gateway, and has nothing of them to apply.
func TestShardsThatAreLeftOutHoldBackNoPlan(t *testing.T) {
	p, results := small(), map[world.Key]loop.Result{}
	forged := node("n9", "n9")
	forged.Annotations["k8s.ovn.org/node-chassis-id"] = "chassis-n1"
	p.setNode(nil, forged)
	second := &p.domains["lan"].Status.Shards[1]
	second.Ordinal, second.Gateways = new(int32(6)), []string{"n9"}
	for i, name := range []string{"alone", "both", "web"} {
		o := servicePlan(name, 5+i, int32(min(1, 2-i)))
		if name == "alone" {
			o.Spec.VIPs = o.Spec.VIPs[1:]
		}
		o.Spec.Listeners[1].Backends = []v1alpha1.PlannedBackend{{Address: "10.244.1.1:80", NodeName: "n1"}}
		p.setPlan(nil, o)
	}
	check := func(what string, want, wantHere uint64) {
		t.Helper()
		applied, failed := p.progress("n1", results)
		if here := p.progressHere("n1", results, false); applied != want || here != wantHere || len(failed) > 0 {
			t.Errorf("%s: applied up to %d, with backends here %d, failed %v; want %d and %d",
				what, applied, here, failed, want, wantHere)
		}
	}
	f, plans, ok := p.desired("n1", world.Cluster{}, nil)
	if !ok || len(f.Domains[0].Shards) != 1 {
		t.Fatalf("%t, %+v; want one shard", ok, f)
	}
	check("nothing is applied", 5, 0)
	for key, plan := range plans {
		results[key] = loop.Result{Key: key, Plan: plan}
	}
	check("applied", 7, 7)
	second.Gateways = []string{"n9", "n1"}
	check("the node becomes a gateway", 4, 0)
	second.Gateways = []string{"n9", "n2"}
	_, plans, _ = p.desired("n1", world.Cluster{}, nil)
	check("another gateway", 5, 0)
	for key, plan := range plans {
		results[key] = loop.Result{Key: key, Plan: plan}
	}
	check("applied with that", 7, 7)
}
