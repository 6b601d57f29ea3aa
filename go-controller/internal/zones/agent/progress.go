// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"math"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones"
)

// maxFailed is the maximum number of Services that a report lists as failed, and maxReasons of those with their reason:
// all annotations of an object together have 256 KiB, and a name has up to 127 bytes.
const (
	maxFailed  = 500
	maxReasons = 20
)

// progress returns the resource version up to which all plans are applied that have an address in a shard of which the
// node is a gateway, except the failed ones that it returns with the reason for each. If there are too many of these,
// it stays below the version of the first that is not returned. The controller waits for no others of this node.
func (p *published) progress(node string, results map[world.Key]loop.Result) (
	applied uint64, failed map[world.Key]string,
) {
	type failure struct {
		of  *publishedPlan
		why string
	}
	var failures []failure
	failed = map[world.Key]string{}
	below := uint64(math.MaxUint64)
	published, own := p.shardsOf(node)
	for _, o := range p.plans {
		// A plan whose shard is not published yet may turn out to concern the node.
		awaits := o.plan != nil && slices.ContainsFunc(o.plan.VIPs, func(v plan.VIP) bool { return !published[v.Shard] })
		if o.plan != nil && !awaits &&
			!slices.ContainsFunc(o.plan.VIPs, func(v plan.VIP) bool { return own[v.Shard] }) {
			continue
		}
		applied = max(applied, o.version)
		why := o.problem
		switch result, done := results[o.key]; {
		case why != "":
		case awaits:
			below = min(below, o.version)
		case !done || !p.isApplied(o, result, own) || !result.Pending.IsZero():
			below = min(below, o.version)
		case result.Err != nil:
			why = result.Err.Error()
		}
		if why != "" {
			failures = append(failures, failure{o, why})
		}
	}
	// Each report lists the same ones.
	slices.SortFunc(failures, func(a, b failure) int { return a.of.key.Compare(b.of.key) })
	for i, f := range failures {
		switch {
		case i < maxReasons:
			failed[f.of.key] = f.why
		case i < maxFailed:
			failed[f.of.key] = "one of many errors: see the log of ovnkube-slb-node"
		default:
			below = min(below, f.of.version)
		}
	}
	if below <= applied {
		applied = below - 1
	}
	return applied, failed
}

// progressHere returns the resource version up to which all plans with backends on the node are applied. A plan that
// can't be decoded or applied counts as applied unless nothing can be applied: the others must not seem to lag.
func (p *published) progressHere(node string, results map[world.Key]loop.Result, unwritable bool) uint64 {
	_, own := p.shardsOf(node)
	var here []uint64
	below := uint64(math.MaxUint64)
	for _, o := range p.plans {
		if !o.hasBackendOn(node) {
			continue
		}
		here = append(here, o.version)
		result, done := results[o.key]
		if !done || !p.isApplied(o, result, own) || !result.Pending.IsZero() || unwritable && result.Err != nil {
			below = min(below, o.version)
		}
	}
	applied := uint64(0)
	for _, version := range here {
		if version < below {
			applied = max(applied, version)
		}
	}
	return applied
}

// isApplied reports whether a result is that of a plan, apart from the addresses in shards that the zone leaves out: it
// has nothing to apply for them. A shard of which the node is a gateway by now, one of own, is not left out.
func (p *published) isApplied(o *publishedPlan, result loop.Result, own map[world.ShardID]bool) bool {
	kept := func(v plan.VIP) bool {
		has, published := p.shards[v.Shard]
		return has || !published || own[v.Shard]
	}
	want := o.plan
	if want != nil && slices.ContainsFunc(want.VIPs, func(v plan.VIP) bool { return !kept(v) }) {
		want = want.Only(kept)
	}
	return plan.Equal(result.Plan, want)
}

// hasBackendOn reports whether a plan has a backend on a node. All calls have the same node.
func (o *publishedPlan) hasBackendOn(node string) bool {
	if o.here == nil {
		o.here = new(o.plan != nil && slices.ContainsFunc(o.plan.Listeners, func(l plan.Listener) bool {
			return slices.ContainsFunc(l.Backends, func(b plan.Backend) bool { return b.Node == node })
		}))
	}
	return *o.here
}

// paceHere sets AppliedHere of a report. What is new of it is reported with other news, or alone once per interval: one
// change of endpoints may concern all nodes. a.mu must be held.
func (a *Agent) paceHere(r *world.ZoneAgent, here uint64, now time.Time) {
	last := a.reported
	if last == nil {
		last = &world.ZoneAgent{}
	}
	r.AppliedHere = last.AppliedHere // An agent that starts applies everything again; the controller knows.
	interval := zones.ReportInterval(len(a.nodes))
	switch alone := r.Equal(a.reported) && r.Applied == last.Applied; {
	case here <= last.AppliedHere:
	case !alone || now.Sub(a.reportedHere) >= interval:
		r.AppliedHere, a.reportedHere = here, now
	case a.hereDue.Before(now):
		a.hereDue = a.reportedHere.Add(interval)
		time.AfterFunc(a.hereDue.Sub(now), a.changed)
	}
	a.reported = r
}
