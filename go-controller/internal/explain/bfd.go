// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// ReasonNoBFD is the reason of findings about sessions that are established and whose BFD does not work.
const ReasonNoBFD = "NoBFD"

// addWithoutBFD adds the established sessions with a peer whose BFD does not work.
func (v *overview) addWithoutBFD(is *PeerOverview) {
	nodes := make([]string, 0, len(v.world.Sessions))
	for node := range v.world.Sessions {
		nodes = append(nodes, node)
	}
	why, router := v.withoutBFD(nodes, []string{is.Name})
	if why == "" {
		return
	}
	if is.State == OK {
		is.State, is.Reason = Warning, ReasonNoBFD
	}
	v.out.Findings = append(v.out.Findings, Finding{State: Warning, Object: "BGPPeer " + is.Name, Reason: ReasonNoBFD,
		Message: why, Command: checkBFD(router)})
}

// withoutBFD describes on which of the nodes BFD does not work in an established session with one of the peers, and
// returns the router of the first one. It returns "" if BFD works or is not configured.
func (p *path) withoutBFD(nodes, peers []string) (why, router string) {
	var without []string
	cause := ""
	for _, node := range slices.Sorted(slices.Values(nodes)) {
		if reported := objects.Named(p.objects.NodeStatuses, node); p.maybeDead(node) != "" || reported == nil ||
			reported.Status.StopTime != nil {
			continue
		}
		for _, peer := range peers {
			s := p.world.Sessions[node][peer]
			if !s.Established || s.Unknown || s.BFDProblem == "" {
				continue
			}
			if without = append(without, node); cause == "" {
				cause, router = s.BFDProblem, p.routerOf(peer)
			}
			break
		}
	}
	if len(without) == 0 {
		return "", ""
	}
	return fmt.Sprintf("BFD does not work on node %s, so a router notices that such a node is lost only when the hold "+
		"time ends; node %s: %s", joined(without), without[0], cause), router
}

// routerOf returns the address or the interface of the router of a peer.
func (p *path) routerOf(peer string) string {
	at := slices.IndexFunc(p.world.Peers, func(o *world.Peer) bool { return o.Name == peer })
	if at < 0 {
		return ""
	}
	return p.world.Peers[at].NeighborID()
}

func checkBFD(router string) string {
	return printable.Command("kubectl slb bgp   # then check BFD for these nodes on router %s", router)
}
