// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// FRRObjects is what is known of the objects that make frr-k8s advertise routes.
type FRRObjects interface {
	// Dropped reports whether a prefix is beyond the limit of a peer.
	Dropped(peer string, prefix netip.Prefix) bool
	// Why returns why nothing is written for a peer on a node, empty if that is not known.
	Why(f *world.FRR, node, peer string) (reason, message string)
	// Overdue returns the nodes, sorted, that advertise a prefix to a peer although they should not.
	Overdue(peer string, prefix netip.Prefix) []string
	// NotSent returns why the local preference of a prefix is not sent to a peer, empty if it is.
	NotSent(peer string, prefix netip.Prefix) string
}

// frrSurvey knows which nodes run the routes of peers whose sessions frr-k8s has.
type frrSurvey struct {
	layout  *Layout
	objects FRRObjects
	peers   []*world.Peer
	// running are the sets of nodes that run the prefixes of each peer.
	running map[*world.Peer]*PrefixSets
}

func newFRRSurvey(l *Layout, objects FRRObjects) *frrSurvey {
	return &frrSurvey{layout: l, objects: objects, peers: l.FRRPeers(),
		running: map[*world.Peer]*PrefixSets{}}
}

// key returns what distinguishes the results of addresses with the same advertisements.
func (s *frrSurvey) key(ads []*world.Advertisement, a netip.Addr, local bool) string {
	key := ""
	for _, p := range s.peers {
		running := s.runningOf(p)
		for _, ad := range ads {
			if !advertises(ad, p.Name) || ad.ByGateway {
				continue
			}
			prefix := s.layout.decisive(local, ad, a)
			key += "|" + strconv.Itoa(running.Number(prefix))
			if _, known := slices.BinarySearchFunc(s.layout.Prefixes(), prefix, netip.Prefix.Compare); !known {
				key += prefix.String()
			}
			if s.objects != nil && s.objects.Dropped(p.Name, prefix) {
				key += "!"
			}
		}
	}
	return key
}

// runningOf returns the sets of nodes that run the prefixes of a peer.
func (s *frrSurvey) runningOf(p *world.Peer) *PrefixSets {
	sets := s.running[p]
	if sets == nil {
		sets = RunningSets(s.layout.world.FRR, p, slices.Values(p.Nodes), s.layout.Prefixes())
		s.running[p] = sets
	}
	return sets
}

// overdue returns the nodes that run a route of an address although they should not, sorted.
func (s *frrSurvey) overdue(ads []*world.Advertisement, a netip.Addr) []string {
	var nodes []string
	if s.objects == nil {
		return nil
	}
	for _, p := range s.layout.world.Peers { // FRR may still have routes to one that has another backend now
		for _, ad := range ads {
			nodes = append(nodes, s.objects.Overdue(p.Name, s.layout.prefix(ad, a))...)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// notSent returns why the local preference of an address is not sent, empty if it is.
func (s *frrSurvey) notSent(ads []*world.Advertisement, a netip.Addr) string {
	if s.objects == nil {
		return ""
	}
	for _, p := range s.peers {
		for _, ad := range ads {
			if why := s.objects.NotSent(p.Name, s.layout.prefix(ad, a)); why != "" {
				return why
			}
		}
	}
	return ""
}

// requireRunningRoute lets a session count only if its node runs a route of the address: otherwise it is as if it were
// not established, for the reason that is known.
func (s *frrSurvey) requireRunningRoute(made *Advertisers, session *world.PeerSession, node string, p *world.Peer,
	a netip.Addr, local bool, ads []*world.Advertisement, applies func(*world.Advertisement) bool) {
	if session.Unknown {
		return
	}
	dropped := false
	for _, ad := range ads {
		if !applies(ad) {
			continue
		}
		prefix := s.layout.decisive(local, ad, a)
		_, runs := slices.BinarySearchFunc(s.layout.world.FRR.Running(node, p), prefix, netip.Prefix.Compare)
		if runs && session.Established {
			return
		}
		dropped = dropped || s.objects != nil && s.objects.Dropped(p.Name, prefix)
	}
	reason, message := "", ""
	switch {
	case dropped:
		reason, message = v1alpha1.ReasonTooManyRoutes, "the peer has more prefixes than FRR is given, and those of "+
			"this namespace are more than its share"
	case s.objects != nil:
		reason, message = s.objects.Why(s.layout.world.FRR, node, p.Name)
	}
	if f := world.FamilyOf(a); reason == "" && session.Established && s.layout.world.FRR.Inactive(node, p, f) {
		reason, message = v1alpha1.ReasonFRRConflict, "FRR has "+f.String()+" unicast not activated for the peer: the "+
			"FRRConfigurations of others have rawConfig or addressFamilies with this effect"
	}
	if reason == "" && session.Established {
		reason, message = v1alpha1.ReasonProgramming, "FRR has not reported yet that it has loaded the route"
		if n := s.layout.world.FRR.Nodes[node]; n != nil && n.Problem != "" {
			message = n.Problem
		}
	}
	if reason == "" {
		return
	}
	session.Established, session.Problem = false, message
	if made.FRRReason == "" || made.FRRReason == v1alpha1.ReasonProgramming {
		made.FRRReason = reason
	}
}
