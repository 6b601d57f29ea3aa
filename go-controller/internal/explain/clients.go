// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Reasons of clients.
const (
	ReasonClientNotAdmitted = "ClientNotAdmitted"
	ReasonRangesNotApplied  = "RangesNotApplied"
	ReasonNoNextHop         = "NoNextHop"
)

// addClients adds which clients are admitted. Source ranges apply at layer 2, not to what routers send to nodes, except
// with OpenShift SDN: kube-proxy filters by them whatever sends to the node.
func (p *path) addClients() {
	from := p.From.Unmap()
	if len(p.asked()) == 0 {
		p.broken(LinkClients, from.String(), v1alpha1.ReasonFamilyUnavailable,
			fmt.Sprintf("the client has an %s address, and the Service has none", world.FamilyOf(from)),
			p.kubectl(`patch service %s -p '{"spec":{"ipFamilyPolicy":"PreferDualStack"}}'`, p.object.Name))
		return
	}
	var routed []netip.Addr
	if !p.world.Cluster.OpenShiftSDN {
		routed = p.routed()
	}
	filtered := slices.DeleteFunc(slices.Clone(p.asked()), func(a netip.Addr) bool {
		return !slices.Contains(p.byDomain, a) && slices.Contains(routed, a)
	})
	if p.restricted(routed) {
		p.add(Link{Name: LinkClients, Object: p.clientOf(routed, filtered), State: Warning, Reason: ReasonRangesNotApplied,
			Message: fmt.Sprintf("spec.loadBalancerSourceRanges (%s) do not apply to what routers send to nodes: let the "+
				"routers filter", joined(convert.ListedRanges(p.object)))})
		if len(filtered) == 0 {
			return
		}
	}
	link := p.admission(filtered)
	link.Name, link.Object = LinkClients, p.clientOf(filtered, routed)
	switch domain, gateway := p.nextHop(from); {
	case link.State == Broken:
	case domain != "" && gateway == "":
		link.State, link.Reason = Broken, ReasonNoNextHop
		link.Message = fmt.Sprintf("the client is not on the segment of L2Domain %s, and its subnet has no gateway, so "+
			"replies find no way to it", domain)
		link.Command = printable.Command("kubectl edit l2domain %s   # spec.subnets[].gateway", domain)
	case from.IsValid() && p.unread("l2domains", "ipaddresspools"):
		link = notRead(LinkClients, link.Object, "the client is admitted; without L2Domains and IPAddressPools it is not "+
			"known whether replies find a way to it")
	case domain != "":
		p.remark("replies to the client go to %s (spec.subnets[].gateway of L2Domain %s): nothing has checked that it is "+
			"a router; ping -c1 %s from another host on the segment shows whether it exists", gateway, domain, gateway)
	}
	if link.State == Broken && len(routed) > 0 { // The client may get there by a router.
		link.State, link.Message = Warning, "at layer 2, "+link.Message
	}
	p.add(link)
}

// routed returns the addresses that the question is about which routers send to nodes, or may send: an address that is
// announced at layer 2 as well is among them if nodes advertise it.
func (p *path) routed() []netip.Addr {
	return slices.DeleteFunc(slices.Clone(p.asked()), func(a netip.Addr) bool {
		if !slices.Contains(p.byDomain, a) {
			return p.layer2 && !p.survey.Takes(p.service, a)
		}
		r := p.survey.Of(p.service, a)
		return r == nil || !r.ByNode || len(r.Nodes) == 0 || !p.survey.Takes(p.service, a)
	})
}

// clientOf names what a link about some addresses is about, if another link is about others.
func (p *path) clientOf(addrs, others []netip.Addr) string {
	switch {
	case len(addrs) < len(p.asked()) && p.restricted(others):
		var names []string
		for _, a := range addrs {
			names = append(names, a.String())
		}
		return joined(names)
	case p.From.IsValid():
		return p.From.Unmap().String()
	}
	return ""
}

// admission returns which clients source ranges admit to addresses to which they apply.
func (p *path) admission(addrs []netip.Addr) Link {
	from, texts := p.From.Unmap(), convert.ListedRanges(p.object)
	link := Link{State: OK, Message: "source ranges exclude no client"}
	switch {
	case p.restricted(addrs) && p.service.ListedRanges > world.MaxListedRanges:
		link.State, link.Reason, link.Command = Broken, v1alpha1.ReasonTooManySourceRanges,
			p.mendRows(v1alpha1.ReasonTooManySourceRanges)
		link.Message = fmt.Sprintf("no client is admitted, because spec.loadBalancerSourceRanges lists %d ranges, more than "+
			"the limit of %d", p.service.ListedRanges, world.MaxListedRanges)
	case from.IsValid() && !p.admits(from):
		link.State, link.Reason = Broken, ReasonClientNotAdmitted
		link.Message = fmt.Sprintf("the client is in none of spec.loadBalancerSourceRanges: %s", joined(texts))
		link.Command = p.kubectl("patch service %s --type=json -p %s", p.object.Name,
			fmt.Sprintf(`[{"op":"add","path":"/spec/loadBalancerSourceRanges/-","value":"%s/%d"}]`, from, from.BitLen()))
	case from.IsValid():
		link.Message = "source ranges admit the client"
	case p.restricted(addrs):
		link.Message = "only clients of " + joined(texts) + " are admitted; --from ADDRESS checks one"
		if f := p.familyWithoutRange(addrs); f != 0 {
			link.State, link.Reason = Warning, ReasonClientNotAdmitted
			link.Message += fmt.Sprintf("; no client is admitted over %s, of which spec.loadBalancerSourceRanges has no range",
				f)
		}
	}
	return link
}

// admits reports whether the source ranges of the Service admit a client.
func (p *path) admits(from netip.Addr) bool {
	return !p.restricted(p.asked()) || slices.ContainsFunc(p.service.SourceRanges[world.FamilyOf(from)],
		func(r netip.Prefix) bool { return r.Contains(from) })
}

// restricted reports whether the Service lists source ranges for the families of these addresses.
func (p *path) restricted(addrs []netip.Addr) bool {
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool {
		_, restricted := p.service.SourceRanges[world.FamilyOf(a)]
		return restricted
	})
}

// familyWithoutRange returns a family of these addresses of which no client is admitted; 0 if there is none.
func (p *path) familyWithoutRange(addrs []netip.Addr) world.Family {
	for _, a := range addrs {
		if admitted, restricted := p.service.SourceRanges[world.FamilyOf(a)]; restricted && len(admitted) == 0 {
			return world.FamilyOf(a)
		}
	}
	return 0
}

// nextHop returns the L2Domain that replies to a client beyond its segment, and the next hop of the replies, which is
// empty if there is none. The domain is empty if the client is not known, or on the segments of all addresses.
func (p *path) nextHop(from netip.Addr) (domain, gateway string) {
	for _, a := range p.addrs() {
		id, ok := p.layout.ConfiguredShardFor(p.service.Labels, p.allocation.PoolOf(a), a)
		d := objects.Named(p.objects.Domains, id.Domain)
		if !ok || d == nil || !from.IsValid() || a.Is4() != from.Is4() || p.world.Cluster.OpenShiftSDN ||
			slices.ContainsFunc(d.Spec.Subnets, func(s v1alpha1.Subnet) bool { return contains(s.CIDR, from) }) {
			continue
		}
		for _, s := range d.Spec.Subnets {
			if contains(s.CIDR, a) {
				if domain, gateway = d.Name, string(s.Gateway); gateway == "" {
					return domain, ""
				}
			}
		}
	}
	return domain, gateway
}
