// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// publish updates the State.
func (p *peer) publish(want *bgp.Session) {
	next, last := State{Peer: p.name, Phase: Idle, Updates: p.updates}, p.err
	sum := p.notifications
	if want != nil {
		next.Interface, next.Addr = want.Neighbor.Interface, want.Neighbor.Addr
	}
	routes := counts{}
	if p.session != nil {
		saw := p.session.observed()
		routes, _ = p.session.advertisedCounts()
		next.Updates += routes.updates
		sum.add(saw.notifications)
		next.Addr, next.PeerASN, next.Phase, next.Since = p.session.addr, saw.asn, saw.phase, saw.since
		if saw.why.text != "" {
			last = last.then(failure{reason: saw.why, at: saw.since})
		}
		if saw.phase == Established {
			next.Local, next.Families = saw.local, saw.families
			next.IPv4, next.IPv6 = routes.ipv4, routes.ipv6
		}
	} else if want != nil && p.dials {
		next.Phase = Active
	}
	next.LastError, next.LastErrorReason, next.LastErrorTime = last.message(), last.about, last.at
	if next.Phase != Established && next.PeerASN == 0 {
		next.PeerASN = last.asn
	}
	if next.Phase == Established && want != nil {
		next.Families.IPv4 = next.Families.IPv4 && !routes.needExtendedHop
		next.reportExcluded(p.session.neighbor, want.Routes)
	}
	if want != nil && !want.Leaving {
		next.Damped, _ = p.damped(want.Neighbor)
		next.Outdated = p.outdated && next.Phase == Established
	}
	switch {
	case next.Damped:
		next.LastError = last.message() + dampedText(want.Neighbor)
		next.LastErrorReason, next.LastErrorTime = last.about, last.at
	case next.Phase == Established:
		p.err.expire()
	}
	next.NotificationsSent, next.NotificationsReceived = sum.sent, sum.received
	if want != nil && !want.Leaving {
		next.Pending = len(want.Routes)
		if next.Phase == Established {
			next.Pending = routes.pending
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

// reportExcluded sets LastError to the families of wanted routes that we offered and the peer did not.
func (s *State) reportExcluded(offered bgp.Neighbor, routes map[netip.Prefix]bgp.Attributes) {
	var wanted Families
	for prefix := range routes {
		wanted.IPv4 = wanted.IPv4 || prefix.Addr().Is4()
		wanted.IPv6 = wanted.IPv6 || prefix.Addr().Is6()
	}
	// A family that was not offered awaits its turn: then the session is opened again with it.
	var errs []string
	if wanted.IPv4 && offered.IPv4 && !s.Families.IPv4 {
		errs = append(errs, bgp.NotNegotiated(world.IPv4))
	}
	if wanted.IPv6 && offered.IPv6 && !s.Families.IPv6 {
		errs = append(errs, bgp.NotNegotiated(world.IPv6))
	}
	if len(errs) > 0 {
		s.LastError, s.LastErrorReason, s.LastErrorTime = strings.Join(errs, "; "), v1alpha1.BGPErrorNotNegotiated, s.Since
	}
}
