// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"time"
)

// change makes a session one with another target: the one that is there if it can go on so, else none. With
// graceful restart the router does not hear of it (RFC 4724 section 4: a NOTIFICATION would end it with all routes).
func (p *peer) change(ctx context.Context, to target) {
	switch {
	case p.session == nil || p.session.target == to:
	case p.session.alike(to):
		p.session.target = to
		p.session.line.retime(to.neighbor)
	case !p.mayClose():
		return // The session goes on as it is, with the routes that are wanted.
	case to.neighbor.Resumes(p.session.neighbor):
		p.retry = time.Time{}
		p.session.line.hang(renewed)
		p.session.line.close()
		p.end(ctx, "")
	default:
		p.retry = time.Time{}
		p.close(ctx, renewed)
	}
}

// mayClose reports whether a session may be closed for an edit: one that is Established, when it is the node's turn.
func (p *peer) mayClose() bool {
	return p.speaker.options.Turn == nil || p.session.line.look().phase != Established || p.speaker.options.Turn.Take(p.name)
}

// settle gives the turn back when the session is Established as it is wanted, or not wanted any more.
func (p *peer) settle(settled bool) {
	if p.speaker.options.Turn != nil && settled {
		p.speaker.options.Turn.Done(p.name)
	}
}
