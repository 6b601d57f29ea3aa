// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"maps"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// surveyed is what a survey has computed, and from what. The keys of the results contain the rest: the advertisements
// by rank, and the nodes with endpoints by number. Tenants decide how many such sets of nodes there are.
type surveyed struct {
	nodes          map[string]*world.Node
	sessions       map[string]map[string]world.PeerSession
	ads            []*world.Advertisement
	peers, invalid []*world.Peer
	made           map[string]*Advertisers
}

// beginSurvey records a survey whose results will be in made. It returns those of the last survey, also of a former
// Layout, if they still hold.
func (l *Layout) beginSurvey(made map[string]*Advertisers) (last map[string]*Advertisers) {
	before := l.surveyed
	l.surveyed = &surveyed{l.nodes, l.world.Sessions, l.ads, l.peers, l.invalid, made}
	if before == nil || !before.holdsFor(l.surveyed) {
		return nil
	}
	return before.made
}

// holdsFor reports whether a survey with the inputs of o has the results of s. Readers of API objects replace them when
// they change.
func (s *surveyed) holdsFor(o *surveyed) bool {
	byFRR := func(p *world.Peer) bool { return p.FRRK8s } // It reports each route.
	return slices.Equal(s.ads, o.ads) && slices.Equal(s.peers, o.peers) && slices.Equal(s.invalid, o.invalid) &&
		!slices.ContainsFunc(s.peers, byFRR) && maps.EqualFunc(s.nodes, o.nodes, advertiseAlike) &&
		maps.EqualFunc(s.sessions, o.sessions, maps.Equal[map[string]world.PeerSession, map[string]world.PeerSession])
}

// advertiseAlike reports whether two versions of a Node advertise the same with the same sessions.
func advertiseAlike(a, b *world.Node) bool {
	return a == b || a.Name == b.Name && a.Draining == b.Draining && a.NetworkUnavailable == b.NetworkUnavailable &&
		slices.Equal(a.External, b.External) && a.AnyFault() == b.AnyFault()
}
