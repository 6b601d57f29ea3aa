// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// change gives the peer another target. It updates the existing session if that can continue, and otherwise ends it and
// dials at once, or if BFD ends, when the router has noticed that. With graceful restart, the session ends without a
// NOTIFICATION, because a NOTIFICATION would make the router drop all routes (RFC 4724 section 4).
func (p *peer) change(want *bgp.Session, to target) {
	p.outdated = false
	ends := p.endsBFD(want.BFD)
	switch {
	case p.target == target{} || p.target == to && !ends:
	case p.target.sameSession(to) && !ends:
		if p.session != nil {
			p.mu.Lock()
			p.session.target = to
			p.mu.Unlock()
			p.session.setKeepalive(to.neighbor)
		}
	case !p.mayClose():
		p.outdated = true // The session continues with the old target, its BFD and the wanted routes.
		return
	default:
		p.retry, p.damping = time.Time{}, damping{}
		p.cancelAttempt()
		if !to.neighbor.Resumes(p.target.neighbor) {
			p.close(renewed)
		} else if p.session != nil {
			p.session.abort(reason{text: renewed, kind: detected})
			p.end("")
		}
		if ends {
			p.awaitEndOfBFD()
		}
	}
	p.target = to
}

// mayClose reports whether a session may be closed for an edit. An Established one may be closed only when it is the
// node's turn.
func (p *peer) mayClose() bool {
	return p.speaker.options.Turn == nil || p.session == nil || p.session.observed().phase != Established ||
		p.speaker.options.Turn.Take(p.name)
}

// releaseTurn ends the turn when the session is Established as wanted, or is not wanted any more.
func (p *peer) releaseTurn(settled bool) {
	if p.speaker.options.Turn != nil && settled {
		p.speaker.options.Turn.Done(p.name)
	}
}
