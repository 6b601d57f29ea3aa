// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxNamed is the maximum number of nodes that a message names.
const maxNamed = 5

// Of returns what is known of a peer. It is never nil.
func (p *Plan) Of(peer string) *PeerPlan {
	if p == nil || p.Peers[peer] == nil {
		return &PeerPlan{}
	}
	return p.Peers[peer]
}

// LeftOut returns which nodes the objects of a peer leave out and why, empty if none.
func (p *Plan) LeftOut(peer string) string {
	is := p.Of(peer)
	var parts []string
	if len(is.Conflicts) > 0 {
		nodes := slices.Sorted(maps.Keys(is.Conflicts))
		parts = append(parts, fmt.Sprintf("nothing is written for %s, which frr-k8s would refuse: node %s: %s",
			world.Some(nodes, maxNamed), nodes[0], is.Conflicts[nodes[0]]))
	}
	if len(is.Unlabelled) > 0 {
		parts = append(parts, world.Some(is.Unlabelled, maxNamed)+": "+unlabelled)
	}
	return strings.Join(parts, "; ")
}

// Findings returns the findings about a peer: fields that have no effect because its session is shared.
func (p *Plan) Findings(peer string) []world.Finding {
	is := p.Of(peer)
	var out []world.Finding
	for _, differences := range slices.Sorted(maps.Keys(is.Shared)) {
		out = append(out, world.Finding{Reason: v1alpha1.ReasonSharedSession, Message: fmt.Sprintf("on %s, %s",
			world.Count(is.Shared[differences], "node"), differences)})
	}
	return out[:min(len(out), maxNamed)]
}

// Inexpressible returns, by advertisement, what FRRConfigurations cannot express of it, if it advertises to peers whose
// sessions frr-k8s has.
func Inexpressible(w *world.Snapshot) map[string]world.Finding {
	out := map[string]world.Finding{}
	for _, ad := range w.Advertisements {
		var peers []string
		for _, p := range w.Peers {
			if p.FRRK8s && (len(ad.Peers) == 0 || slices.Contains(ad.Peers, p.Name)) {
				peers = append(peers, p.Name)
			}
		}
		var fields []string
		if ad.MED != nil {
			fields = append(fields, "spec.med is not sent to them")
		}
		if ad.Prepend > 0 {
			fields = append(fields, "spec.asPathPrepend is not sent to them")
		}
		if ad.ByGateway {
			fields = append(fields, "spec.nextHop: Gateway is not advertised to them")
		}
		if len(peers) == 0 || len(fields) == 0 {
			continue
		}
		slices.Sort(peers)
		out[ad.Name] = world.Finding{Reason: v1alpha1.ReasonNotInFRRK8s, Message: fmt.Sprintf("BGPPeers with backend FRRK8s "+
			"(%s): %s", world.Some(peers, maxNamed), strings.Join(fields, ", "))}
	}
	return out
}
