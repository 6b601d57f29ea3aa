// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// withSecret names what counts as a BGPPeer when it is edited. The peer is nil if it does not exist.
func withSecret(peer *v1alpha1.BGPPeer, name string) string {
	if peer == nil || peer.Spec.PasswordSecret == nil {
		return "BGPPeer " + name
	}
	return fmt.Sprintf("BGPPeer %s, or Secret %s/%s with its password,", name, v1alpha1.PasswordsNamespace,
		peer.Spec.PasswordSecret.Name)
}

// established returns the nodes that have a session with a BGPPeer, and those whose session has the settings of before
// an edit: it says nothing about the present ones.
func (p *path) established(peer string) (nodes, earlier []string) {
	for node, sessions := range p.world.Sessions {
		switch s := sessions[peer]; {
		case !s.Established || s.Unknown || p.maybeDead(node) != "":
		case s.Outdated:
			earlier = append(earlier, node)
		default:
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	slices.Sort(earlier)
	return nodes, earlier
}

// trying returns the node that closed its session with an edited BGPPeer last, if no node has one with the new settings
// and others still have those of before: they wait for it, for up to v1alpha1.SessionTurnLimit. It returns nil if there
// is none. When the others stop waiting is not known: a session is in its state only since its last error changed.
func (p *path) trying(peer string) (session *v1alpha1.BGPSession, node string) {
	if others, earlier := p.established(peer); len(others) > 0 || len(earlier) == 0 {
		return nil, ""
	}
	for _, n := range sorted(p.objects.NodeStatuses) {
		for i := range n.Status.Sessions {
			s := &n.Status.Sessions[i]
			if s.Peer != peer || s.State == v1alpha1.BGPEstablished || n.Status.StopTime != nil || p.maybeDead(n.Name) != "" {
				continue
			}
			if session == nil || session.Since.Before(s.Since) {
				session, node = s, n.Name
			}
		}
	}
	return session, node
}

// undo returns what to do about the edit of a BGPPeer with which a node gets no session, and the command for it.
func (p *path) undo(node string, s *v1alpha1.BGPSession) (text, command string) {
	return fmt.Sprintf("node %s gets none with the new settings: correct or undo the edit, within %s of when it closed "+
			"its session, and no other node closes one",
			node, world.Count(int(v1alpha1.SessionTurnLimit/time.Minute), "minute")),
		p.noSession(node, s).Command
}

// Undo returns what to do about edits of BGPPeers with which a node gets no session, by BGPPeer.
func Undo(o *objects.Objects, now time.Time) map[string]string {
	p, out := clusterPath(o, Question{Now: now}), map[string]string{}
	for _, peer := range o.Peers {
		if s, node := p.trying(peer.Name); s != nil {
			text, command := p.undo(node, s)
			out[peer.Name] = text + ": " + command
		}
	}
	return out
}
