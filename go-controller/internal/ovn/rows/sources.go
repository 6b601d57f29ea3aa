// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Priorities of the ACLs on the switch of a domain, which has no other ACLs.
const (
	dropPriority  = 1000
	allowPriority = 1001
)

// ACLs returns all ACLs of a Service.
func (b *Builder) ACLs(p *plan.Service) []Row {
	return append(b.sourceRangeACLs(p), b.egressACLs(p)...)
}

// sourceRangeACLs returns the ACLs of a Service with source ranges, on the switches of its domains. Packets to its
// addresses and ports are dropped unless they come from one of the ranges, and so are fragments (fragments.go). Shards
// without a router have no ACLs.
//
// The ACLs are stateless, so that conntrack does not run on the switch. They do not match other protocols and, but for
// fragments, ports of the address, which may belong to another Service. Replies have the client as their destination
// and don't match. There are two ACLs, because OVN expands "not in these ranges" to as many flows as the product of the
// ranges' lengths.
func (b *Builder) sourceRangeACLs(p *plan.Service) []Row {
	var out []Row
	for _, v := range p.VIPs {
		_, restricted := p.SourceRanges[world.FamilyOf(v.Addr)]
		s, ok := b.shards[v.Shard]
		if !ok || !s.local || !restricted {
			continue
		}
		for _, protocol := range protocols() {
			if ports := portsOf(p, v.Addr, protocol); len(ports) > 0 {
				out = append(out, b.sourceRows(p, v, protocol, ports, switchName(v.Shard.Domain))...)
				if b.hasInPort(s) {
					// Packets do not pass the switch of the domain on this path.
					out = append(out, b.sourceRows(p, v, protocol, ports, ExternalSwitchPrefix+b.zone.Node, "in")...)
				}
			}
		}
	}
	return out
}

// sourceRows returns the ACLs of one address and protocol on a switch. path distinguishes them from those on other
// switches.
func (b *Builder) sourceRows(
	p *plan.Service, v plan.VIP, protocol world.Protocol, ports []string, on string, path ...string,
) []Row {
	proto, ip := strings.ToLower(string(protocol)), fmt.Sprintf("ip%d", world.FamilyOf(v.Addr))
	var out []Row
	acl := func(what string, priority int, match, action string) {
		out = append(out, owned(ACL, OwnerService, p.Key.String(), map[string]any{
			"priority": priority, "direction": "from-lport", "match": match, "action": action,
		}, append([]string{v.Addr.String(), proto, what}, path...)...).with(KeyService, p.Key.String()).withParent(on))
	}
	admit := func(what, to string, sources []netip.Prefix) {
		if len(sources) > 0 {
			match := fmt.Sprintf("%s && %s.src == {%s}", to, ip, strings.Join(texts(sources), ", "))
			acl(what, allowPriority, match, "allow-stateless")
		}
	}
	to := fmt.Sprintf("%s.dst == %s && %s.dst == {%s}", ip, v.Addr, proto, strings.Join(ports, ", "))
	acl("drop", dropPriority, to, "drop")
	admit("admit", to, p.SourceRanges[world.FamilyOf(v.Addr)])
	acl("drop-fragments", dropPriority, fragmentsTo(v.Addr, protocol), "drop")
	admit("admit-fragments", fragmentsFrom(v.Addr, protocol), b.restricted.admittedBy(p, v.Addr, protocol))
	return out
}

// sourceMatch is what the matches of ACLs with ports begin with, and fragmentMatch what those do that admit fragments.
var (
	sourceMatch   = regexp.MustCompile(`^ip[46]\.dst == (\S+) && (tcp|udp|sctp)\.dst == \{([0-9, ]+)\}`)
	fragmentMatch = regexp.MustCompile(`^ip[46]\.dst == (\S+) && (tcp|udp|sctp)` + regexp.QuoteMeta(isFragment) + " && ")
)

// KeepPorts returns the match of an ACL of ACLs with only those ports for which keep returns true, and "" if none is
// left. One without ports stays, but if it admits fragments, only if keep returns true for port 0. ok is false if the
// match is not one of ACLs.
func KeepPorts(match string, keep func(protocol string, at netip.AddrPort) bool) (kept string, ok bool) {
	if strings.HasPrefix(match, returnedMatch) || strings.HasSuffix(match, isFragment) {
		return match, true
	}
	if found := fragmentMatch.FindStringSubmatch(match); found != nil {
		vip, err := netip.ParseAddr(found[1])
		if err != nil || !keep(found[2], netip.AddrPortFrom(vip, 0)) {
			return "", err == nil
		}
		return match, true
	}
	found := sourceMatch.FindStringSubmatchIndex(match)
	if found == nil {
		return "", false
	}
	vip, err := netip.ParseAddr(match[found[2]:found[3]])
	if err != nil {
		return "", false
	}
	var ports []string
	for port := range strings.SplitSeq(match[found[6]:found[7]], ", ") {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", false
		}
		if keep(match[found[4]:found[5]], netip.AddrPortFrom(vip, uint16(n))) {
			ports = append(ports, port)
		}
	}
	if len(ports) == 0 {
		return "", true
	}
	return match[:found[6]] + strings.Join(ports, ", ") + match[found[7]:], true
}

// portsOf returns the ports on which a Service listens at an address.
func portsOf(p *plan.Service, vip netip.Addr, protocol world.Protocol) []string {
	var ports []string
	for _, l := range p.ListenersFor(vip) {
		if l.Protocol == protocol {
			ports = append(ports, strconv.Itoa(int(l.Port)))
		}
	}
	return ports
}

func protocols() []world.Protocol { return []world.Protocol{world.TCP, world.UDP, world.SCTP} }
