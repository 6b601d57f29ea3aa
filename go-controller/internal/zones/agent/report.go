// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// problemGracePeriod is how long a problem must last before it is reported. A restart of a database must not move
// shards.
const problemGracePeriod = 30 * time.Second

// contestTime is how long another gateway must be named the active one of a shard that this node has claimed until the
// claim is contested. In a failover or a planned move both have claimed it for a moment.
const contestTime = 10 * time.Second

// report publishes the state of the zone in the node's Lease.
func (a *Agent) report() {
	unread := a.dataplane.Unread()
	// A connection may end at any time, so only the result shows whether the claims were read.
	shardStates, claimsRead := a.dataplane.ShardStates()
	if !claimsRead {
		shardStates = nil
	}
	a.mu.Lock()
	a.readBridges()
	n := a.nodes[a.options.Node]
	if n == nil || n.Chassis == "" || !n.HasOwnZone() {
		a.mu.Unlock()
		return
	}
	r := &world.ZoneAgent{Bridges: a.bridges, Started: a.started,
		Claims: a.claims.update(shardStates, n.Chassis, time.Now())}
	if a.dataplane.UnreadSB() == nil { // Otherwise nobody knows whether the node still has what it claimed.
		r.Contested = a.contested(r.Claims, time.Now())
	}
	r.Misplaced = a.dataplane.Misplaced()
	r.NoOverlay = a.overlay.missing(unread == nil, a.dataplane.LacksTransit(), time.Now(), a.changed)
	a.mu.Unlock()
	_, topologyError := a.runner.TopologyResult()
	r.Problem, r.Unwritable, r.Northd = a.problem(topologyError)
	results := a.runner.Results()
	a.mu.Lock()
	last := a.reported
	r.Applied, r.Failed = a.progress(n.Name, results)
	a.paceHere(r, a.progressHere(n.Name, results, r.Unwritable != ""), time.Now())
	a.mu.Unlock()
	text, err := convert.ZoneReport(r)
	if err != nil {
		klog.ErrorS(err, "Failed to encode the report")
		return
	}
	write := a.options.Report.ReportAtOnce
	if isProgress(last, r) {
		write = a.options.Report.Report
	}
	// An active gateway that no longer reports must be known soon: its zone does not learn that another gateway is to
	// have its shards.
	write(v1alpha1.AnnotationZone, text, r.Problem+r.Unwritable != "" || len(r.Claims) > 0)
}

// isProgress reports whether two successive reports differ at most in how far ServicePlans are applied. Any tenant
// causes such reports, at any rate, and each one that is written is a revision of the whole Lease.
func isProgress(was, is *world.ZoneAgent) bool {
	if was == nil {
		return false
	}
	same := *was
	same.Failed = is.Failed
	return same.Equal(is)
}

// problem returns why the zone can't serve, and why it can't be changed, each once that has lasted for a while.
// byNorthd is set if the latter is because of ovn-northd.
func (a *Agent) problem(topologyError error) (problem, unwritable string, byNorthd bool) {
	if err := a.dataplane.UnreadSB(); err != nil {
		problem = fmt.Sprintf("the zone can't be observed: %v", err)
	} else if routers := a.dataplane.Miskeyed(); len(routers) > 0 {
		problem = "the tunnel keys of routers differ from those of other zones: " + strings.Join(routers, ", ")
	}
	if err := cmp.Or(a.dataplane.UnreadNB(), ofZone(topologyError)); err != nil {
		unwritable = fmt.Sprintf("the zone can't be changed: %v", err)
	} else if fault := a.northd.problem(); fault != "" {
		unwritable, byNorthd = "the zone can't be changed: "+fault, true
	}
	problem, unwritable = a.problems.lasting(problem, unwritable, time.Now(), a.changed)
	return problem, unwritable, byNorthd && unwritable != ""
}

// ofZone returns what prevents changes of a zone, given the error of its topology. If only some shards could not be
// configured, all else can be changed. No node claims these shards.
func ofZone(topologyError error) error {
	if errors.As(topologyError, new(dataplane.ShardsError)) {
		return nil
	}
	return topologyError
}

// problems are why a zone can't serve, and why it can't be changed. A zone that can't be changed for long still serves
// when its southbound database restarts.
type problems struct{ problem, unwritable grace }

// lasting returns those that have lasted for a while. wake is called when that may have become so.
func (p *problems) lasting(problem, unwritable string, now time.Time, wake func()) (string, string) {
	return p.problem.lasting(problem, now, wake), p.unwritable.lasting(unwritable, now, wake)
}

// grace is since when there is a problem, the zero time if there is none. The other zones order a gateway with a
// problem behind the others. OVN forwards without its databases, so a restart of one must not do that.
type grace struct{ since time.Time }

func (g *grace) lasting(problem string, now time.Time, wake func()) string {
	switch {
	case problem == "":
		g.since = time.Time{}
	case g.since.IsZero():
		g.since = now
		time.AfterFunc(problemGracePeriod, wake)
	case now.Sub(g.since) >= problemGracePeriod:
		return problem
	}
	return ""
}

// overlayState is what an agent has seen of the transit switch.
type overlayState struct {
	seen, lost bool
	// lacking is since when there is none although there was one, the zero time if there is one.
	lacking time.Time
}

// missing reports whether the zone has no transit switch: at once if there was none since the process started,
// otherwise after a while. While the database can't be read, nothing changes. wake is called when the result may
// change.
func (o *overlayState) missing(read, lacks bool, now time.Time, wake func()) bool {
	switch {
	case !read:
	case !lacks:
		*o = overlayState{seen: true}
	case !o.seen:
		o.lost = true
	case o.lacking.IsZero():
		o.lacking = now
		time.AfterFunc(problemGracePeriod, wake)
	case now.Sub(o.lacking) >= problemGracePeriod:
		o.lost = true
	}
	return o.lost
}

// contested returns the claims of the node for which the statuses of the L2Domains have named another active gateway
// for contestTime. a.mu must be held.
func (a *Agent) contested(claims claims, now time.Time) map[world.ShardID]bool {
	contested, active := map[world.ShardID]bool{}, a.activeGateways()
	for id := range claims {
		other := active[id] != "" && active[id] != a.options.Node
		since, known := a.contestedSince[id]
		switch {
		case !other:
			delete(a.contestedSince, id)
		case !known:
			a.contestedSince[id] = now
			time.AfterFunc(contestTime, a.changed)
		case now.Sub(since) >= contestTime:
			contested[id] = true
		}
	}
	maps.DeleteFunc(a.contestedSince, func(id world.ShardID, _ time.Time) bool { return claims[id].IsZero() })
	return contested
}

// claims are the shards that the node has claimed, and since when.
type claims map[world.ShardID]time.Time

// update records the present claims and returns a copy. While the southbound database can't be read, it returns the
// last known ones.
func (c claims) update(shardStates map[world.ShardID]world.ShardState, chassis string, now time.Time) claims {
	if shardStates != nil {
		for id, state := range shardStates {
			if _, known := c[id]; state.Active != chassis {
				delete(c, id)
			} else if !known {
				c[id] = now.UTC().Truncate(time.Millisecond)
			}
		}
		for id := range c {
			if _, exists := shardStates[id]; !exists {
				delete(c, id)
			}
		}
	}
	out := make(claims, len(c))
	for id, at := range c {
		out[id] = at
	}
	return out
}
