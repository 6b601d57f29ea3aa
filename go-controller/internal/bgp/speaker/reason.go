// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// reason is why a session ended or could not be opened.
type reason struct {
	text string
	kind reasonKind
	// about is what the error is about, for the report.
	about v1alpha1.BGPErrorReason
	// asn is the AS number in the router's OPEN, if the session could not be opened because of it.
	asn uint32
}

// reasonKind orders reasons by how much they say about the cause.
type reasonKind uint8

const (
	// unexplained: the router closed the connection and gave no reason.
	unexplained reasonKind = iota
	// unreachable: the router did not answer.
	unreachable
	// detected: this side ended the session.
	detected
	// transient: the router sent a NOTIFICATION about something that passes.
	transient
	// standing: the router refuses sessions until its configuration or ours changes.
	standing
)

const (
	// lost is the reason if the router has closed the connection in a session and given none.
	lost = "the connection was lost"
	// notificationFor is how long a NOTIFICATION explains that the router closes connections or does not answer.
	notificationFor = 5 * time.Minute
)

// failure is a reason and the time at which it occurred.
type failure struct {
	reason
	at time.Time
	// unanswered is why the router has not been reached since; empty if it was not tried.
	unanswered string
}

// message is what is reported. A router that ended its sessions, and does not answer any more, may have another reason
// for that than the one that it sent.
func (f failure) message() string {
	if f.unanswered == "" {
		return f.text
	}
	return f.text + "; since then: " + f.unanswered
}

// then returns the failure to report after another one. Routers that sent a NOTIFICATION often close the next
// connections, or do not answer, and give no reason then. The NOTIFICATION remains the reason:
//   - of connections that the router closes, as long as its cause is one that stands;
//   - of those and of connections that it does not answer, for notificationFor.
//
// Any other failure supersedes it, among them the next NOTIFICATION, and so does a session (see expire).
func (f failure) then(next failure) failure {
	recent := f.kind >= transient && next.at.Sub(f.at) < notificationFor
	switch {
	case next.kind == unexplained && (f.kind == standing || recent):
		return f
	case next.kind == unreachable && recent:
		f.unanswered = next.text
		return f
	}
	return next
}

// expire makes any next failure supersede this one.
func (f *failure) expire() { f.kind = unexplained }
