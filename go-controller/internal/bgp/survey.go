// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Tellers say who tells of an address. They are shared by addresses: read only.
type Tellers struct {
	// Nodes tell of it now, sorted; Idle should and have no session.
	Nodes, Idle []string
	// Peers hear of it, sorted.
	Peers []string
	// ByNode: the next hop is a node for one of the advertisements.
	ByNode bool
	// Problem is that of one of the sessions that are missing.
	Problem string
	// Unknown: of some of Idle it is not known whether they tell of it, and of none that they do.
	Unknown bool
	// GatewayUnknown: the shard that the next hop would be has no address yet.
	GatewayUnknown bool
	// Off says why nobody tells of anything, empty if they may.
	Off string
}

// Survey finds for all addresses who tells of them: many have the same Tellers, which are
// worked out once. Not for use by several goroutines.
type Survey struct {
	layout *Layout
	made   map[string]*Tellers
	// names are those of all nodes, sorted; peers those of each that was asked for.
	names []string
	peers map[string][]*world.Peer
	// off are the tellers of all addresses while BGP is switched off, nil if it is not.
	off *Tellers
}

// Survey returns an empty one of a layout that knows all nodes.
func (l *Layout) Survey() *Survey {
	r := &Survey{layout: l, made: map[string]*Tellers{}, names: slices.Sorted(maps.Keys(l.nodes)), peers: map[string][]*world.Peer{}}
	if off := l.Off(); off != "" {
		r.off = &Tellers{Off: off}
	}
	return r
}

func (r *Survey) peersOf(n *world.Node) []*world.Peer {
	list, known := r.peers[n.Name]
	if !known {
		list = r.layout.peersOf(n)
		r.peers[n.Name] = list
	}
	return list
}

// Takes reports whether an advertisement takes an address of a Service.
func (r *Survey) Takes(s *world.Service, a netip.Addr) bool { return len(r.layout.taking(s, a)) > 0 }

// Of returns who tells of an address of a Service; nil if no advertisement takes it, no
// endpoint takes its traffic, or it is the gateway's own, which needs no route.
func (r *Survey) Of(s *world.Service, a netip.Addr) *Tellers {
	if r.off != nil {
		return r.off
	}
	f := world.FamilyOf(a)
	ads := r.layout.taking(s, a)
	if len(ads) == 0 || !serves(s, f, "") {
		return nil
	}
	hop := r.layout.gateway(a)
	usable := slices.DeleteFunc(slices.Clone(ads), func(ad *world.Advertisement) bool {
		return ad.ByGateway && (!hop.IsValid() || hop == a)
	})
	switch {
	case len(usable) == 0 && hop == a:
		return nil
	case len(usable) == 0:
		return &Tellers{GatewayUnknown: true}
	}
	if !s.LocalPolicy {
		return r.work(usable, f, nil)
	}
	return r.work(usable, f, endpointNodes(s, f))
}

// unspecified stands for all addresses of a family.
func unspecified(f world.Family) netip.Addr {
	if f == world.IPv4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// endpointNodes are the names of the nodes with endpoints that take traffic, sorted.
func endpointNodes(s *world.Service, f world.Family) []string {
	nodes := []string{}
	for _, port := range s.Ports {
		for _, e := range plan.Endpoints(s, f, port) {
			nodes = append(nodes, e.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// work finds who tells for some advertisements. With local, those whose next hop is the
// node are told by these nodes only.
func (r *Survey) work(ads []*world.Advertisement, f world.Family, local []string) *Tellers {
	key := f.String()
	for _, ad := range ads {
		key += "/" + strconv.Itoa(r.layout.rank[ad])
	}
	if local != nil {
		key += ":" + strings.Join(local, "/")
	}
	if made, ok := r.made[key]; ok {
		return made
	}
	made := &Tellers{ByNode: slices.ContainsFunc(ads, func(ad *world.Advertisement) bool { return !ad.ByGateway })}
	names := r.names
	if local != nil && !slices.ContainsFunc(ads, func(ad *world.Advertisement) bool { return ad.ByGateway }) {
		names = local
	}
	for _, name := range names {
		n := r.layout.nodes[name]
		if n == nil || n.Draining != "" || n.NetworkUnavailable {
			continue
		}
		should, does := false, false
		for _, p := range r.peersOf(n) {
			_, hop := nextHop(p, n, unspecified(f))
			hears := carries(p, f) && slices.ContainsFunc(ads, func(ad *world.Advertisement) bool {
				return on(ad.Nodes, n.Name) && tells(ad, p.Name) && (ad.ByGateway || hop && (local == nil || on(local, n.Name)))
			})
			if !hears {
				continue
			}
			should = true
			session := r.layout.world.Sessions[n.Name][p.Name]
			if session.Established {
				does = true
				made.Peers = append(made.Peers, p.Name)
			} else if made.Problem == "" && session.Problem != "" {
				made.Problem = "node " + n.Name + ", BGPPeer " + p.Name + ": " + session.Problem
			}
			made.Unknown = made.Unknown || session.Unknown
		}
		switch {
		case does:
			made.Nodes = append(made.Nodes, n.Name)
		case should:
			made.Idle = append(made.Idle, n.Name)
		}
	}
	made.Unknown = made.Unknown && len(made.Nodes) == 0
	slices.Sort(made.Peers)
	made.Peers = slices.Compact(made.Peers)
	r.made[key] = made
	return made
}

// Keepers are the nodes that shall have a session with each peer, sorted.
func (r *Survey) Keepers() map[string][]string {
	keepers := map[string][]string{}
	if r.off != nil {
		return keepers
	}
	for _, name := range r.names {
		n := r.layout.nodes[name]
		if n.Draining != "" {
			continue
		}
		for _, p := range r.peersOf(n) {
			keepers[p.Name] = append(keepers[p.Name], name)
		}
	}
	return keepers
}
