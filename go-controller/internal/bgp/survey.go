// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Advertisers contains the nodes that advertise an address. It is shared by addresses and must not be modified.
type Advertisers struct {
	// Nodes are the nodes that advertise the address now. Idle are those that should, but have no session that carries
	// it. Both are sorted.
	Nodes, NotAdvertising []string
	// Without are the peers to which nodes among Nodes should advertise the address and do not, sorted, by node.
	Without map[string][]string
	// Peers receive the route, sorted.
	Peers []string
	// ByNode means that the next hop is a node for at least one of the advertisements.
	ByNode bool
	// Problem is the most specific one of the sessions that are down or do not carry the address. Cause is the same
	// without the node.
	Problem string
	Cause   Problem
	// NotNegotiated is the family of the address if an Established session does not have it, and 0 otherwise.
	NotNegotiated world.Family
	// Unknown means that no node is known to advertise the address, and that the state of at least one session is
	// unknown.
	Unknown bool
	// Unread means that it is Unknown because a node with a session can't read what it is to advertise.
	Unread bool
	// GatewayUnknown means that the shard that would be the next hop has no address yet.
	GatewayUnknown bool
	// IsNextHop means that the address is that of its shard's router, which is the next hop of all advertisements that
	// select it. It needs no route: routers of the segment resolve it there.
	IsNextHop bool
	// FRRReason is a reason of v1alpha1 if frr-k8s has a session that does not advertise the address, and Problem says
	// why: an address that FRR has not loaded yet has ReasonProgramming.
	FRRReason string
	// Invalid is a BGPPeer to which the address would be advertised if the peer were valid, and its first fatal finding.
	// It is set only if no node can advertise the address.
	Invalid *InvalidPeer
	// Off is the reason why nothing is advertised, empty if advertisement is allowed.
	Off string
}

// InvalidPeer is a BGPPeer that has no session because of a fatal finding.
type InvalidPeer struct {
	Name    string
	Finding world.Finding
}

func (p *InvalidPeer) String() string { return "BGPPeer " + p.Name + ": " + p.Finding.Message }

// IsNextHop is why no node advertises an address with Advertisers.IsNextHop.
const IsNextHop = "it is itself the next hop of its shard (nextHop: Gateway)"

// Survey computes the Advertisers of all addresses. Many addresses have the same Advertisers, which are computed once.
// A Survey must not be used by several goroutines concurrently.
type Survey struct {
	layout *Layout
	// made are the results. Those of the last survey that still hold are in last.
	made, last map[string]*Advertisers
	// names are the sorted names of all nodes. peers caches the peers of each node that was looked up.
	names []string
	peers map[string][]*world.Peer
	// off is the result for all addresses while BGP is disabled, nil if it is not.
	off *Advertisers
	// frr is what is known of the peers whose sessions frr-k8s has.
	frr *frrSurvey
}

// Survey returns an empty Survey of a Layout that knows all nodes.
func (l *Layout) Survey() *Survey {
	return l.SurveyFRR(nil)
}

// SurveyFRR is Survey with what is known of the objects for frr-k8s, which may be nil.
func (l *Layout) SurveyFRR(objects FRRObjects) *Survey {
	r := &Survey{layout: l, frr: newFRRSurvey(l, objects), made: map[string]*Advertisers{},
		names: slices.Sorted(maps.Keys(l.nodes)), peers: map[string][]*world.Peer{}}
	if off := l.Off(); off != "" {
		r.off = &Advertisers{Off: off}
	}
	r.last = l.beginSurvey(r.made)
	return r
}

func (sv *Survey) peersOf(n *world.Node) []*world.Peer {
	list, known := sv.peers[n.Name]
	if !known {
		list = sv.layout.peersOf(n)
		sv.peers[n.Name] = list
	}
	return list
}

// Takes reports whether an advertisement selects an address of a Service.
func (sv *Survey) Takes(s *world.Service, a netip.Addr) bool {
	return len(sv.layout.selecting(s, a)) > 0
}

// Ineffective returns an advertisement that selects an address of a Service and has no effect; nil if there is none, or
// if another one has an effect.
func (sv *Survey) Ineffective(s *world.Service, a netip.Addr) *Ineffective {
	return sv.layout.IneffectiveFor(s, a)
}

// Receives reports whether an advertisement that selects an address of a Service applies to a peer.
func (sv *Survey) Receives(s *world.Service, a netip.Addr, peer string) bool {
	return slices.ContainsFunc(sv.layout.selecting(s, a), func(ad *world.Advertisement) bool {
		return advertises(ad, peer)
	})
}

// Of returns the Advertisers of an address of a Service. It returns nil if no advertisement selects the address, if no
// endpoint receives its traffic.
func (sv *Survey) Of(s *world.Service, a netip.Addr) *Advertisers {
	if sv.off != nil {
		return sv.off
	}
	f := world.FamilyOf(a)
	ads := sv.layout.selecting(s, a)
	if len(ads) == 0 {
		return nil
	}
	hop := sv.layout.gateway(a)
	usable := slices.DeleteFunc(slices.Clone(ads), func(ad *world.Advertisement) bool {
		return ad.ByGateway && (!hop.IsValid() || hop == a)
	})
	switch {
	case len(usable) == 0 && hop == a:
		return &Advertisers{IsNextHop: true}
	case !sv.layout.serves(s, f, ""):
		return nil
	case len(usable) == 0:
		return &Advertisers{GatewayUnknown: true}
	}
	if !s.LocalPolicy {
		return sv.computeAdvertisers(usable, a, nil)
	}
	return sv.computeAdvertisers(usable, a, sv.layout.endpointNodes(s, f))
}

// NextHops returns the next hops with which nodes advertise an address of a Service, sorted. The zero Addr stands for
// link-local ones.
func (sv *Survey) NextHops(s *world.Service, a netip.Addr) []netip.Addr {
	by, gateway := sv.Of(s, a), sv.layout.gateway(a)
	if by == nil {
		return nil
	}
	var hops []netip.Addr
	for _, name := range by.Nodes {
		n := sv.layout.nodes[name]
		for _, p := range sv.peersOf(n) {
			own, has := nextHop(p, n, a)
			for _, ad := range sv.layout.selecting(s, a) {
				switch {
				case !containsName(ad.Nodes, name) || !advertises(ad, p.Name) || !Carries(p, world.FamilyOf(a)):
				case ad.ByGateway && !p.FRRK8s && gateway.IsValid() && gateway != a:
					hops = append(hops, gateway)
				case !ad.ByGateway && has:
					hops = append(hops, own)
				}
			}
		}
	}
	slices.SortFunc(hops, netip.Addr.Compare)
	return slices.Compact(hops)
}

// Overdue returns the nodes of which FRR advertises an address of a Service although they should not, sorted.
func (sv *Survey) Overdue(s *world.Service, a netip.Addr) []string {
	nodes := sv.frr.overdue(sv.layout.selecting(s, a), a)
	if len(nodes) == 0 {
		return nil
	}
	by := sv.Of(s, a) // One whose prefix is beyond the limit counts as long as it advertises the address.
	return slices.DeleteFunc(nodes, func(n string) bool { return by != nil && containsName(by.Nodes, n) })
}

// NotSent returns why a local preference of an address of a Service is not sent by FRR, empty if all are.
func (sv *Survey) NotSent(s *world.Service, a netip.Addr) string {
	return sv.frr.notSent(sv.layout.selecting(s, a), a)
}

// unspecified returns the unspecified address of a family. It stands for all addresses of that family.
func unspecified(f world.Family) netip.Addr {
	if f == world.IPv4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// computeAdvertisers computes the Advertisers of an address for a set of advertisements. They are those of all
// addresses of its family with these advertisements, except with peers whose sessions frr-k8s has: it reports each
// route. If local is not nil, only these nodes announce the advertisements whose next hop is the node.
func (sv *Survey) computeAdvertisers(ads []*world.Advertisement, a netip.Addr, local *nodeList) *Advertisers {
	key := world.FamilyOf(a).String() + sv.frr.key(ads, a, local != nil)
	for _, ad := range ads {
		key += "/" + strconv.Itoa(sv.layout.rank[ad])
	}
	if local != nil {
		key += ":" + strconv.Itoa(local.number)
	}
	made, ok := sv.made[key]
	if !ok {
		if made, ok = sv.last[key]; !ok {
			made = sv.compute(ads, a, local)
		}
		sv.made[key] = made
	}
	return made
}

// compute is computeAdvertisers without what was computed before.
func (sv *Survey) compute(ads []*world.Advertisement, a netip.Addr, local *nodeList) *Advertisers {
	made := &Advertisers{Without: map[string][]string{},
		ByNode: slices.ContainsFunc(ads, func(ad *world.Advertisement) bool { return !ad.ByGateway })}
	names := sv.names
	if local != nil && !slices.ContainsFunc(ads, func(ad *world.Advertisement) bool { return ad.ByGateway }) {
		names = local.names
	}
	for _, name := range names {
		n := sv.layout.nodes[name]
		if n == nil || n.Draining != "" || n.NetworkUnavailable {
			continue
		}
		does, without := sv.ofNode(made, n, ads, a, local)
		if does {
			made.Nodes = append(made.Nodes, n.Name)
		}
		if len(without) == 0 {
			continue
		}
		if !does {
			made.NotAdvertising = append(made.NotAdvertising, n.Name)
			continue
		}
		made.Without[n.Name] = without
	}
	if len(made.Nodes) == 0 && len(made.NotAdvertising) == 0 {
		made.Invalid = sv.layout.invalidPeer(ads)
	}
	made.Unknown = made.Unknown && len(made.Nodes) == 0
	made.Unread = made.Unread && made.Unknown
	slices.Sort(made.Peers)
	made.Peers = slices.Compact(made.Peers)
	return made
}

// invalidPeer returns the oldest invalid peer to which one of some advertisements applies, nil if there is none.
func (l *Layout) invalidPeer(ads []*world.Advertisement) *InvalidPeer {
	for _, p := range l.invalid {
		if slices.ContainsFunc(ads, func(ad *world.Advertisement) bool { return advertises(ad, p.Name) }) {
			at := slices.IndexFunc(p.Findings, func(f world.Finding) bool { return f.Fatal })
			return &InvalidPeer{p.Name, p.Findings[at]}
		}
	}
	return nil
}

// ofNode adds the sessions of a node to the Advertisers of an address. It reports whether one of them carries the
// address, and returns the peers of those that should and do not.
func (sv *Survey) ofNode(made *Advertisers, n *world.Node, ads []*world.Advertisement, a netip.Addr,
	local *nodeList) (does bool, without []string) {
	f := world.FamilyOf(a)
	for _, p := range sv.peersOf(n) {
		_, hop := nextHop(p, n, unspecified(f))
		applies := func(ad *world.Advertisement) bool {
			return containsName(ad.Nodes, n.Name) && advertises(ad, p.Name) && (ad.ByGateway && !p.FRRK8s ||
				!ad.ByGateway && hop && (local == nil || containsName(local.names, n.Name)))
		}
		if !Carries(p, f) || !slices.ContainsFunc(ads, applies) {
			continue
		}
		session := sv.layout.world.Sessions[n.Name][p.Name]
		if p.FRRK8s {
			sv.frr.requireRunningRoute(made, &session, n.Name, p, a, local != nil, ads, applies)
		}
		if made.add(n, p, f, session) {
			does = true
		} else {
			without = append(without, p.Name)
		}
	}
	slices.Sort(without)
	return does, without
}

// add records the session of a node with a peer, and reports whether it carries the family of the address.
func (a *Advertisers) add(n *world.Node, p *world.Peer, f world.Family, session world.PeerSession) bool {
	carries := session.Carries(f)
	if carries && session.Unread != "" {
		carries, session.Problem = false, session.Unread
		a.Unread = true
	} else if carries {
		a.Peers = append(a.Peers, p.Name)
	} else if session.Established {
		a.NotNegotiated, session.Problem = f, NotNegotiated(f)
	}
	if cause := ProblemOf(session, n.AnyFault().Message); cause.MoreSpecific(a.Cause) {
		a.Cause = cause
		a.Problem = "node " + n.Name + ", BGPPeer " + p.Name + ": " + cause.Text
	}
	a.Unknown = a.Unknown || session.Unknown || a.Unread
	return carries
}

// SessionNodes returns, by peer name, the nodes that must have a session with the peer, sorted.
func (sv *Survey) SessionNodes() map[string][]string {
	keepers := map[string][]string{}
	if sv.off != nil {
		return keepers
	}
	for _, name := range sv.names {
		n := sv.layout.nodes[name]
		if n.Draining != "" {
			continue
		}
		for _, p := range sv.peersOf(n) {
			keepers[p.Name] = append(keepers[p.Name], name)
		}
	}
	return keepers
}
