// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

// addressProber probes segments for the addresses that the controller is about to announce there. It keeps sockets
// open only while there are probes.
type addressProber struct {
	*links
	// ask sends one probe; see links.probe.
	ask func(ctx context.Context, a netip.Addr, network string, vlan int) (sent, paused bool)
	// report receives the conflicts, and the IDs of the probe requests that were completed.
	report func(conflicts map[netip.Addr]convert.ConflictReport, probed []string)
	// leases receives new versions of the node's Lease.
	leases chan *coordinationv1.Lease

	probes addressProbes
	// leaseRead is true once the Lease has been read. reported and probed are the last report.
	leaseRead bool
	reported  map[netip.Addr]convert.ConflictReport
	probed    []string
	// nextReport is when a report that is not urgent may follow.
	nextReport time.Time
}

func newAddressProber(networks func() (map[string]ovn.Uplinks, bool),
	report func(map[netip.Addr]convert.ConflictReport, []string)) *addressProber {
	l := newLinks(networks)
	return &addressProber{links: l, ask: l.probe, report: report, leases: make(chan *coordinationv1.Lease),
		probes: addressProbes{}}
}

func (p *addressProber) run(ctx context.Context) {
	again, report := time.NewTimer(0), time.NewTimer(0)
	again.Stop()
	report.Stop()
	defer again.Stop()
	defer report.Stop()
	defer p.close()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-p.leases:
			p.handleLease(l)
		case h := <-p.received:
			if p.probes[h.Addr] == nil {
				continue // Nothing has changed, and a segment may carry any number of such frames.
			}
			p.metrics.answers.Inc()
			if !p.probes.receive(time.Now(), p.networksOf(h.device), h.Answer) {
				continue
			}
		case <-again.C:
		case <-report.C:
		}
		again.Stop()
		ask, next := p.probes.due(time.Now())
		for _, a := range ask {
			q := p.probes[a]
			sent, paused := p.ask(ctx, a, q.network, q.vlan)
			q.recordProbe(time.Now(), sent, paused)
		}
		if !next.IsZero() {
			again.Reset(time.Until(next))
		} else {
			p.close()
		}
		p.reportChanges(report)
	}
}

// reportChanges reports the results if they have changed, or sets a timer for when that is due.
func (p *addressProber) reportChanges(again *time.Timer) {
	found, probed := p.probes.conflicts(), p.probes.probed()
	if !p.leaseRead || p.reported != nil && maps.Equal(found, p.reported) && containsAll(p.probed, probed) {
		return
	}
	now := time.Now()
	if now.Before(p.nextReport) && !p.probes.areUrgent(probed) {
		again.Reset(p.nextReport.Sub(now))
		return
	}
	logNew(p.reported, found)
	p.reported, p.probed, p.nextReport = found, probed, now.Add(conflictReportInterval)
	p.probes.recordReport(probed)
	p.report(found, probed)
}

// logNew logs the first conflict that was not reported before, with their number: a host that answers for all addresses
// causes hundreds.
func logNew(reported, found map[netip.Addr]convert.ConflictReport) {
	var fresh []netip.Addr
	for a := range found {
		if _, known := reported[a]; !known {
			fresh = append(fresh, a)
		}
	}
	if len(fresh) > 0 {
		first := slices.MinFunc(fresh, netip.Addr.Compare)
		klog.InfoS("Address conflict detected", "address", first, "mac", found[first].MAC, "since", found[first].Since,
			"newConflicts", len(fresh))
	}
}

// containsAll reports whether a list has all elements of another. A completed request that the controller has removed
// stays in the report until there is something to report.
func containsAll(list, other []string) bool {
	return !slices.ContainsFunc(other, func(s string) bool { return !slices.Contains(list, s) })
}

// handleLease reads the requested probes. Conflicts found by a previous guard are kept until there are new results.
func (p *addressProber) handleLease(l *coordinationv1.Lease) {
	var found map[netip.Addr]convert.ConflictReport
	if !p.leaseRead {
		found = convert.ReadReport(l).Conflicts
	}
	p.leaseRead = true
	p.probes.setRequests(time.Now(), convert.ProbeRequests(l), found)
}
