// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// noSession explains why a node has no session. What the guard or agent of the node reports explains it better than the
// error of the session, which is that of a router that does not answer.
func (p *path) noSession(node string, s *v1alpha1.BGPSession) Link {
	reason, cause, command := p.sessionCause(node, s)
	others, earlier := p.established(s.Peer)
	if fault := p.anyFault(node); fault.Message != "" {
		reason, command = v1alpha1.ExcludedFaulty, p.mendFault(node, fault)
		cause = bgp.Reported(fault.Message)
	} else if len(others) > 0 && (reason == ReasonPeerDown || reason == ReasonWrongPassword) &&
		s.LastErrorReason != v1alpha1.BGPErrorNotification {
		reason, cause = ReasonPeerDown, s.LastError
		if s.LastErrorReason == v1alpha1.BGPErrorNoAnswer {
			cause = "the router does not answer" // without what to check on both sides: the other sessions show that it is right
		}
		cause += fmt.Sprintf("; the router has sessions with %s, so the cause is on this node, on its link, or in what "+
			"the router allows it", joined(others))
		if s.PeerAddress != "" && s.LastErrorReason != v1alpha1.BGPErrorUnreachable { // else the node is to be mended
			command = printable.Command("ip route get %s   # on node %s; then check that the router accepts this node",
				s.PeerAddress, node)
		}
	} else if len(others) == 0 && len(earlier) > 0 {
		cause += fmt.Sprintf("; %s was edited: node %s tries the new settings, and the sessions of %s still have those of "+
			"before, so correct or undo the edit", withSecret(objects.Named(p.objects.Peers, s.Peer), s.Peer), node,
			joined(earlier))
		if reason != ReasonWrongASN { // whose command names the fields
			command = printable.Command("kubectl edit bgppeers.slb.k8s.ovn.org %s   # what was edited, or the Secret of "+
				"spec.passwordSecret", s.Peer)
		}
	}
	return Link{Name: LinkBGP, Object: node, Reason: reason, Command: command,
		Message: fmt.Sprintf("node %s has no session with BGPPeer %s (%s): %s", node, s.Peer, s.State, cause)}
}

// sessionCause returns what the error of a session means, and what to do about it. A node may report a session with a
// peer that does not exist, which no command is about.
func (p *path) sessionCause(node string, s *v1alpha1.BGPSession) (reason, cause, command string) {
	peer := objects.Named(p.objects.Peers, s.Peer)
	edit := func(field string) string {
		if peer == nil {
			return "kubectl slb bgp"
		}
		return printable.Command("kubectl edit bgppeers.slb.k8s.ovn.org %s   # "+field, peer.Name)
	}
	switch s.LastErrorReason {
	case v1alpha1.BGPErrorWrongASN:
		fields := "spec.myASN, spec.peerASN"
		if s.PeerASN != 0 {
			fields = fmt.Sprintf("spec.peerASN: the router has %d", s.PeerASN)
		}
		return ReasonWrongASN, "the AS numbers differ: " + s.LastError, edit(fields)
	case v1alpha1.BGPErrorNotification:
		return ReasonPeerDown, s.LastError, "kubectl slb bgp   # the reason is the one that " + routerOf(s) + " sent"
	case v1alpha1.BGPErrorUnreachable:
		if peer != nil && peer.Spec.SourceAddress != "" {
			return ReasonPeerDown, s.LastError, printable.Command("ip route get %s from %s   # on node %s, which must have "+
				"spec.sourceAddress of BGPPeer %s", s.PeerAddress, peer.Spec.SourceAddress, node, peer.Name)
		}
		return ReasonPeerDown, s.LastError, printable.Command("ip route get %s   # on node %s", s.PeerAddress, node)
	case v1alpha1.BGPErrorNotOnLink:
		return ReasonPeerDown, s.LastError, edit("spec.ebgpMultiHop")
	case v1alpha1.BGPErrorBFDDown, v1alpha1.BGPErrorNotNegotiated:
	case v1alpha1.BGPErrorNoAnswer:
		if peer == nil || peer.Spec.PasswordSecret == nil && peer.Spec.Password == "" {
			break
		}
		command = edit("spec.password")
		if peer.Spec.PasswordSecret != nil {
			command = printable.Command("kubectl -n "+v1alpha1.PasswordsNamespace+" patch secret %s "+
				`-p '{"stringData":{"password":"PASSWORD"}}'   # that of router %s`, peer.Spec.PasswordSecret.Name, s.PeerAddress)
		}
		return ReasonWrongPassword, "the peer does not answer, as with a wrong password or without BGP on the peer: " +
			s.LastError, command
	}
	if s.LastError == "" {
		return v1alpha1.ReasonNoSession, "the session is " + string(s.State), "kubectl slb bgp"
	}
	if s.PeerAddress == "" && peer != nil && peer.Spec.Interface != "" { // No router has been found, or no interface.
		return ReasonPeerDown, s.LastError, printable.Command("ip link show %s   # on node %s; without it correct "+
			"spec.interface or spec.nodeSelectors of BGPPeer %s, with it the router must send Router Advertisements there",
			peer.Spec.Interface, node, peer.Name)
	}
	return ReasonPeerDown, s.LastError, "kubectl slb bgp   # then check that " + routerOf(s) + " runs BGP"
}

// routerOf names the router of a session in a command. A node without its address has not found it.
func routerOf(s *v1alpha1.BGPSession) string {
	if s.PeerAddress == "" {
		return "the router"
	}
	return printable.Command("router %s", s.PeerAddress)
}
