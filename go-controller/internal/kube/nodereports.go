// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// nodeReport is the report in the Lease of a node: of its guard, and of its agent with interconnect.
type nodeReport struct {
	convert.Report
	// probes are the probe requests in the Lease, as stored.
	probes string
	// expiry deletes the report. Its time starts when we observed the guard's heartbeat, as in leader election, because
	// the clocks of two machines may differ. It is nil if the report has expired.
	expiry *time.Timer
}

// equal reports whether two reports are equal, except that the guard has completed other probe requests, and that the
// agent has applied other versions of ServicePlans (see catchesUp). What an agent in difficulties has to apply again no
// longer counts as applied, although it may still be there.
func (r *nodeReport) equal(o *nodeReport) bool {
	return (r == nil) == (o == nil) && (r == nil || maps.Equal(r.Faults, o.Faults) &&
		maps.Equal(r.Conflicts, o.Conflicts) && maps.Equal(r.AnnouncedConflicts, o.AnnouncedConflicts) &&
		(r.Localnets == nil) == (o.Localnets == nil) && maps.EqualFunc(r.Localnets, o.Localnets, convert.Localnet.Equal) &&
		r.Tunnels.Equal(o.Tunnels) && r.Unobserved == o.Unobserved && r.Agent.Equal(o.Agent) && r.Zone.Equal(o.Zone) &&
		(r.Zone == nil || r.Zone.Applied <= o.Zone.Applied || o.Zone.IsHealthy()))
}

// setReport stores the report in a Lease. Heartbeats and our own probe requests do not wake the controller. Only a
// heartbeat makes a report current, so that a write by another client does not revive that of a dead guard.
func (f *Facts) setReport(old, now *coordinationv1.Lease) {
	name := cmp.Or(now, old).Name
	f.mu.Lock()
	was := f.reports[name]
	if now != nil && sameRenewal(old, now) {
		if was != nil {
			was.probes = now.Annotations[v1alpha1.AnnotationAddressProbes]
		}
		f.mu.Unlock()
		return
	}
	var is *nodeReport
	silent := f.expiredLeases[name]
	delete(f.expiredLeases, name)
	if now != nil {
		is = &nodeReport{Report: convert.ReadReport(now), probes: now.Annotations[v1alpha1.AnnotationAddressProbes]}
		if left := remaining(old, now); left > 0 {
			is.expiry = time.AfterFunc(left, func() { f.expire(name, is) })
		} else {
			is, f.expiredLeases[name] = is.silent(), true
		}
	}
	if was != nil && was.expiry != nil {
		was.expiry.Stop()
	}
	delete(f.reports, name)
	if is == nil && f.nodes[name] != nil {
		// The zone is still programmed. Who deletes a Lease, or the namespace of all, must not withdraw what it serves.
		is = was.silent()
	}
	if is != nil {
		f.reports[name] = is
	}
	relevant := !was.equal(is) || silent != f.expiredLeases[name] || f.catchesUp(name, was, is)
	if relevant {
		f.changes.others = true
	} else if is != nil && (appliedChanged(was, is) || !slices.Equal(was.Probed, is.Probed)) {
		f.changes.addReport(name) // Also if no status awaits it: it may be known only soon that one does.
		relevant = !slices.Equal(was.Probed, is.Probed) || f.awaited(was, is)
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// appliedChanged reports whether the agent of a zone has applied other versions of ServicePlans.
func appliedChanged(was, is *nodeReport) bool {
	return was != nil && is != nil && was.Zone != nil && is.Zone != nil && was.Zone.Applied != is.Zone.Applied
}

// awaited reports whether a status awaits versions of ServicePlans that were applied since.
func (f *Facts) awaited(was, is *nodeReport) bool {
	return f.hooks.Awaited != nil && appliedChanged(was, is) && min(was.Zone.Applied, is.Zone.Applied) < f.hooks.Awaited()
}

// catchesUp reports whether a zone of which a status says that it has not applied ServicePlans has applied more.
func (f *Facts) catchesUp(name string, was, is *nodeReport) bool {
	return f.hooks.Lags != nil && was != nil && is != nil && was.Zone != nil && is.Zone != nil &&
		was.Zone.AppliedHere != is.Zone.AppliedHere && f.hooks.Lags(name)
}

// remaining returns how long a report is valid from now on. The first report that is seen may have expired before this
// process started.
func remaining(old, now *coordinationv1.Lease) time.Duration {
	lasts := convert.ReportTime(now)
	if old == nil && now.Spec.RenewTime != nil && time.Since(now.Spec.RenewTime.Time) > lasts {
		return 0
	}
	return lasts
}

// sameRenewal reports whether two versions have the same heartbeat, which means that another client wrote the Lease.
func sameRenewal(a, b *coordinationv1.Lease) bool {
	return a != nil && a.UID == b.UID && a.Spec.RenewTime.Equal(b.Spec.RenewTime)
}

// expire deletes a report that was not renewed: the state of a silent guard is unknown, and its last report must not
// exclude a gateway indefinitely. What the agent of a zone reported is kept.
func (f *Facts) expire(name string, r *nodeReport) {
	f.mu.Lock()
	relevant := f.reports[name] == r
	if relevant {
		delete(f.reports, name)
		if silent := r.silent(); silent != nil {
			f.reports[name] = silent
		}
		f.expiredLeases[name] = true
		f.changes.others = true
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// silent returns what remains of a report that is not renewed any more: what the agent of a zone reported, or nil.
func (r *nodeReport) silent() *nodeReport {
	if r == nil || r.Zone == nil {
		return nil
	}
	zone := *r.Zone
	zone.Silent = true
	return &nodeReport{Report: convert.Report{Zone: &zone}, probes: r.probes}
}

func (f *Facts) withReport(n *world.Node) *world.Node {
	if r := f.reports[n.Name]; r != nil {
		return convert.WithReport(n, r.Report)
	}
	return n
}

// conflicts returns the conflicts that each guard reports in reply to probe requests, and those that it reports on
// addresses that its node announces, by node. Any node may report anything; see world.Snapshot.Reports.
func (f *Facts) conflicts() (replies, announced map[string]map[netip.Addr]world.Conflict) {
	of := func(node string, reported map[netip.Addr]convert.ConflictReport) map[netip.Addr]world.Conflict {
		out := make(map[netip.Addr]world.Conflict, len(reported))
		for a, s := range reported {
			out[a] = world.Conflict{MAC: s.MAC, Node: node, Since: s.Since, Probe: s.Probe}
		}
		return out
	}
	replies, announced = map[string]map[netip.Addr]world.Conflict{}, map[string]map[netip.Addr]world.Conflict{}
	for node, r := range f.reports {
		if len(r.Conflicts) > 0 {
			replies[node] = of(node, r.Conflicts)
		}
		if len(r.AnnouncedConflicts) > 0 {
			announced[node] = of(node, r.AnnouncedConflicts)
		}
	}
	return replies, announced
}

// probed returns the IDs of the probe requests that each guard has completed, by node.
func (f *Facts) probed() map[string][]string {
	all := map[string][]string{}
	for node, r := range f.reports {
		if len(r.Probed) > 0 {
			all[node] = r.Probed
		}
	}
	return all
}

// probes returns the probe requests in each guard's Lease, as stored, by node.
func (f *Facts) probes() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]string, len(f.reports))
	for node, r := range f.reports {
		all[node] = r.probes
	}
	return all
}
