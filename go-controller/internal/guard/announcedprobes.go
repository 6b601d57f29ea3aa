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

// set replaces the addresses. What was found about those that are announced as before is kept.
func (q *announcedProbes) set(addrs map[netip.Addr]announcedAddress) {
	var next netip.Addr
	if len(q.order) > 0 {
		next = q.order[q.at]
	}
	before := q.byAddr
	q.byAddr, q.order, q.contested = make(map[netip.Addr]*announcedProbe, len(addrs)), q.order[:0], 0
	for a, as := range addrs {
		is := before[a]
		if is == nil || is.announcedAddress != as {
			is = &announcedProbe{announcedAddress: as}
		}
		if is.found.MAC != "" {
			q.contested++
		}
		q.byAddr[a], q.order = is, append(q.order, a)
	}
	for a, is := range before {
		q.changed = q.changed || is.found.MAC != "" && q.byAddr[a] != is
	}
	slices.SortFunc(q.order, netip.Addr.Compare)
	if q.at, _ = slices.BinarySearchFunc(q.order, next, netip.Addr.Compare); q.at == len(q.order) {
		q.at = 0
	}
}

// gap returns the time until the next probe.
func (q *announcedProbes) gap() time.Duration {
	return max(announcedInterval/time.Duration(max(1, len(q.order))), minAnnouncedGap)
}

// next returns the address to probe now; there must be one. last is true for the last one of a round.
func (q *announcedProbes) next() (a netip.Addr, is *announcedProbe, last bool) {
	a = q.order[q.at]
	is = q.byAddr[a]
	q.at = (q.at + 1) % len(q.order)
	return a, is, q.at == 0
}

// asked records a probe whose answer will be read, if there is one.
func (q *announcedProbes) asked(is *announcedProbe) {
	if is.found.MAC == "" {
		return
	}
	if is.unanswered++; is.unanswered > announcedProbeNum {
		is.found, q.changed = convert.ConflictReport{}, true
		q.contested--
	}
}

// isAnswer reports whether a frame makes a difference, if it is from the network of the address: another host than the
// known one has it, or the known one still has it. It costs little, because hosts may send any number of frames.
func (q *announcedProbes) isAnswer(answer neighbour.Answer) bool {
	is := q.byAddr[answer.Addr]
	if is == nil || is.vlan != answer.VLAN || strings.EqualFold(answer.MAC, is.mac) {
		return false
	}
	if is.found.MAC == "" {
		return q.contested < convert.MaxAnnouncedConflicts
	}
	return is.unanswered > 0
}

// receive records an answer for which isAnswer is true. The host that answered first is reported as long as any host
// answers.
func (q *announcedProbes) receive(now time.Time, answer neighbour.Answer) {
	is := q.byAddr[answer.Addr]
	is.unanswered = 0
	if is.found.MAC == "" {
		is.found = convert.ConflictReport{MAC: answer.MAC, Since: now.UTC().Truncate(time.Second)}
		q.contested++
		q.changed = true
	}
}

// conflicts returns the hosts that answer, by address.
func (q *announcedProbes) conflicts() map[netip.Addr]convert.ConflictReport {
	out := map[netip.Addr]convert.ConflictReport{}
	for a, is := range q.byAddr {
		if is.found.MAC != "" {
			out[a] = is.found
		}
	}
	return out
}
