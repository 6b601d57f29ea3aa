// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
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

// LeftOut returns which nodes the objects of a peer leave out, or where they have no effect, and why, empty if none.
func (p *Plan) LeftOut(peer string) string {
	is := p.Of(peer)
	var parts []string
	add := func(what string, why map[string]string) {
		if len(why) > 0 {
			nodes := slices.Sorted(maps.Keys(why))
			parts = append(parts, fmt.Sprintf(what, world.Some(nodes, maxNamed))+": node "+nodes[0]+": "+why[nodes[0]])
		}
	}
	add("nothing is written for %s, which frr-k8s would refuse", is.Conflicts)
	add("nothing is written for %s, whose FRRConfigurations are not all read", is.Unread)
	if len(is.Unselectable) > 0 {
		nodes := slices.Sorted(maps.Keys(is.Unselectable))
		parts = append(parts, world.Some(nodes, maxNamed)+": "+is.Unselectable[nodes[0]])
	}
	add("frr-k8s applies no FRRConfiguration on %s", is.Stalled)
	return strings.Join(parts, "; ")
}

// Findings returns the findings about a peer: fields that have no effect because its session is shared, local
// preferences, and RouteAdvertisements that select its objects.
func (p *Plan) Findings(peer string) []world.Finding {
	is := p.Of(peer)
	var out []world.Finding
	for _, differences := range slices.Sorted(maps.Keys(is.Shared)) {
		out = append(out, world.Finding{Reason: v1alpha1.ReasonSharedSession, Message: fmt.Sprintf("on %s, %s",
			world.Count(is.Shared[differences], "node"), differences)})
	}
	for _, prefix := range slices.SortedFunc(maps.Keys(is.Preferences), netip.Prefix.Compare) {
		out = append(out, world.Finding{Reason: v1alpha1.ReasonFRRConflict, Message: is.Preferences[prefix]})
	}
	out = out[:min(len(out), maxNamed)]
	if is.Copied != "" {
		out = append(out, world.Finding{Reason: v1alpha1.ReasonRouteAdvertisements, Message: is.Copied})
	}
	return out
}

// copied returns what follows from the RouteAdvertisements that select the objects of a peer, empty if there are none.
func copied(p *world.Peer, selecting []string) string {
	if len(selecting) == 0 {
		return ""
	}
	does := "copies them for each node, and frr-k8s then refuses edits of the session; up to 1.3 it rejects such " +
		"RouteAdvertisements"
	if p.DualStack {
		does = "rejects such RouteAdvertisements, because of dualStackAddressFamily"
	}
	return fmt.Sprintf("spec.frrConfigurationSelector of RouteAdvertisements %s selects the FRRConfigurations of this "+
		"BGPPeer: OVN-Kubernetes %s. Exclude objects with the label %s (operator DoesNotExist)",
		world.Some(selecting, maxNamed), does, frrapi.LabelPeer)
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

// Rivals returns, by peer with sessions of our daemon, a finding if FRRConfigurations define the same session on a
// node. A router has one session between two addresses, and which of the two it has depends on the router and on which
// comes first. Of sessions of which only one has a source address it is not known whether they are the same.
func Rivals(w *world.Snapshot) map[string]world.Finding {
	out := map[string]world.Finding{}
	if !w.FRR.Available() {
		return out
	}
	for _, p := range w.Peers {
		if p.FRRK8s {
			continue
		}
		var objects []string
		nodes := map[string]bool{}
		for _, c := range w.FRR.Configurations {
			if c.Peer != "" || !hasSession(c.Foreign, p) {
				continue
			}
			before := len(nodes)
			for _, n := range c.Nodes {
				if _, both := slices.BinarySearch(p.Nodes, n); both {
					nodes[n] = true
				}
			}
			if len(nodes) > before {
				objects = append(objects, objectName(c.Name))
			}
		}
		if len(nodes) == 0 {
			continue
		}
		effect := "without enableGracefulRestart, the router refuses FRR as long as our daemon has it"
		if p.GracefulRestart {
			effect = "the router closes that of our daemon when FRR connects"
		}
		out[p.Name] = world.Finding{Reason: v1alpha1.ReasonDuplicatePeer, Message: fmt.Sprintf("%s has the same session on "+
			"%s: %s; use another sourceAddress or router, or backend: FRRK8s", world.Some(objects, maxNamed),
			world.Some(slices.Sorted(maps.Keys(nodes)), maxNamed), effect)}
	}
	return out
}

// hasSession reports whether an object of others defines a session between the addresses of a peer.
func hasSession(c *frrapi.Converted, p *world.Peer) bool {
	return slices.ContainsFunc(c.Routers, func(r frrapi.ConvertedRouter) bool {
		if r.VRF != "" {
			return false
		}
		for i := range r.Neighbors {
			if n := &r.Neighbors[i]; n.Source == p.Source && same(n, p) {
				return true
			}
		}
		return false
	})
}
