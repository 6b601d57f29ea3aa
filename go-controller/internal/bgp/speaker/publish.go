// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// publish updates the State.
func (p *peer) publish(want *bgp.Session) {
	next, last := State{Peer: p.name, Phase: Idle, Updates: p.updates}, p.err
	sum, unsent := p.notifications, 0
	if want != nil {
		next.Interface, next.Addr = want.Neighbor.Interface, want.Neighbor.Addr
	}
	if p.session != nil && !p.session.awaitsRouter() {
		saw := p.session.connection.observed()
		next.Updates += p.session.updates
		sum.add(saw.notifications)
		next.Addr, next.PeerASN, next.Phase, next.Since = p.session.addr, saw.asn, saw.phase, saw.since
		if saw.why.text != "" {
			last = last.then(failure{reason: saw.why, at: saw.since})
		}
		if saw.phase == Established {
			next.Local, next.Families = saw.local, saw.families
			next.IPv4, next.IPv6 = count(p.session.advertised)
		}
	} else if want != nil && p.dials {
		next.Phase = Active
	}
	next.LastError, next.LastErrorTime = last.message(), last.at
	if next.Phase != Established && next.PeerASN == 0 {
		next.PeerASN = last.asn
	}
	if next.Phase == Established {
		unsent = next.exclude(p.session.neighbor)
	}
	if want != nil && !want.Leaving {
		next.Damped, _ = p.damped(want.Neighbor)
		next.Outdated = p.outdated && next.Phase == Established
	}
	switch {
	case next.Damped:
		next.LastError, next.LastErrorTime = last.message()+dampedText(want.Neighbor), last.at
	case next.Phase == Established:
		p.err.expire()
	}
	next.NotificationsSent, next.NotificationsReceived = sum.sent, sum.received
	if want != nil && !want.Leaving {
		next.Pending = len(want.Routes)
		if next.Phase == Established {
			next.Pending = p.session.missing + unsent
		}
	}
	p.mu.Lock()
	old := p.state
	if next.Phase == old.Phase && next.Since.IsZero() {
		next.Since = old.Since
	} else if next.Since.IsZero() {
		next.Since = time.Now()
	}
	p.state = next
	p.mu.Unlock()
	if next == old {
		return
	}
	if next.Phase != old.Phase && (next.Phase == Established || old.Phase == Established) {
		p.log.Info("BGP session", "phase", next.Phase, "address", next.Addr, "lastError", next.LastError)
	}
	p.speaker.options.Notify()
}

// exclude removes the routes of families that an Established session does not have, and returns their number. It sets
// LastError to the families that we offered and the peer did not.
func (s *State) exclude(offered bgp.Neighbor) int {
	excluded := 0
	var errs []string
	for _, f := range []struct {
		world.Family
		offered, negotiated bool
		routes              *int
	}{
		{world.IPv4, offered.IPv4, s.Families.IPv4, &s.IPv4},
		{world.IPv6, offered.IPv6, s.Families.IPv6, &s.IPv6},
	} {
		if f.negotiated || *f.routes == 0 {
			continue
		}
		excluded, *f.routes = excluded+*f.routes, 0
		if f.offered { // Otherwise the session awaits its turn to be opened again with the family.
			errs = append(errs, bgp.NotNegotiated(f.Family))
		}
	}
	if len(errs) > 0 {
		s.LastError, s.LastErrorTime = strings.Join(errs, "; "), s.Since
	}
	return excluded
}

func count(routes map[netip.Prefix]bgp.Attributes) (v4, v6 int) {
	for prefix := range routes {
		if prefix.Addr().Is4() {
			v4++
		} else {
			v6++
		}
	}
	return v4, v6
}
