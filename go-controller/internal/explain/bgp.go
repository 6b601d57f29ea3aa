// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Reasons of sessions that are down, as far as the error of a session shows them.
const (
	ReasonPeerDown      = "PeerDown"
	ReasonWrongPassword = "WrongPassword"
	ReasonWrongASN      = "WrongASN"
)

// addBGP adds the routes of the addresses.
func (p *path) addBGP() {
	survey, used := p.survey, false
	for _, a := range p.asked() {
		if ad := survey.Ineffective(p.service, a); ad != nil {
			used = true
			p.addIneffective(a, ad)
		}
		if !survey.Takes(p.service, a) {
			continue
		}
		used = true
		p.addRoute(a, survey)
		if why := survey.NotSent(p.service, a); why != "" {
			p.add(Link{Name: LinkBGP, State: Warning, Reason: v1alpha1.ReasonFRRConflict, Message: why,
				Command: "kubectl describe bgppeers.slb.k8s.ovn.org"})
		}
		if nodes := survey.Overdue(p.service, a); len(nodes) > 0 {
			p.add(Link{Name: LinkBGP, Object: joined(nodes), State: Warning, Reason: v1alpha1.ReasonNotWithdrawn,
				Message: fmt.Sprintf("FRR advertises %s on nodes that should not, and they may drop what routers send to them; "+
					"up to %g minutes are normal after a change", a, frrk8s.WithdrawTime.Minutes()),
				Command: "kubectl describe bgppeers.slb.k8s.ovn.org"})
		}
	}
	if !used {
		p.add(Link{Name: LinkBGP, State: Unused, Message: "no BGPAdvertisement selects " + p.subject()})
	}
}

// addIneffective adds the advertisement that selects an address and has no effect.
func (p *path) addIneffective(a netip.Addr, ad *bgp.Ineffective) {
	link := Link{Name: LinkBGP, Object: ad.Name, State: Broken, Reason: ad.Finding.Reason,
		Message: fmt.Sprintf("%s: BGPAdvertisement %s selects it, but has no effect: %s", a, ad.Name, ad.Finding.Message),
		Command: p.mendObject("BGPAdvertisement", ad.Name,
			&metav1.Condition{Reason: ad.Finding.Reason, Message: ad.Finding.Message})}
	if slices.Contains(p.byDomain, a) {
		link.State = Warning
	}
	p.add(link)
}

// addUnreadBGP adds what the condition of the Service reports about BGP, which decides about the path only if no
// L2Domain announces the Service.
func (p *path) addUnreadBGP() {
	if p.layer2 {
		p.add(Link{Name: LinkBGP, State: Unused, Message: "not read"})
		return
	}
	p.add(p.asAnnounced(LinkBGP))
}

// addRoute adds the route of an address. It decides about the path only if no L2Domain announces the address.
func (p *path) addRoute(a netip.Addr, survey *bgp.Survey) {
	r, bad := survey.Of(p.service, a), Broken
	if slices.Contains(p.byDomain, a) {
		bad = Warning
	}
	link := Link{Name: LinkBGP, State: bad}
	switch {
	case r == nil:
		link.State, link.Message = Unused, fmt.Sprintf("no node advertises %s, because no endpoint takes connections", a)
	case r.Off != "":
		link.Reason, link.Message, link.Command = v1alpha1.ReasonDisabledByMode, r.Off, enable(r.Off)
	case r.GatewayUnknown:
		link.Reason, link.Message = v1alpha1.ReasonNoGateway, fmt.Sprintf("%s: not advertised until its shard has an "+
			"external address (nextHop: Gateway)", a)
		link.Command = "kubectl describe l2domains"
	case r.IsNextHop:
		link.Message = fmt.Sprintf("%s: not advertised, because %s", a, bgp.IsNextHop)
		if bad == Warning { // Routers find it on the segment.
			link.State = Unused
			break
		}
		link.Reason, link.Command = v1alpha1.ReasonNoNodes, "kubectl describe bgpadvertisements.slb.k8s.ovn.org"
	case len(r.Nodes) > 0:
		link.State, link.Object = OK, joined(r.Nodes)
		link.Message = fmt.Sprintf("%s: advertised to %s", a, joined(r.Peers))
		if lacking := slices.Concat(r.NotAdvertising, slices.Sorted(maps.Keys(r.Without))); len(lacking) > 0 {
			down, without := p.down(a, r, lacking), "without a session"
			if r.NotNegotiated != 0 {
				without = "without a session that carries " + r.NotNegotiated.String()
			} else if down.Reason == ReasonNotRead {
				without = "not known of"
			}
			link.State, link.Reason, link.Command = Warning, down.Reason, down.Command
			link.Message += "; " + without + ": " + joined(withoutSession(r.NotAdvertising, r.Without)) + ": " + down.Message
		} else if at := slices.IndexFunc(r.Nodes, func(n string) bool { return p.maybeDead(n) != "" }); at >= 0 {
			link.State, link.Reason, link.Command = Warning, v1alpha1.ReasonNodeSilent, lookAt(r.Nodes[at])
			if !slices.ContainsFunc(r.Nodes, func(n string) bool { return p.maybeDead(n) == "" }) && bad == Broken {
				link.State = Unknown
			}
			link.Message += fmt.Sprintf("; %s; what the router sends to it is lost then", p.maybeDead(r.Nodes[at]))
		} else if stopped, until := p.stoppedSpeakers(r.Nodes); len(stopped) > 0 {
			link.State, link.Reason, link.Command = Warning, v1alpha1.ReasonStopped, p.ownPods(stopped[0])
			link.Message += fmt.Sprintf("; %s: its routes are stale, and the router removes them at %s or earlier, unless the "+
				"daemon starts again", bgp.Stopped(joined(stopped)), until.UTC().Format(time.RFC3339))
		} else if at := slices.IndexFunc(r.Nodes, func(n string) bool { return p.stoppedDaemon(n) != nil }); at >= 0 {
			s := p.stoppedDaemon(r.Nodes[at])
			link.State, link.Reason, link.Command = Warning, v1alpha1.ReasonNodeSilent, s.command()
			link.Message += fmt.Sprintf("; whether node %s still advertises it is not known: %s", r.Nodes[at], s)
		} else if node, fault := p.firstFaulty(r.Nodes); node != "" {
			link.State, link.Reason, link.Command = Warning, v1alpha1.ExcludedFaulty, p.mendFault(node, fault)
			link.Message += fmt.Sprintf("; what the router sends to node %s may be lost: %s", node, fault.Message)
		} else if why, router := p.withoutBFD(r.Nodes, r.Peers); why != "" {
			link.State, link.Reason, link.Command = Warning, ReasonNoBFD, checkBFD(router)
			link.Message += "; " + why
		}
	case len(r.NotAdvertising) == 0:
		link.Reason, link.Message, link.Command = p.noSpeaker(a, survey, r.Invalid)
	default:
		link = p.down(a, r, r.NotAdvertising)
		link.State = bad
		if (r.Unknown || r.FRRReason == v1alpha1.ReasonProgramming) && bad == Broken {
			link.State = Unknown
		}
		by := ""
		if len(r.NotAdvertising) > 1 {
			by, link.Object = " by "+joined(r.NotAdvertising), joined(r.NotAdvertising)
		}
		does := "not advertised"
		if r.Unread {
			does = "not known to be advertised"
		}
		link.Message = fmt.Sprintf("%s: %s%s: %s", a, does, by, link.Message)
	}
	p.add(link)
}

// noSpeaker explains why no node could advertise an address.
func (p *path) noSpeaker(a netip.Addr, survey *bgp.Survey, invalid *bgp.InvalidPeer) (reason, message, command string) {
	family := world.FamilyOf(a)
	carries := func(peer *world.Peer) bool { return bgp.Carries(peer, family) }
	peers := slices.DeleteFunc(slices.Clone(p.world.Peers), func(peer *world.Peer) bool {
		return !survey.Receives(p.service, a, peer.Name)
	})
	if len(peers) > 0 && !slices.ContainsFunc(peers, carries) {
		peer := peers[0]
		return v1alpha1.ReasonNoNodes, fmt.Sprintf("no session carries %s routes, so no node can advertise %s: BGPPeer %s "+
				"has the address %s, and not dualStackAddressFamily", family, a, peer.Name, peer.Addr),
			printable.Command("kubectl patch bgppeers.slb.k8s.ovn.org %s --type=merge "+
				`-p '{"spec":{"dualStackAddressFamily":true}}'   # or add a BGPPeer with an %s address`, peer.Name, family)
	}
	if invalid != nil {
		f := invalid.Finding
		return f.Reason, fmt.Sprintf("no node can advertise %s: %s", a, invalid),
			p.mendObject("BGPPeer", invalid.Name, &metav1.Condition{Reason: f.Reason, Message: f.Message})
	}
	var out []string
	for _, n := range p.world.Nodes {
		if n.Draining != "" {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	if len(out) > 0 {
		draining := objects.Named(p.objects.Nodes, out[0])
		return v1alpha1.ReasonDraining, fmt.Sprintf("no node can advertise %s: node %s is draining: %s", a, joined(out),
			p.objects.Node(draining, p.Now).Draining), p.undrain(out[0])
	}
	return v1alpha1.ReasonNoNodes, fmt.Sprintf("no node can advertise %s: check the nodeSelectors and peers of "+
			"BGPPeers and "+
			"BGPAdvertisements, address families, and (externalTrafficPolicy: Local) the nodes of endpoints", a),
		"kubectl describe bgppeers.slb.k8s.ovn.org,bgpadvertisements.slb.k8s.ovn.org"
}

// down explains why nodes that should advertise an address do not, or not to all peers: the session with the most
// specific error.
func (p *path) down(a netip.Addr, r *bgp.Advertisers, nodes []string) Link {
	family := r.NotNegotiated
	if link := p.downInFRR(a, r, nodes); link.Name != "" {
		return link
	}
	link := Link{Name: LinkBGP, Object: nodes[0], Reason: v1alpha1.ReasonNoSession, Message: bgp.NoReport(nodes[0]),
		Command: p.ownPods(nodes[0]) + withSpeakers}
	if len(p.objects.NodeStatuses) == 0 {
		link.Message = bgp.NoReports
	}
	var most *v1alpha1.BGPSession
	var cause bgp.Problem
	at := ""
	for _, name := range nodes {
		if why := p.maybeDead(name); why != "" {
			// What its session says is what it said last, or what a node says that is cut off.
			link.Object, link.Reason, link.Message = name, v1alpha1.ReasonNodeSilent, why
			link.Command = lookAt(name)
			continue
		}
		status := objects.Named(p.objects.NodeStatuses, name)
		if status == nil {
			continue
		}
		if status.Status.StopTime != nil {
			link.Object, link.Reason, link.Message = name, v1alpha1.ReasonStopped, bgp.Stopped(name)
			link.Command = p.ownPods(name)
			continue
		}
		for i := range status.Status.Sessions {
			s := &status.Status.Sessions[i]
			if !p.lacks(name, s.Peer, a, r) {
				continue
			}
			if reason, why := unknownRoutes(p.world.Sessions[name][s.Peer]); why != "" {
				link.Object, link.Reason, link.Command = name, reason, p.ownPods(name)
				link.Message = fmt.Sprintf("node %s: %s", name, why)
				continue
			}
			if family != 0 && s.State == v1alpha1.BGPEstablished && !p.world.Sessions[name][s.Peer].Carries(family) {
				return Link{Name: LinkBGP, Object: name, Reason: v1alpha1.ReasonNoNodes,
					Message: fmt.Sprintf("node %s, BGPPeer %s: %s", name, s.Peer, bgp.NotNegotiated(family)),
					Command: printable.Command("kubectl slb bgp   # then activate %s unicast for node %s on router %s", family,
						name, s.PeerAddress)}
			}
			if s.State == v1alpha1.BGPEstablished {
				continue
			}
			problem := bgp.ProblemOf(p.world.Sessions[name][s.Peer], p.anyFault(name).Message)
			if most == nil || problem.MoreSpecific(cause) {
				most, at, cause = s, name, problem
			}
		}
	}
	if most != nil {
		return p.noSession(at, most)
	}
	return link
}

// lacks reports whether a session with a peer, if it is down, is why a node does not advertise an address to all peers.
func (p *path) lacks(node, peer string, a netip.Addr, r *bgp.Advertisers) bool {
	if without, toOthers := r.Without[node]; toOthers {
		return slices.Contains(without, peer)
	}
	at := slices.IndexFunc(p.world.Peers, func(w *world.Peer) bool { return w.Name == peer })
	return at < 0 || bgp.Carries(p.world.Peers[at], world.FamilyOf(a)) && p.survey.Receives(p.service, a, peer)
}

// downInFRR is down for nodes on which frr-k8s has the session. It returns the zero value if it has none.
func (p *path) downInFRR(a netip.Addr, r *bgp.Advertisers, nodes []string) Link {
	for _, node := range nodes {
		for _, peer := range p.world.Peers {
			s := p.world.Sessions[node][peer.Name]
			if !peer.FRRK8s || !slices.Contains(peer.Nodes, node) || !s.ByFRR || !p.lacks(node, peer.Name, a, r) {
				continue
			}
			link := Link{Name: LinkBGP, Object: node, Reason: cmp.Or(r.FRRReason, v1alpha1.ReasonNoSession),
				Message: cmp.Or(r.Problem, "node "+node+", BGPPeer "+peer.Name+": no session of FRR"),
				Command: printable.Command("kubectl describe bgppeers.slb.k8s.ovn.org %s", peer.Name)}
			if f := p.world.FRR; f.Available() && r.FRRReason == "" {
				link.Command = printable.Command("kubectl -n %s get bgpsessionstates", cmp.Or(f.Namespace, "frr-k8s-system"))
			}
			if s.Unknown {
				link.Reason = v1alpha1.ReasonNodeSilent
			}
			link.Command = p.mendFRR(node, peer, s, link.Command)
			return link
		}
	}
	return Link{}
}

// mendFRR returns the command that shows why FRR on a node has no known session, or why it does not send what it has;
// otherwise another one.
func (p *path) mendFRR(node string, peer *world.Peer, s world.PeerSession, otherwise string) string {
	f := p.world.FRR
	if c := p.stoppedFRR(node); c != nil && s.Unknown {
		return c.command()
	}
	if f.Available() && f.Nodes[node] != nil && f.Nodes[node].Restrictions[peer.NeighborID()] != (frrapi.Restriction{}) {
		return printable.Command("kubectl -n %s get frrconfigurations -o yaml   # find rawConfig and addressFamilies",
			cmp.Or(f.Namespace, "frr-k8s-system"))
	}
	return otherwise
}

// anyFault returns what prevents a node from serving: one of its networks, or else all of them.
func (p *path) anyFault(node string) world.Fault {
	if n := objects.Named(p.objects.Nodes, node); n != nil {
		if fault := p.objects.Node(n, p.Now).AnyFault(); fault.Message != "" {
			return fault
		}
	}
	return p.fault(node, world.EveryNetwork)
}

// stoppedSpeakers returns those of some nodes whose BGP daemons were stopped, and until when routers with graceful
// restart keep the routes of the first of them at most.
func (p *path) stoppedSpeakers(nodes []string) (stopped []string, until time.Time) {
	for _, name := range nodes {
		if s := objects.Named(p.objects.NodeStatuses, name); s != nil && s.Status.StopTime != nil {
			stopped = append(stopped, name)
			until = world.Earliest(until, s.Status.StopTime.Add(world.GracefulRestartTime))
		}
	}
	return stopped, until
}

// firstFaulty returns the first of these nodes that a fault prevents from serving all its networks, with the fault.
func (p *path) firstFaulty(nodes []string) (node string, fault world.Fault) {
	for _, n := range nodes {
		if f := p.fault(n, world.EveryNetwork); f.Message != "" {
			return n, f
		}
	}
	return "", world.Fault{}
}
