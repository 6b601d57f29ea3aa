// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// probeNum is the number of unanswered probes after which no host has the address (PROBE_NUM of RFC 5227).
	probeNum = 3
	// probeInterval is the interval between probes. The RFC uses one to two seconds; hosts reply within milliseconds, and
	// a Service is waiting.
	probeInterval = 250 * time.Millisecond
	// conflictProbeInterval is the interval for an address that another host has.
	conflictProbeInterval = time.Second
	// maxUnprobed is how long a host that was found counts while no probe can be sent: as long as the report of a guard
	// that is gone. A guard that can't probe must not keep addresses from Services indefinitely.
	maxUnprobed = 40 * time.Second
)

// addressProbe is the probe of one address.
type addressProbe struct {
	// id is the controller's ID of the request. routerMAC is the MAC address of our own router.
	id, routerMAC string
	network       string
	vlan          int
	// unanswered counts the probes that were sent since the last reply, and is greater than probeNum once none of them was
	// answered in time. next is when the next one is due.
	unanswered int
	next       time.Time
	// checked is when a probe was last sent or answered, or the first one was requested.
	checked time.Time
	// found is the host that has replied. Its MAC is empty if there is none.
	found convert.ConflictReport
	// contested is set once a host that has replied was reported, and completed once the whole request was reported as
	// completed.
	contested, completed bool
}

// addressProbes are the current probes by address.
type addressProbes map[netip.Addr]*addressProbe

// setRequests replaces the probes by those that the controller requests. found are conflicts known from before.
func (p addressProbes) setRequests(now time.Time, requests []world.ProbeRequest,
	found map[netip.Addr]convert.ConflictReport) {
	want := addressProbes{}
	for _, about := range requests {
		for _, a := range about.Addresses {
			is := &addressProbe{id: about.ID, routerMAC: about.Own, network: about.Network, vlan: about.VLAN, next: now,
				checked: now, found: found[a]}
			if last := p[a]; last != nil && last.network == about.Network && last.vlan == about.VLAN {
				if last.id == about.ID {
					is = last
				} else { // a new request, for example of another controller: the known host still has the address
					is.found, is.checked = last.found, last.checked
				}
			}
			want[a] = is
		}
	}
	clear(p)
	maps.Copy(p, want)
}

// due returns the addresses to probe now, and when due must be called again; the zero time means never. The result of
// each probe is passed to recordProbe.
func (p addressProbes) due(now time.Time) (ask []netip.Addr, again time.Time) {
	for a, is := range p {
		if is.unanswered > probeNum {
			continue // finished
		}
		if !is.next.After(now) {
			if is.unanswered == probeNum {
				is.unanswered++
				is.found = convert.ConflictReport{}
				continue
			}
			ask = append(ask, a)
			is.next = now.Add(is.interval())
		}
		if again.IsZero() || is.next.Before(again) {
			again = is.next
		}
	}
	return ask, again
}

// recordProbe records a probe. If it could not be sent, or its answer may be lost because reading was paused, silence
// means nothing: it does not count, and is repeated when the next one is due. While hosts flood the segment, that is
// later, so that they cause no broadcasts. A pause may also have begun just after the probes before, so they count
// no longer.
func (p *addressProbe) recordProbe(now time.Time, sent, paused bool) {
	switch {
	case sent && !paused:
		p.unanswered, p.checked = p.unanswered+1, now
	case now.Sub(p.checked) >= maxUnprobed:
		p.found = convert.ConflictReport{}
	}
	if paused {
		p.unanswered, p.next = 0, now.Add(conflictProbeInterval)
	}
}

func (p *addressProbe) interval() time.Duration {
	if p.found.MAC != "" {
		return conflictProbeInterval
	}
	return probeInterval
}

// receive records a reply from one of the networks. The host that replied first is reported as long as any host
// replies. It returns true if due has to be called, or if what is reported has changed: a host can send any number of
// replies.
func (p addressProbes) receive(now time.Time, from map[string]bool, answer neighbour.Answer) (relevant bool) {
	is := p[answer.Addr]
	if is == nil || is.vlan != answer.VLAN || !from[is.network] || strings.EqualFold(answer.MAC, is.routerMAC) {
		return false
	}
	relevant = is.found.MAC == "" || is.unanswered > probeNum
	if is.found.MAC == "" {
		is.found = convert.ConflictReport{MAC: answer.MAC, Since: now.UTC().Truncate(time.Second)}
	}
	is.unanswered, is.next, is.checked = 0, now.Add(conflictProbeInterval), now
	return relevant
}

// conflicts returns the hosts that reply, by address.
func (p addressProbes) conflicts() map[netip.Addr]convert.ConflictReport {
	out := map[netip.Addr]convert.ConflictReport{}
	for a, is := range p {
		if is.found.MAC != "" {
			out[a] = convert.ConflictReport{MAC: is.found.MAC, Since: is.found.Since, Probe: is.id}
		}
	}
	return out
}

// probed returns the IDs of the requests all of whose addresses were probed: until no host replied, or until one did.
func (p addressProbes) probed() []string {
	done := map[string]bool{}
	for _, is := range p {
		finished := is.found.MAC != "" || is.unanswered > probeNum
		if before, known := done[is.id]; is.id != "" && (!known || before) {
			done[is.id] = finished
		}
	}
	maps.DeleteFunc(done, func(_ string, finished bool) bool { return !finished })
	return slices.Sorted(maps.Keys(done))
}

// areUrgent reports whether results are to be reported at once. probed are the completed requests, sorted. Each request
// causes that a limited number of times: when it is completed, for each of its addresses that another host has
// until then, and for the first one that another host has after that. What hosts do otherwise can wait.
func (p addressProbes) areUrgent(probed []string) bool {
	contested := map[string]bool{}
	for _, is := range p {
		contested[is.id] = contested[is.id] || is.contested
	}
	for _, is := range p {
		_, finished := slices.BinarySearch(probed, is.id)
		mayWait := is.contested || is.completed && contested[is.id]
		if finished && !is.completed || is.found.MAC != "" && !mayWait {
			return true
		}
	}
	return false
}

// recordReport records that all results were reported. probed is that of areUrgent.
func (p addressProbes) recordReport(probed []string) {
	for _, is := range p {
		is.contested = is.contested || is.found.MAC != ""
		_, finished := slices.BinarySearch(probed, is.id)
		is.completed = is.completed || finished
	}
}
