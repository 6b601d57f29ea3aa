// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Pods of a Service with an EgressService open connections from the Service's address, which the host of one node
// translates (ADR 27). The replies arrive at the shard's router. What is still for the address after its load balancers
// is routed to the segment again, and the neighbor for the address is that host: the localnet port lists both
// (ovn-northd(8), router ingress table "ARP/ND Resolution"). Nothing depends on ports or on an address of the node.
//
// The host sends back what belongs to none of its connections. ACLs drop that, and nothing else: packets to ports of
// Services are allowed first, whatever MAC address a node says it has. Fragments are looked up without ports, so those
// to ports of Services are dropped, too, and before they would be admitted (fragments.go). Later fragments are not: the
// router reassembles packets by conntrack, where they wait for the first fragment in vain. ICMP errors are dropped,
// since the host would send back those about no connection, too.
const (
	returnedPriority = dropPriority - 2
	servedPriority   = dropPriority - 1
)

// Egress maps the names of domains to the addresses that a host translates, with the host's MAC address.
type Egress map[string]map[netip.Addr]string

// EgressOf returns the Egress of plans. had has the addresses of each domain's localnet port in the database, as long
// as it may have Services whose plans are not known yet: what such a Service has stays.
func EgressOf(plans iter.Seq[*plan.Service], had map[string][]string) Egress {
	out, known := Egress{}, map[netip.Addr]bool{}
	add := func(domain string, vip netip.Addr, mac string) {
		if out[domain] == nil {
			out[domain] = map[netip.Addr]string{}
		}
		// Services that share the address have the same host, except for a moment after it has changed.
		out[domain][vip] = max(out[domain][vip], mac)
	}
	for p := range plans {
		for _, v := range p.VIPs {
			known[v.Addr] = true
			if v.EgressMAC != "" {
				add(v.Shard.Domain, v.Addr, v.EgressMAC)
			}
		}
	}
	for domain, addresses := range had {
		for _, text := range addresses {
			words := strings.Fields(text)
			for _, word := range words[min(1, len(words)):] {
				if vip, err := netip.ParseAddr(word); err == nil && !known[vip] {
					add(domain, vip, words[0])
				}
			}
		}
	}
	return out
}

// SetEgress sets the Egress of which LocalnetRows and TopologyRows return the rows. Without it there are none.
func (b *Builder) SetEgress(e Egress) { b.egress = e }

// LocalnetRows returns the ports that connect the switches of domains to their segments.
func (b *Builder) LocalnetRows() []Row {
	var out []Row
	for _, d := range b.domains {
		if b.isAttached(d) {
			out = append(out, b.localnetRow(d))
		}
	}
	return out
}

// localnetAddresses returns the addresses of the localnet port of a domain: all, and in particular those of hosts that
// translate addresses of Services.
func (b *Builder) localnetAddresses(domain string) []string {
	hosts := map[string][]netip.Addr{}
	for vip, mac := range b.egress[domain] {
		hosts[mac] = append(hosts[mac], vip)
	}
	out := []string{"unknown"}
	for _, mac := range slices.Sorted(maps.Keys(hosts)) {
		text := mac
		for _, vip := range slices.SortedFunc(slices.Values(hosts[mac]), netip.Addr.Compare) {
			text += " " + vip.String()
		}
		out = append(out, text)
	}
	return out
}

// egressACLs returns the ACLs of the addresses of a Service that a host translates, on the switches of their domains.
// Like those of source ranges, which precede them, they are stateless. Each Service at an address has them.
func (b *Builder) egressACLs(p *plan.Service) []Row {
	var out []Row
	for _, v := range p.VIPs {
		if s, ok := b.shards[v.Shard]; v.EgressMAC == "" || !ok || !s.local {
			continue
		}
		to := fmt.Sprintf("ip%d.dst == %s", world.FamilyOf(v.Addr), v.Addr)
		acl := func(what string, priority int, match, action string) {
			out = append(out, owned(ACL, OwnerService, p.Key.String(), map[string]any{
				"priority": priority, "direction": "from-lport", "match": match, "action": action,
			}, v.Addr.String(), "egress", what).with(KeyService, p.Key.String()).withParent(switchName(v.Shard.Domain)))
		}
		for _, protocol := range protocols() {
			if ports := portsOf(p, v.Addr, protocol); len(ports) > 0 {
				proto := strings.ToLower(string(protocol))
				acl(proto, servedPriority, fmt.Sprintf("%s && %s.dst == {%s}", to, proto, strings.Join(ports, ", ")),
					"allow-stateless")
			}
		}
		returned := returnedMatch + v.EgressMAC + " && " + to
		acl("returned", returnedPriority, returned+" && !ip.later_frag", "drop")
		if _, restricted := p.SourceRanges[world.FamilyOf(v.Addr)]; restricted {
			acl("returned-fragments", allowPriority+1, returned+" && ip.first_frag", "drop")
		}
	}
	return out
}

// returnedMatch is what the matches of ACLs for returned packets begin with.
const returnedMatch = "eth.src == "
