// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// reportAfter is how long it may take to send routes until that is reported, and not only its result.
const reportAfter = time.Second

// adjOut contains the routes that a router has (the Adj-RIB-Out of RFC 4271 section 3.2) and those that it is to have.
// What differs is computed again for each change and encoded in batches, so a slow router receives the newest routes,
// and no queue of older ones exists. It does no I/O.
type adjOut struct {
	neighbor bgp.Neighbor
	// local is the next hop in place of the zero Addr.
	local    netip.Addr
	families Families
	// fourOctet and extendedHop are those of the router's OPEN.
	fourOctet, extendedHop bool
	started                bool
	// want must not be modified.
	want, has map[netip.Prefix]bgp.Attributes
	// repeat contains those that the router has and requests.
	repeat map[netip.Prefix]bool
	// withdraw and announce are what differs, sorted. unended are the families whose End-of-RIB is still to be sent.
	withdraw []netip.Prefix
	announce []route
	unended  Families
	// inFlight is the number of routes of the batch that is being written. since is when the first batch of several began.
	inFlight int
	since    time.Time
	// counts are of what was written, encoded also of what is being written.
	counts, encoded counts
}

// counts are numbers of routes: those that a router has, those that it is to have and has not, and all that were sent
// and withdrawn. needExtendedHop means that some are not sent because their next hop is one that the router does not
// accept.
type counts struct {
	ipv4, ipv6, pending int
	updates             uint64
	needExtendedHop     bool
}

type route struct {
	prefix netip.Prefix
	bgp.Attributes
}

// start begins to send, because the session is Established.
func (o *adjOut) start() {
	o.started, o.unended, o.has, o.since = true, o.families, map[netip.Prefix]bgp.Attributes{}, time.Now()
	_ = o.plan() // The next call of advertise returns the error.
}

// idle reports whether there is nothing to send.
func (o *adjOut) idle() bool {
	return o.inFlight == 0 && len(o.withdraw) == 0 && len(o.announce) == 0 && o.unended == Families{}
}

// refresh sends all routes of families again.
func (o *adjOut) refresh(f Families) {
	if o.repeat == nil {
		o.repeat = map[netip.Prefix]bool{}
	}
	for prefix := range o.has {
		if f.carries(prefix) {
			o.repeat[prefix] = true
		}
	}
	_ = o.plan() // The next call of advertise returns the error.
}

// plan computes what differs. A route that can't be sent is withdrawn, and the error names it.
func (o *adjOut) plan() error {
	if !o.started {
		return nil
	}
	if o.idle() {
		o.since = time.Now()
	}
	o.withdraw, o.announce = nil, nil
	refused, uncarried, needExtendedHop := map[netip.Prefix]error{}, 0, false
	for prefix, a := range o.want {
		if !o.families.carries(prefix) {
			uncarried++
			continue
		}
		if !o.accepts(route{prefix, a}) {
			uncarried, needExtendedHop = uncarried+1, true
			continue
		}
		if have, ok := o.has[prefix]; ok && have.Equal(a) && !o.repeat[prefix] {
			continue
		}
		r := route{prefix, a}
		if _, err := o.encode(r); err != nil {
			refused[prefix] = err
			continue
		}
		o.announce = append(o.announce, r)
	}
	for prefix := range o.has {
		if a, ok := o.want[prefix]; !ok || refused[prefix] != nil || !o.accepts(route{prefix, a}) {
			o.withdraw = append(o.withdraw, prefix)
		}
	}
	slices.SortFunc(o.withdraw, netip.Prefix.Compare)
	slices.SortFunc(o.announce, func(a, b route) int {
		return cmp.Or(a.prefix.Addr().BitLen()-b.prefix.Addr().BitLen(), a.Compare(b.Attributes), a.prefix.Compare(b.prefix))
	})
	o.encoded.pending = len(o.announce) + len(refused) + uncarried
	o.counts.pending = o.encoded.pending + o.inFlight
	o.counts.needExtendedHop, o.encoded.needExtendedHop = needExtendedHop, needExtendedHop
	return joined(refused)
}

// accepts reports whether a route may be sent: one of IPv4 with a next hop of IPv6 only to a router with the capability
// (RFC 8950 section 4).
func (o *adjOut) accepts(r route) bool {
	return o.extendedHop || !r.prefix.Addr().Is4() || !o.nextHop(r).Is6()
}

// joined returns the error of the first of several prefixes and the number of the others.
func joined(refused map[netip.Prefix]error) error {
	if len(refused) == 0 {
		return nil
	}
	first := netip.Prefix{}
	for prefix := range refused {
		if !first.IsValid() || prefix.Compare(first) < 0 {
			first = prefix
		}
	}
	if others := len(refused) - 1; others > 0 {
		return errors.Join(refused[first], fmt.Errorf("and %d more", others))
	}
	return refused[first]
}

// next returns the next batch of UPDATEs: withdrawals, routes, and the End-of-RIB of each family after all of them.
func (o *adjOut) next() (out []byte) {
	for len(o.withdraw) > 0 && len(out) <= batch-maxMessage {
		message, n := withdrawal(o.withdraw)
		for _, prefix := range o.withdraw[:n] {
			o.set(prefix, -1)
			delete(o.has, prefix)
			delete(o.repeat, prefix)
		}
		out, o.withdraw = append(out, message...), o.withdraw[n:]
	}
	for len(o.announce) > 0 && len(out) <= batch-maxMessage {
		message, n := o.update(o.announce)
		for _, r := range o.announce[:n] {
			if _, ok := o.has[r.prefix]; !ok {
				o.set(r.prefix, 1)
			} else {
				o.set(r.prefix, 0)
			}
			o.has[r.prefix] = r.Attributes
			delete(o.repeat, r.prefix)
		}
		o.inFlight, o.encoded.pending = o.inFlight+n, o.encoded.pending-n
		out, o.announce = append(out, message...), o.announce[n:]
	}
	if len(o.withdraw) == 0 && len(o.announce) == 0 && len(out) <= batch-maxMessage {
		out, o.unended = append(out, endOfRIB(o.unended)...), Families{}
	}
	return out
}

// set counts an update and changes the number of routes of the family of a prefix.
func (o *adjOut) set(prefix netip.Prefix, by int) {
	o.encoded.updates++
	if prefix.Addr().Is4() {
		o.encoded.ipv4 += by
	} else {
		o.encoded.ipv6 += by
	}
}

// written counts what next returned, which has been written.
func (o *adjOut) written() { o.counts, o.inFlight = o.encoded, 0 }
