// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// addDomain adds the L2Domain of an address and, if it announces the address, shard and gateway.
func (p *path) addDomain(a netip.Addr) {
	pool := p.allocation.PoolOf(a)
	shard, configured := p.layout.ConfiguredShardFor(p.service.Labels, pool, a)
	reason, message, command := "", "", ""
	d := objects.Named(p.objects.Domains, shard.Domain)
	excluding, text := p.layout.NotSelecting(p.service.Labels, pool, a)
	switch {
	case excluding != "":
		shard.Domain, reason, message = excluding, v1alpha1.ReasonServiceNotSelected, mentioning(a, text)
		command = printable.Command("kubectl edit l2domain %s   # spec.serviceSelectors", excluding)
	case !configured:
		why, text := p.layout.Idle(pool)
		if c := p.verdictOn(a, string(why)); c != nil && why != place.ReasonNoDomain {
			text = c.Message // of the controller, which knows its own flags
		}
		reason, message, command = string(why), mentioning(a, text), p.mendDomain(string(why), text, pool, a)
		if pool == "" { // addRetained says what to do.
			reason, command = v1alpha1.ReasonNoDomain, ""
			message = fmt.Sprintf("%s: in no subnet of an L2Domain", a)
		}
	case !slices.ContainsFunc(d.Spec.Subnets, func(s v1alpha1.Subnet) bool { return contains(s.CIDR, a) }):
		reason = v1alpha1.ReasonAddressOutsideSubnets
		message = fmt.Sprintf("address %s is in none of the subnets of the L2Domain, so no host on the segment asks for "+
			"it", a)
		command = printable.Command("kubectl edit l2domain %s   # spec.subnets", d.Name)
		if pool != "" { // An edit of the pool changes no address that a Service has.
			command += printable.Command(", if the segment has a subnet with %s; if not, correct spec.addresses of "+
				"IPAddressPool %s and give the Service another address", a, pool)
		}
	default:
		if c := p.verdictOn(a, v1alpha1.ReasonUnsupported, v1alpha1.ReasonDomainNotReady); c != nil {
			p.add(Link{Name: LinkDomain, Object: d.Name, State: stateOf(c), Reason: c.Reason, Message: c.Message,
				Command: describe(d)})
			return
		}
		p.layer2, p.byDomain = true, append(p.byDomain, a)
		p.ok(LinkDomain, d.Name, fmt.Sprintf("announces %s on physical network %s", a, segment(d)))
		p.noteForeignSubnets(d.Name, world.FamilyOf(a))
		p.addShard(a, d, shard)
		return
	}
	if p.unread("bgpadvertisements", "bgppeers") {
		p.add(Link{Name: LinkDomain, State: Unused, Message: message})
		return
	}
	if p.survey.Takes(p.service, a) {
		p.add(Link{Name: LinkDomain, Object: shard.Domain, State: Unused,
			Message: message + "; a BGPAdvertisement selects it"})
		return
	}
	if reason == v1alpha1.ReasonNoDomain || reason == v1alpha1.ReasonServiceNotSelected {
		if ad := p.survey.Ineffective(p.service, a); ad != nil { // addBGP says why.
			p.add(Link{Name: LinkDomain, Object: shard.Domain, State: Unused,
				Message: message + "; BGPAdvertisement " + ad.Name + " selects it"})
			return
		}
		message += ", and no BGPAdvertisement selects it"
	}
	p.broken(LinkDomain, shard.Domain, reason, message, command)
}

// noteForeignSubnets adds the note that the subnets of a domain look like those of another network, if they do.
func (p *path) noteForeignSubnets(domain string, f world.Family) {
	at := slices.IndexFunc(p.layout.Domains, func(d *place.Domain) bool { return d.Spec.Name == domain })
	if at < 0 || p.unread("nodes", "leases") {
		return
	}
	if text := place.ForeignSubnetsOf(p.layout.Domains[at].Spec, p.world, f); text != "" {
		p.remark("L2Domain %s: %s", domain, text)
	}
}

// mentioning returns a message that begins with an address.
func mentioning(a netip.Addr, message string) string {
	if strings.HasPrefix(message, a.String()+": ") {
		return message
	}
	return fmt.Sprintf("%s: %s", a, message)
}

// mendDomain returns the command that makes a domain serve an address of a pool, or any of them if it is the zero Addr.
func (p *path) mendDomain(reason, message, pool string, a netip.Addr) string {
	switch reason {
	case v1alpha1.ReasonDisabledByMode:
		return enable(message)
	case v1alpha1.ReasonNoDomain:
		return p.addToDomain(pool, a).command
	}
	if strings.Contains(message, "--enable-l2") {
		return p.ownPods("") + withAgents
	}
	return "kubectl describe l2domains"
}

// addition is the command that adds a pool to a domain. hasComment is set if it has one, and advertises if that names a
// BGPAdvertisement first.
type addition struct {
	command                string
	hasComment, advertises bool
}

// addToDomain returns the command that adds a pool to a domain whose subnets have the address, or an address of the
// pool if it is the zero Addr. Without such a domain, one must be created, or a BGPAdvertisement, which comes first if
// there is a BGPPeer: a pool of addresses of no segment is meant for that. The command does not apply docs/examples,
// which have another pool and other subnets.
func (p *path) addToDomain(pool string, a netip.Addr) addition {
	has := func(s v1alpha1.Subnet) bool { return p.has(s.CIDR, pool, a) }
	for _, d := range sorted(p.objects.Domains) {
		switch {
		case !slices.ContainsFunc(d.Spec.Subnets, has):
			continue
		case len(d.Spec.IPAddressPools) == 0:
			return addition{command: printable.Command("kubectl patch l2domain %s --type=merge -p %s", d.Name,
				fmt.Sprintf(`{"spec":{"ipAddressPools":[%q]}}`, pool))}
		}
		if missing := p.missingPool(d); missing != "" {
			return addition{command: printable.Command("kubectl edit l2domain %s   # spec.ipAddressPools: %s does not exist, "+
				"%s does", d.Name, missing, pool), hasComment: true}
		}
		return addition{command: printable.Command("kubectl patch l2domain %s --type=json -p %s", d.Name,
			fmt.Sprintf(`[{"op":"add","path":"/spec/ipAddressPools/-","value":%q}]`, pool))}
	}
	text, values := "an L2Domain, as docs/examples/l2domain.yaml, with pool %s and a subnet ", []any{pool}
	advertises := len(p.objects.Peers) > 0
	if advertises {
		text = "a BGPAdvertisement with pool %s, as in docs/tasks/bgp.md; or " + text
		values = append(values, pool)
	}
	if text = "kubectl apply -f FILE   # " + text; a.IsValid() {
		text, values = text+"that contains %s", append(values, a)
	} else {
		text += "of its addresses"
	}
	return addition{command: printable.Command(text, values...), hasComment: true, advertises: advertises}
}

// missingPool returns the first pool of a domain that does not exist, perhaps a misspelt one, or an empty string.
func (p *path) missingPool(d *v1alpha1.L2Domain) string {
	if p.unread("ipaddresspools") {
		return ""
	}
	at := slices.IndexFunc(d.Spec.IPAddressPools, func(name string) bool {
		return !slices.ContainsFunc(p.world.Pools, func(pool *world.Pool) bool { return pool.Name == name })
	})
	if at < 0 {
		return ""
	}
	return d.Spec.IPAddressPools[at]
}

// has reports whether a subnet has the address, or an address of the pool if it is the zero Addr.
func (p *path) has(cidr, pool string, a netip.Addr) bool {
	if a.IsValid() {
		return contains(cidr, a)
	}
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && slices.ContainsFunc(p.world.Pools, func(w *world.Pool) bool {
		return w.Name == pool && slices.ContainsFunc(w.Ranges, netipx.RangeOfPrefix(prefix).Overlaps)
	})
}

func contains(cidr string, a netip.Addr) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Contains(a)
}

// verdictOn is verdict for a message that names an address.
func (p *path) verdictOn(a netip.Addr, reasons ...string) *metav1.Condition {
	if c := p.verdict(reasons...); c != nil && mentions(c.Message, a) {
		return c
	}
	return nil
}

// addShard adds the shard of an address, and its gateway.
func (p *path) addShard(a netip.Addr, d *v1alpha1.L2Domain, id world.ShardID) {
	name := id.Name()
	at := slices.IndexFunc(d.Status.Shards, func(s v1alpha1.ShardStatus) bool { return int(s.Index) == id.Index })
	if c := p.verdictOn(a, v1alpha1.ReasonNoGateway); c != nil {
		p.add(Link{Name: LinkShard, Object: name, State: Unused, Message: "no gateway"})
		p.addNoGateway(d, c)
		return
	}
	ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case at < 0 && ready != nil && ready.Reason == v1alpha1.ReasonNoGateway: // the condition names another address
		p.add(Link{Name: LinkShard, Object: name, State: Unused, Message: "no gateway"})
		if !slices.ContainsFunc(p.links, func(l Link) bool { return l.Name == LinkGateway && l.Object == d.Name }) {
			p.addNoGateway(d, ready)
		}
		return
	case p.verdictOn(a, v1alpha1.ReasonAddressConflict) != nil: // other addresses of the shard may have a gateway
		p.add(Link{Name: LinkShard, Object: name, State: Unused, Message: "not announced"})
		return
	case at < 0:
		p.add(Link{Name: LinkShard, Object: name, State: Unknown, Reason: v1alpha1.ReasonProgramming,
			Message: "the status of the L2Domain does not show the shard yet", Command: describe(d)})
		return
	}
	s := &d.Status.Shards[at]
	p.ok(LinkShard, name, "gateways in order: "+joined(activeFirst(s)))
	p.addGateway(a, d, s)
}

// activeFirst returns the gateways of a shard in the order in which they take it over. The first one is the one that
// has claimed it, if any, which after a failover is not yet the first of s.Gateways and is marked then.
func activeFirst(s *v1alpha1.ShardStatus) []string {
	if s.Active == "" || len(s.Gateways) > 0 && s.Gateways[0] == s.Active {
		return s.Gateways
	}
	others := slices.DeleteFunc(slices.Clone(s.Gateways), func(name string) bool { return name == s.Active })
	return append([]string{s.Active + " (active)"}, others...)
}

// segment names the segment of an L2Domain. That it is the one on which clients look for the addresses is what the
// administrator says: nothing observes it.
func segment(d *v1alpha1.L2Domain) string {
	if d.Spec.VLAN == 0 {
		return d.Spec.PhysicalNetwork
	}
	return fmt.Sprintf("%s, VLAN %d", d.Spec.PhysicalNetwork, d.Spec.VLAN)
}
