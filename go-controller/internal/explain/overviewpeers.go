// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// addPeer adds a BGPPeer. A node that may be dead is a finding of its own, and no fault of the router.
func (v *overview) addPeer(p *v1alpha1.BGPPeer, keepers []string) {
	is := PeerOverview{Name: p.Name, Address: cmp.Or(string(p.Spec.PeerAddress), p.Spec.Interface), ASN: p.Spec.PeerASN}
	dead, unknown, draining, down := v.countSessions(&is, keepers)
	onlyDead := len(dead)+len(unknown) > 0 && !down
	is.State, is.Reason = v.judge("BGPPeer", p.Name, p.Status.Conditions, acceptedAndReady(),
		func(f Finding) (Finding, bool) {
			v.blameFault(&f, p.Name, keepers)
			f.Message = v.wholeError(p.Name, f.Message)
			return f, !onlyDead || !aboutSessions(f.Reason)
		})
	if onlyDead && (is.State == OK || aboutSessions(is.Reason)) {
		is.State, is.Reason = Warning, v1alpha1.ReasonNodeSilent
		if is.Established == 0 {
			is.State = Unknown
		}
	}
	var because []string
	if len(dead) > 0 {
		because = append(because, "node "+joined(dead)+" may be dead")
	}
	if len(unknown) > 0 {
		because = append(because, "sessions of node "+joined(unknown)+" are not known")
	}
	if len(draining) > 0 {
		because = append(because, "node "+joined(draining)+" drains")
	}
	is.Message = strings.Join(because, "; ")
	v.addOutdated(p, &is)
	v.addWithoutBFD(&is)
	v.out.Peers = append(v.out.Peers, is)
}

// countSessions counts the sessions that nodes must have with a peer: the keepers, and the nodes that report one. A
// node that drains closes its session. Those of unknown are not known. down is set if another node lacks its session.
func (v *overview) countSessions(is *PeerOverview, keepers []string) (dead, unknown, draining []string, down bool) {
	nodes := slices.Clone(keepers)
	for node, sessions := range v.world.Sessions {
		if _, reports := sessions[is.Name]; reports {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	for _, name := range slices.Compact(nodes) {
		n := objects.Named(v.objects.Nodes, name)
		if n != nil && v.objects.Node(n, v.Now).Draining != "" {
			draining = append(draining, name)
			continue
		}
		is.Sessions++
		reported := objects.Named(v.objects.NodeStatuses, name)
		switch s := v.world.Sessions[name][is.Name]; {
		case v.maybeDead(name) != "":
			dead = append(dead, name)
		case reported != nil && v.unknownSessions(name) != "":
			unknown = append(unknown, name)
		case s.Established && (reported == nil || reported.Status.StopTime == nil):
			is.Established++
		default:
			down = true
		}
	}
	return dead, unknown, draining, down
}

// blameFault lets a finding about the sessions of a peer name the fault that explains the session it is about, as
// explain does. The controller knows only what guards report.
func (v *overview) blameFault(f *Finding, peer string, keepers []string) {
	if !aboutSessions(f.Reason) {
		return
	}
	var most, was bgp.Problem
	at := ""
	for _, node := range keepers {
		s := v.world.Sessions[node][peer]
		if p := bgp.ProblemOf(s, v.anyFault(node).Message); p.MoreSpecific(most) {
			most, was, at = p, bgp.ProblemOf(s, ""), node
		}
	}
	if most != was {
		f.Message = strings.Replace(f.Message, "node "+at+": "+was.Text, "node "+at+": "+most.Text, 1)
		f.Command = v.mendFault(at, v.anyFault(at))
	}
}

// Faults returns what the guards and agents of nodes report, by node, as far as it explains that a node has no session.
func Faults(o *objects.Objects, now time.Time) map[string]string {
	p, faults := clusterPath(o, Question{Now: now}), map[string]string{}
	for _, n := range o.Nodes {
		if fault := p.anyFault(n.Name); fault.Message != "" {
			faults[n.Name] = bgp.Reported(fault.Message)
		}
	}
	return faults
}

// aboutSessions reports whether a reason of a BGPPeer is that nodes have no session, or that this is not known.
func aboutSessions(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonNodeSilent, v1alpha1.ReasonSessionsDown, v1alpha1.ReasonNoSession},
		reason)
}

// addOutdated adds the sessions that an edit of a peer has not reached.
func (v *overview) addOutdated(p *v1alpha1.BGPPeer, is *PeerOverview) {
	var outdated []string
	for node, sessions := range v.world.Sessions {
		if sessions[p.Name].Outdated {
			outdated = append(outdated, node)
		}
	}
	if len(outdated) == 0 {
		return
	}
	slices.Sort(outdated)
	if is.State == OK {
		is.State, is.Reason = Warning, ReasonSessionsOutdated
	}
	wait, command := fmt.Sprintf("wait up to %s for one that does not come back",
		world.Count(int(v1alpha1.SessionTurnLimit/time.Minute), "minute")), "kubectl slb bgp"
	if s, node := v.trying(p.Name); s != nil {
		wait, command = v.undo(node, s)
	}
	v.out.Findings = append(v.out.Findings, Finding{State: Warning, Object: "BGPPeer " + p.Name,
		Reason: ReasonSessionsOutdated, Command: command, Message: fmt.Sprintf("the sessions of %s have the settings of "+
			"before the last edit of %s: nodes reopen their sessions one after the other, and %s", joined(outdated),
			strings.TrimSuffix(withSecret(p, p.Name), ","), wait)})
}
