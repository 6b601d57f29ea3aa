// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"encoding/binary"
	"hash/fnv"
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
}

// frrSurvey knows which nodes run the routes of peers whose sessions frr-k8s has.
type frrSurvey struct {
	layout  *Layout
	objects FRRObjects
	peers   []*world.Peer
	// running names, for each peer and prefix, the set of nodes that run it. Nodes with the same routes are one item.
	running map[*world.Peer]map[netip.Prefix]string
}

func newFRRSurvey(l *Layout, objects FRRObjects) *frrSurvey {
	return &frrSurvey{layout: l, objects: objects, peers: l.FRRPeers(),
		running: map[*world.Peer]map[netip.Prefix]string{}}
}

// key returns what distinguishes the results of addresses with the same advertisements.
func (s *frrSurvey) key(ads []*world.Advertisement, a netip.Addr) string {
	key := ""
	for _, p := range s.peers {
		running := s.runningOf(p)
		for _, ad := range ads {
			if !advertises(ad, p.Name) || ad.ByGateway {
				continue
			}
			prefix := s.layout.prefix(ad, a)
			key += "|" + running[prefix]
			if s.objects != nil && s.objects.Dropped(p.Name, prefix) {
				key += "!"
			}
		}
	}
	return key
}

// runningOf returns the names of the sets of nodes that run the prefixes of a peer.
func (s *frrSurvey) runningOf(p *world.Peer) map[netip.Prefix]string {
	sets, known := s.running[p]
	if known {
		return sets
	}
	sets = map[netip.Prefix]string{}
	s.running[p] = sets
	type list struct {
		prefixes []netip.Prefix
		name     string
	}
	lists := map[uint64][]*list{}
	number := 0
	for _, node := range p.Nodes {
		prefixes := s.layout.world.FRR.Running(node, p)
		h := fnv.New64a()
		for _, prefix := range prefixes {
			b := prefix.Addr().As16()
			h.Write(binary.BigEndian.AppendUint16(b[:], uint16(prefix.Bits())))
		}
		sum := h.Sum64()
		if !slices.ContainsFunc(lists[sum], func(l *list) bool { return slices.Equal(l.prefixes, prefixes) }) {
			lists[sum] = append(lists[sum], &list{prefixes, strconv.Itoa(number) + ","})
			for _, prefix := range prefixes {
				sets[prefix] += strconv.Itoa(number) + ","
			}
			number++
		}
	}
	return sets
}

// judge lets a session count only if its node runs a route of the address: otherwise it is as if it were not
// established, for the reason that is known.
func (s *frrSurvey) judge(made *Advertisers, session *world.PeerSession, node string, p *world.Peer, a netip.Addr,
	ads []*world.Advertisement, applies func(*world.Advertisement) bool) {
	if session.Unknown {
		return
	}
	dropped := false
	for _, ad := range ads {
		if !applies(ad) {
			continue
		}
		prefix := s.layout.prefix(ad, a)
		_, runs := slices.BinarySearchFunc(s.layout.world.FRR.Running(node, p), prefix, netip.Prefix.Compare)
		if runs && session.Established {
			return
		}
		dropped = dropped || s.objects != nil && s.objects.Dropped(p.Name, prefix)
	}
	reason, message := "", ""
	switch {
	case dropped:
		reason, message = v1alpha1.ReasonTooManyRoutes, "the peer has more prefixes than FRR is given, and those of older "+
			"Services come first"
	case s.objects != nil:
		reason, message = s.objects.Why(s.layout.world.FRR, node, p.Name)
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
