// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

const (
	// announcedInterval is the time between two probes of an announced address. minAnnouncedGap is the minimum time
	// between two probes of any, which are broadcasts: beyond 1,500 addresses on a gateway, a round takes longer.
	announcedInterval = 30 * time.Second
	minAnnouncedGap   = 20 * time.Millisecond
	// announcedProbeNum is the number of unanswered probes after which no other host has an announced address any more.
	announcedProbeNum = 3
)

// announcedAddress is how an address is announced: from a MAC address, on the segment of a network.
type announcedAddress struct {
	mac, network string
	vlan         int
}

// announcedProbe is the probe of an announced address.
type announcedProbe struct {
	announcedAddress
	// found is the other host that answers. Its MAC is empty if there is none. unanswered counts the probes since its
	// last answer.
	found      convert.ConflictReport
	unanswered int
	// unlisted is when that host answered first, until the addresses have been read again: this one may have been
	// withdrawn before it answered. It is zero otherwise.
	unlisted time.Time
}

// announcedProbes are the probes of the addresses that this node announces, one after the other, and again and again.
// OVN here does not receive them, so all answers are from other hosts.
type announcedProbes struct {
	byAddr map[netip.Addr]*announcedProbe
	// order are the addresses, sorted. The one at is probed next.
	order []netip.Addr
	at    int
	// contested is how many of them have been found on another host. Beyond convert.MaxAnnouncedConflicts, further
	// ones are not recorded: a host may answer for all.
	contested int
	// changed is set if conflicts has changed.
	changed bool
}

// set replaces the addresses by those of a list that was requested at a time. What was found about those that are
// announced as before is kept.
func (p *announcedProbes) set(addrs map[netip.Addr]announcedAddress, read time.Time) {
	var next netip.Addr
	if len(p.order) > 0 {
		next = p.order[p.at]
	}
	before := p.byAddr
	p.byAddr, p.order, p.contested = make(map[netip.Addr]*announcedProbe, len(addrs)), p.order[:0], 0
	for a, as := range addrs {
		is := before[a]
		if is == nil || is.announcedAddress != as {
			is = &announcedProbe{announcedAddress: as}
		}
		if is.found.MAC != "" {
			p.contested++
		}
		if !is.unlisted.IsZero() && !read.Before(is.unlisted) {
			is.unlisted, p.changed = time.Time{}, true
		}
		p.byAddr[a], p.order = is, append(p.order, a)
	}
	for a, is := range before {
		p.changed = p.changed || is.found.MAC != "" && p.byAddr[a] != is
	}
	slices.SortFunc(p.order, netip.Addr.Compare)
	if p.at, _ = slices.BinarySearchFunc(p.order, next, netip.Addr.Compare); p.at == len(p.order) {
		p.at = 0
	}
}

// probeInterval returns the time until the next probe.
func (p *announcedProbes) probeInterval() time.Duration {
	return max(announcedInterval/time.Duration(max(1, len(p.order))), minAnnouncedGap)
}

// next returns the address to probe now; there must be one. last is true for the last one of a round.
func (p *announcedProbes) next() (a netip.Addr, is *announcedProbe, last bool) {
	a = p.order[p.at]
	is = p.byAddr[a]
	p.at = (p.at + 1) % len(p.order)
	return a, is, p.at == 0
}

// recordProbe records a probe whose answer will be read, if there is one.
func (p *announcedProbes) recordProbe(is *announcedProbe) {
	if is.found.MAC == "" {
		return
	}
	if is.unanswered++; is.unanswered > announcedProbeNum {
		is.found, is.unlisted, p.changed = convert.ConflictReport{}, time.Time{}, true
		p.contested--
	}
}

// isRelevant reports whether a frame makes a difference, if it is from the network of the address: another host than
// the known one has it, or the known one still has it. It costs little, because hosts may send any number of frames.
func (p *announcedProbes) isRelevant(answer neighbour.Answer) bool {
	is := p.byAddr[answer.Addr]
	if is == nil || is.vlan != answer.VLAN || strings.EqualFold(answer.MAC, is.mac) {
		return false
	}
	if is.found.MAC == "" {
		return p.contested < convert.MaxAnnouncedConflicts
	}
	return is.unanswered > 0
}

// receive records an answer for which isRelevant is true. The host that answered first is reported as long as any host
// answers, once the addresses have been read again.
func (p *announcedProbes) receive(now time.Time, answer neighbour.Answer) (first bool) {
	is := p.byAddr[answer.Addr]
	is.unanswered = 0
	if is.found.MAC == "" {
		is.found = convert.ConflictReport{MAC: answer.MAC, Since: now.UTC().Truncate(time.Second)}
		is.unlisted = now
		p.contested++
		return true
	}
	return false
}

// conflicts returns the hosts that answer, by address. One counts once its address is known to be still announced.
func (p *announcedProbes) conflicts() map[netip.Addr]convert.ConflictReport {
	out := map[netip.Addr]convert.ConflictReport{}
	for a, is := range p.byAddr {
		if is.found.MAC != "" && is.unlisted.IsZero() {
			out[a] = is.found
		}
	}
	return out
}
