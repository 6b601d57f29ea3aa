// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// minUptime is how long a session must have lasted to be reopened immediately, and how long one must last that
	// follows a short one to count as Established.
	minUptime = 10 * time.Second
	// beyondHold is how much longer than the hold time a session must last not to be short. A router to which large
	// messages do not get through, for example, ends each session when its hold timer expires.
	beyondHold = 30 * time.Second
	// longestHold limits the hold time that this considers: a session that lasted so long does not end soon.
	longestHold = 5 * time.Minute
)

// damping slows down a peer whose sessions end again and again soon after they were Established, for example because of
// its limit of prefixes (DampPeerOscillations, RFC 4271 section 8.1.1). Each of these sessions costs the router and all
// users of the state as much as a lasting one.
type damping struct {
	// short is the number of consecutive sessions that were short.
	short int
}

// stableAfter returns how long a session must be Established not to be short.
func stableAfter(n bgp.Neighbor) time.Duration { return min(n.Hold, longestHold) + beyondHold }

// ended records a session that was Established for a time that is not 0.
func (d *damping) ended(lasted, stable time.Duration) {
	d.short++
	if lasted >= stable {
		d.short = 0
	}
}

// delay returns the longest time until the peer is dialed again: connect, and twice as long after each further session,
// up to a limit.
func (d damping) delay(connect, most time.Duration) time.Duration {
	return backoff(connect, d.short, max(connect, most))
}

// probation returns how long the next session must be Established to count as such, 0 if it counts at once.
func (d damping) probation(stable time.Duration) time.Duration {
	if d.short == 0 {
		return 0
	}
	return backoff(minUptime, d.short, stable)
}

// backoff returns a time that is doubled from the second of n times on, up to a limit.
func backoff(first time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}

// sessionEnded records the end of a session that the router had accepted, and sets the time of the next attempt.
func (p *peer) sessionEnded(saw connState, n bgp.Neighbor) {
	wait := time.Duration(0)
	if saw.lasted < minUptime {
		wait = p.pace(n)
	}
	if saw.lasted > 0 {
		p.damping.ended(saw.lasted, stableAfter(n))
		if p.damping.short > 1 {
			wait = retryInterval(p.dampedDelay(n))
		}
	}
	p.retry = time.Now().Add(wait)
}

// dampedDelay returns the longest time until the peer is dialed again after sessions that were short. It begins with a
// shorter one if BFD ended the last of them.
func (p *peer) dampedDelay(n bgp.Neighbor) time.Duration {
	return p.damping.delay(p.connectTime(n), p.speaker.maxDelay)
}

// clearFailures ends what was wrong before a session that lasted, so that none of it is reported once this side ends
// the session, for example for a drain.
func (p *peer) clearFailures(saw connState, n bgp.Neighbor) {
	lasted := saw.lasted
	if saw.phase == Established {
		lasted = time.Since(saw.since)
	}
	if lasted < stableAfter(n) {
		return
	}
	p.damping = damping{}
	if time.Since(p.err.at) >= lasted {
		p.err = failure{}
	}
}

// damped reports whether the peer counts as down whatever the state of its session, and how long the session must still
// last for that to end; 0 if it is not Established.
func (p *peer) damped(n bgp.Neighbor) (is bool, left time.Duration) {
	if p.damping.short == 0 || p.session == nil {
		return p.damping.short > 0, 0
	}
	saw := p.session.observed()
	if saw.phase != Established {
		return true, 0
	}
	left = max(time.Until(saw.since.Add(p.damping.probation(stableAfter(n)))), 0)
	return left > 0, left
}

// dampedText is added to the error of a peer that counts as down. It is the same after each session.
func dampedText(n bgp.Neighbor) string {
	return fmt.Sprintf("; the last session ended within %s, so the next one counts as down until it has lasted, at first "+
		"for %s, and attempts are up to %s apart if that happens again", stableAfter(n), minUptime,
		max(n.Connect, maxBackoff))
}
