// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// announcement is how an address of a Service is announced.
type announcement struct {
	// shard is set if an L2Domain announces the address, on gateway.
	shard   *world.ShardID
	gateway string
	// oneOf are the nodes of which one is the gateway, if it is not known which; gateway is empty then.
	oneOf      []string
	attachment attachment
	// nodes advertise the address by BGP, or would if their sessions were established. They have a BGP daemon.
	nodes []string
	// byNode means that routers send to these nodes, or will as soon as an endpoint takes connections, and not to the
	// gateway of the shard.
	byNode bool
	// why is the reason why no L2Domain announces the address, and whyNoRoute the one why BGP does not advertise it.
	why, whyNoRoute string
	// unselected means that neither an L2Domain nor a BGPAdvertisement that has an effect selects the address.
	unselected bool
	// routed means that only BGP could announce the address, and awaitsEndpoint that BGP advertises it as soon as an
	// endpoint takes connections.
	routed, awaitsEndpoint bool
}

func (a *announcement) announced() bool { return a.shard != nil || len(a.nodes) > 0 }

func (a *announcement) String() string {
	var parts []string
	switch {
	case a.shard != nil && len(a.oneOf) > 0:
		parts = append(parts, fmt.Sprintf("shard %s on one of %s", a.shard.Name(), names(a.oneOf, false)))
	case a.shard != nil:
		parts = append(parts, fmt.Sprintf("shard %s on gateway %s", a.shard.Name(), a.gateway))
	}
	if len(a.nodes) > 0 {
		parts = append(parts, "BGP from "+strings.Join(a.nodes, ", "))
	}
	switch {
	case len(parts) == 0 && a.routed:
		return "not announced: " + a.whyNoRoute
	case len(parts) == 0:
		return "not announced: " + a.whyNeither()
	}
	return strings.Join(parts, " and ")
}

// ofNew describes the announcement for a Service that the edit creates: its endpoints come later.
func (a *announcement) ofNew() string {
	const later = "BGP as soon as an endpoint takes connections"
	switch {
	case !a.awaitsEndpoint:
		return a.String()
	case a.shard != nil:
		return a.String() + " and " + later
	}
	return later
}

// lostSince returns why an address is no longer announced in the ways in which it was.
func (a *announcement) lostSince(before *announcement) string {
	switch {
	case len(before.nodes) == 0, a.why == a.whyNoRoute:
		return a.whyNeither()
	case before.shard == nil:
		return a.whyNoRoute
	}
	return a.why + "; " + a.whyNoRoute
}

// whyNeither returns why no L2Domain announces the address, and that BGP does not either if nothing selects it there.
// An administrator may have meant it for both, as the condition Announced says.
func (a *announcement) whyNeither() string {
	if a.unselected {
		return a.why + ", and " + a.whyNoRoute
	}
	return a.why
}

// announcements returns how each address of a Service is announced; nil if there is no Service.
func (d *decision) announcements(s *world.Service) map[netip.Addr]*announcement {
	if s == nil {
		return nil
	}
	out := map[netip.Addr]*announcement{}
	for _, p := range d.Placements.Services[s.Key] {
		a := &announcement{why: p.Message}
		if p.Reason == "" || p.Reason == place.ReasonProbing {
			a.shard, a.gateway = &p.Shard, d.active(p.Shard)
			if u, ok := d.undecided[p.Shard.Domain]; ok {
				a.gateway, a.oneOf = "", u.nodes
			}
			a.attachment = d.attachment(p.Shard.Domain, p.Addr)
		}
		if r := d.survey.Of(s, p.Addr); r != nil && d.survey.Takes(s, p.Addr) {
			a.nodes = slices.DeleteFunc(slices.Concat(r.Nodes, r.NotAdvertising), func(n string) bool {
				return d.whyNoSession(n, r.Peers...) != ""
			})
			slices.Sort(a.nodes)
			a.byNode = r.ByNode && len(a.nodes) > 0
		}
		if len(a.nodes) == 0 {
			a.whyNoRoute = d.whyNoRoute(s, p.Addr)
			a.awaitsEndpoint = a.whyNoRoute == withoutEndpoint
			a.unselected = !d.survey.Takes(s, p.Addr) && d.BGP.Off() == "" && !s.OtherProxy() &&
				(p.Reason == place.ReasonNoDomain || p.Reason == place.ReasonServiceNotSelected)
		}
		a.routed = p.OutsideLayer2() && d.survey.Takes(s, p.Addr)
		a.byNode = a.byNode || a.routed && a.awaitsEndpoint
		out[p.Addr] = a
	}
	return out
}

const (
	withoutEndpoint      = "no endpoint takes connections, so no node advertises it by BGP"
	withoutAdvertisement = "no BGPAdvertisement selects it"
)

// whyNoRoute returns why no node advertises an address of a Service by BGP.
func (d *decision) whyNoRoute(s *world.Service, a netip.Addr) string {
	switch r := d.survey.Of(s, a); {
	case s.OtherProxy():
		return place.OtherServiceProxy(s)
	case d.BGP.Off() != "":
		return d.BGP.Off()
	case !d.survey.Takes(s, a):
		if ad := d.survey.Ineffective(s, a); ad != nil {
			return ad.Which()
		}
		return withoutAdvertisement
	case len(d.World.Peers) == 0:
		return "there is no BGPPeer"
	case r == nil:
		return cmp.Or(d.whyNoSessions(), withoutEndpoint)
	case r.IsNextHop:
		return bgp.IsNextHop
	case r.GatewayUnknown:
		return "its shard has no external address (nextHop: Gateway)"
	case len(r.NotAdvertising) > 0:
		return d.noDaemon[r.NotAdvertising[0]]
	case r.Invalid != nil:
		return "no node can advertise it by BGP: " + r.Invalid.String()
	}
	return "no node can advertise it by BGP: check the nodeSelectors and peers of BGPPeers and BGPAdvertisements, " +
		"address families, drained nodes, and the nodes of endpoints (externalTrafficPolicy: Local)"
}

// whyNoSessions returns why no node can have a session; empty if one can.
func (d *decision) whyNoSessions() string {
	why := "no BGPPeer can have a session on any node: kubectl slb status shows why"
	for peer, nodes := range d.survey.SessionNodes() {
		for _, n := range nodes {
			if why = d.whyNoSession(n, peer); why == "" {
				return ""
			}
		}
	}
	return why
}

// compareService returns what changes for a Service with these announcements. Without messages nothing changes. before
// is nil if the edit creates the Service.
func compareService(was, is *decision, s *world.Service, before, after map[netip.Addr]*announcement) ServiceChange {
	c, created := ServiceChange{Service: s.Key.String(), Effect: Alters}, before == nil
	add := c.add
	var gone []netip.Addr // of all pools, and of the announcement
	kept := "keeps its address"
	for _, a := range sortedAddrs(before) {
		b, n := before[a], after[a]
		is.blameDrain(b, n)
		switch {
		case n == nil:
			add(Loses, "", "loses address %s", a)
			kept = "keeps what it has besides"
		case b.announced() && !n.announced():
			why := n.lostSince(b)
			if was.Allocation.PoolOf(a) != "" && is.Allocation.PoolOf(a) == "" {
				why = "no pool has it any more"
				gone = append(gone, a)
			}
			add(Loses, "", "keeps address %s, but it is not announced: %s", a, why)
		case !b.announced() && n.announced():
			add(Gains, "have an address that becomes announced", "address %s becomes announced: %s", a, n)
		case b.announced() && b.String() != n.String():
			add(Alters, b.groupOfChange(n), "address %s: %s, was %s", a, n, b)
		}
	}
	for _, a := range sortedAddrs(after) {
		switch {
		case before[a] != nil:
		case created:
			add(Gains, "get an address", "gets address %s: %s", a, after[a].ofNew())
		default:
			add(Gains, "get an address", "gets address %s: %s", a, after[a])
		}
	}
	c.Pending = created && len(after) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(after)),
		func(a *announcement) bool { return a.announced() || a.awaitsEndpoint })
	c.addRemark(was, is, s, before, kept, len(gone) == len(after))
	return c
}

// add adds a message with its effect, the gravest of which is that of the change.
func (c *ServiceChange) add(e Effect, group, format string, args ...any) {
	c.Messages = append(c.Messages, Message{fmt.Sprintf(format, args...), group})
	if e == Loses || e == Gains && c.Effect == Alters {
		c.Effect = e
	}
}

// addRemark adds what the allocation says about the Service, if that is new. kept is what the edit does with the
// addresses that the Service had before. allGone means that messages name each of its addresses as retained.
func (c *ServiceChange) addRemark(was, is *decision, s *world.Service, before map[netip.Addr]*announcement,
	kept string, allGone bool) {
	created, add := before == nil, c.add
	remark, last := is.Allocation.Services[s.Key], was.Allocation.Services[s.Key]
	for _, a := range newReleases(&last, &remark) {
		add(Loses, "", "loses address %s when the provider of pool %q answers", a, s.RequestedPool)
	}
	if remark.Message != last.Message || remark.Reason != last.Reason {
		switch {
		case len(remark.Addrs) == 0 && len(before) > 0:
			add(Loses, "", "has no address: %s: %s", remark.Reason, remark.Message)
		case len(remark.Addrs) == 0:
			c.Pending = created
			add(Alters, "have no address: "+string(remark.Reason), "has no address: %s: %s", remark.Reason, remark.Message)
		case len(remark.Releases) > 0 && len(remark.Releases) == len(remark.Addrs): // Each of them is named above.
		case remark.Reason == ipam.ReasonAddressRetained && allGone: // Each of them is named above.
		case remark.Reason != "" && created:
			add(Alters, "get part of what they request: "+string(remark.Reason), "gets part of what it requests: %s: %s",
				remark.Reason, remark.Message)
		case remark.Reason != "":
			add(Alters, "keep their address: "+string(remark.Reason), "%s: %s: %s", kept, remark.Reason,
				remark.Message)
		}
	}
	if c.Effect == Loses {
		for i := range c.Messages {
			c.Messages[i].group = ""
		}
	}
}

// newReleases returns the addresses that wait for the answer of a provider since the edit.
func newReleases(was, is *ipam.Outcome) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(is.Releases), func(a netip.Addr) bool {
		return slices.Contains(was.Releases, a)
	})
}

// blameDrain sets why an address has no route, if all nodes that advertised it before drain.
func (d *decision) blameDrain(before, after *announcement) {
	if after != nil && len(after.nodes) == 0 && d.drain(before.nodes) {
		after.whyNoRoute = "no node is left that can advertise it by BGP, because " + names(before.nodes, false) +
			" would drain"
	}
}

// drain reports whether there are nodes in a list and all of them drain.
func (d *decision) drain(nodes []string) bool {
	return len(nodes) > 0 && !slices.ContainsFunc(d.World.Nodes, func(n *world.Node) bool {
		return slices.Contains(nodes, n.Name) && n.Draining == ""
	})
}

// leaves returns what a Service loses that the controller does not serve after the edit.
func leaves(s *world.Service, announced map[netip.Addr]*announcement, why string) ServiceChange {
	c := ServiceChange{Service: s.Key.String(), Effect: Loses}
	for _, a := range sortedAddrs(announced) {
		c.Messages = append(c.Messages, Message{Text: fmt.Sprintf("loses address %s: %s", a, why)})
	}
	return c
}

// Groups of Services whose routes change.
const (
	withoutRoutes  = "are no longer advertised by BGP"
	withOtherNodes = "are advertised by other nodes"
)

// groupOfChange returns what changes for Services whose addresses stay announced. It is empty if their gateway changes.
func (a *announcement) groupOfChange(now *announcement) string {
	switch {
	case a.gateway != now.gateway || (a.shard == nil) != (now.shard == nil):
		return ""
	case a.shard != nil && *a.shard != *now.shard:
		return "are in another shard on the same gateway"
	case len(a.nodes) == 0:
		return "become advertised by BGP"
	case len(now.nodes) == 0:
		return withoutRoutes
	}
	return withOtherNodes
}

func sortedAddrs(m map[netip.Addr]*announcement) []netip.Addr {
	list := make([]netip.Addr, 0, len(m))
	for a := range m {
		list = append(list, a)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}
