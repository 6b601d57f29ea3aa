// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"net/netip"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

const (
	// listInterval is how often the announced addresses are read, and listRetry how often while they can't be read or
	// because a host answers for one. What was read last counts for maxUnlisted.
	listInterval = 30 * time.Second
	listRetry    = 5 * time.Second
	maxUnlisted  = 3 * time.Minute
	// conflictReportInterval is the minimum time between two reports of conflicts, except for the results of a new
	// probe request: a host can take and release any number of addresses.
	conflictReportInterval = 5 * time.Second
)

// announcedList are the addresses that the node announced at a time.
type announcedList struct {
	addrs map[netip.Addr]announcedAddress
	read  time.Time
}

// announcedProber looks for other hosts that have taken addresses that this node announces. It changes nothing: a host
// on the segment must not be able to withdraw addresses.
type announcedProber struct {
	*links
	// list returns the addresses that the node announces.
	list func(context.Context) (map[netip.Addr]announcedAddress, error)
	// report receives the conflicts.
	report func(map[netip.Addr]convert.ConflictReport)

	lists chan announcedList
	// relist requests another list.
	relist chan struct{}
	probes announcedProbes
	// from are the networks of devices, as far as they are known since the last list.
	from map[string]map[string]bool
	// complete is set once all addresses were probed. Until then, what a guard before this one has reported counts.
	complete, everReported bool
	reported               map[netip.Addr]convert.ConflictReport
	nextReport             time.Time
}

func newAnnouncedProber(networks func() (map[string]ovn.Uplinks, bool),
	list func(context.Context) (map[netip.Addr]announcedAddress, error),
	report func(map[netip.Addr]convert.ConflictReport)) *announcedProber {
	return &announcedProber{links: newLinks(networks), list: list, report: report,
		lists: make(chan announcedList), relist: make(chan struct{}, 1)}
}

func (p *announcedProber) run(ctx context.Context) {
	go p.readAnnounced(ctx)
	probe, report := time.NewTimer(0), time.NewTimer(0)
	probe.Stop()
	report.Stop()
	defer probe.Stop()
	defer report.Stop()
	defer p.close()
	for {
		select {
		case <-ctx.Done():
			return
		case list := <-p.lists:
			idle := len(p.probes.order) == 0
			p.probes.set(list.addrs, list.read)
			p.from = map[string]map[string]bool{}
			switch {
			case len(list.addrs) == 0:
				probe.Stop()
				p.close()
				p.complete = true
			case idle:
				probe.Reset(p.probes.probeInterval())
			}
		case h := <-p.received:
			if !p.probes.isRelevant(h.Answer) || !p.isFrom(h.device, h.Addr) {
				continue
			}
			p.metrics.answers.Inc()
			if p.probes.receive(time.Now(), h.Answer) {
				select {
				case p.relist <- struct{}{}:
				default:
				}
			}
		case <-probe.C:
			a, is, last := p.probes.next()
			if _, paused := p.probe(ctx, a, is.network, is.vlan); !paused {
				p.probes.recordProbe(is)
			}
			p.complete = p.complete || last
			probe.Reset(p.probes.probeInterval())
		case <-report.C:
		}
		p.reportChanges(report)
	}
}

// readAnnounced reads the announced addresses until ctx ends.
func (p *announcedProber) readAnnounced(ctx context.Context) {
	wait, read, tried := time.NewTimer(0), time.Now(), time.Time{}
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		case <-p.relist:
			wait.Reset(time.Until(tried.Add(listRetry)))
			continue
		}
		tried = time.Now()
		addrs, err := p.list(ctx)
		switch {
		case err == nil:
			read = tried
		case time.Since(read) < maxUnlisted:
			klog.V(2).InfoS("Failed to read the announced addresses", "err", err)
			wait.Reset(listRetry)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case p.lists <- announcedList{addrs, tried}:
			wait.Reset(listInterval)
		}
	}
}

// isFrom reports whether a device leads to the network on which an address is announced.
func (p *announcedProber) isFrom(device string, a netip.Addr) bool {
	networks, known := p.from[device]
	if !known {
		networks = p.networksOf(device)
		p.from[device] = networks
	}
	return networks[p.probes.byAddr[a].network]
}

// reportChanges reports the conflicts if they have changed, or sets a timer for when that is due.
func (p *announcedProber) reportChanges(again *time.Timer) {
	if !p.complete || p.everReported && !p.probes.changed {
		return
	}
	now := time.Now()
	if now.Before(p.nextReport) {
		again.Reset(p.nextReport.Sub(now))
		return
	}
	found := p.probes.conflicts()
	logNew(p.reported, found)
	p.reported, p.everReported, p.probes.changed, p.nextReport = found, true, false, now.Add(conflictReportInterval)
	p.report(found)
}
