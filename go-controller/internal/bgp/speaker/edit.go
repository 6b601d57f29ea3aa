// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"time"
)

// change gives the session another target. It updates the existing session if that can continue, and otherwise ends it.
// With graceful restart, the session ends without a NOTIFICATION, because a NOTIFICATION would make the router drop all
// routes (RFC 4724 section 4).
func (p *peer) change(ctx context.Context, to target) {
	p.outdated = false
	switch {
	case p.session == nil || p.session.target == to:
	case p.session.sameSession(to):
		p.session.target = to
		p.session.connection.setKeepalive(to.neighbor)
	case !p.mayClose():
		p.outdated = true // The session continues with the old target and the wanted routes.
	case to.neighbor.Resumes(p.session.neighbor):
		p.retry, p.damping = time.Time{}, damping{}
		p.session.connection.beginClose(reason{text: renewed, kind: detected})
		p.session.connection.close()
		p.end(ctx, "")
	default:
		p.retry, p.damping = time.Time{}, damping{}
		p.close(ctx, renewed)
	}
}

// mayClose reports whether a session may be closed for an edit. An Established one may be closed only when it is the
// node's turn.
func (p *peer) mayClose() bool {
	return p.speaker.options.Turn == nil || p.session.connection.observed().phase != Established ||
		p.speaker.options.Turn.Take(p.name)
}

// releaseTurn ends the turn when the session is Established as wanted, or is not wanted any more.
func (p *peer) releaseTurn(settled bool) {
	if p.speaker.options.Turn != nil && settled {
		p.speaker.options.Turn.Done(p.name)
	}
}
