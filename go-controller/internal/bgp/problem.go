// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Problem is the error of a session. The zero value is none.
type Problem struct {
	Text   string
	Reason v1alpha1.BGPErrorReason
}

// ProblemOf returns why a session is down that our BGP daemon reports. fault is what the guard or agent of the node
// reports, empty for none: it explains that better than the error of the session, which is that of a router that does
// not answer.
func ProblemOf(session world.PeerSession, fault string) Problem {
	if fault == "" || session.Problem == "" || session.Established || session.Unknown || session.ByFRR {
		return Problem{session.Problem, session.Reason}
	}
	return Problem{Text: Reported(fault)}
}

// Reported returns the message about a fault that the guard or agent of a node reports.
func Reported(fault string) string { return "the guard or agent of the node reports: " + fault }

// MoreSpecific reports whether a problem says more about the cause than that of another node's session with the same
// router; none says least. When a router refuses all nodes for one reason, some have not got that far: their path or
// BFD fails for the moment.
func (p Problem) MoreSpecific(than Problem) bool { return p.specificity() > than.specificity() }

func (p Problem) specificity() int {
	switch {
	case p.Text == "":
		return 0
	case p.Reason == v1alpha1.BGPErrorBFDDown:
		return 1
	case p.Reason == v1alpha1.BGPErrorNotification:
		return 3 // the router has answered
	case p.Reason == v1alpha1.BGPErrorWrongASN:
		return 4
	}
	return 2
}
