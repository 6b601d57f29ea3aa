// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// beside returns a Service without source ranges that shares the addresses of another one, with a TCP port of its own.
func beside(p *plan.Service, name string, port uint16) *plan.Service {
	out := &plan.Service{Key: world.Key{Namespace: p.Key.Namespace, Name: name}, VIPs: slices.Clone(p.VIPs)}
	for _, v := range p.VIPs {
		l := p.ListenersFor(v.Addr)[0]
		l.Port = port
		out.Listeners = append(out.Listeners, l)
	}
	return out
}

// Open vSwitch looks up all IP fragments without ports, so that they match no ACL with ports, and the shard's router
// has conntrack reassemble them. They pass only from the source ranges of each Service that has some.
func TestFragmentsObeySourceRanges(t *testing.T) {
	t.Parallel()
	nb, sb := clusterWithNorthd(t)
	d, _ := dial(t, nb)
	configure(t, d, topology(1))
	ranges := func(v4, v6 string) map[world.Family][]netip.Prefix {
		return map[world.Family][]netip.Prefix{world.IPv4: prefixes(v4), world.IPv6: prefixes(v6)}
	}
	alone, open := service(1, 1, "10.244.1.10", "fd00:10:244:2::10"), service(2, 1, "10.244.1.10")
	alone.SourceRanges = ranges("192.0.2.0/24", "2001:db8:1::/48")
	wide := service(3, 1, "10.244.1.10")
	wide.SourceRanges = ranges("192.0.2.0/24", "2001:db8:1::/48")
	narrow := beside(wide, "narrow", 81)
	narrow.SourceRanges = ranges("192.0.2.128/25", "2001:db8:1::/48")
	apply(t, d, alone, open, wide, narrow, beside(wide, "open", 82))
	nb.sync(t)
	mac := nb.mac(t, "slb-lan-0-ext")
	// As they are looked up: an IPv6 fragment that is not the first one has no protocol of its own, and the kernel finds
	// none in a first one without all headers.
	for _, c := range []struct {
		what, src, dst, fields string
		passes                 bool
	}{
		{"first, from outside", "198.51.100.1", "10.50.1.1", "ip.proto == 6 && ip.frag == 1", false},
		{"later, from outside", "198.51.100.1", "10.50.1.1", "ip.proto == 6 && ip.frag == 3", false},
		{"UDP, from outside", "198.51.100.1", "10.50.1.1", "ip.proto == 17 && ip.frag == 1", false},
		{"first, from inside", "192.0.2.1", "10.50.1.1", "ip.proto == 6 && ip.frag == 1", true},
		{"later, from inside", "192.0.2.1", "10.50.1.1", "ip.proto == 6 && ip.frag == 3", true},
		{"a protocol that is not served", "198.51.100.1", "10.50.1.1", "ip.proto == 132 && ip.frag == 1", true},
		{"IPv6, from outside", "2001:db8:2::1", "fd00:50::1:1", "ip.proto == 6 && ip.frag == 1", false},
		{"IPv6, without all headers", "2001:db8:2::1", "fd00:50::1:1", "ip.proto == 59 && ip.frag == 1", false},
		{"IPv6, from inside", "2001:db8:1::1", "fd00:50::1:1", "ip.proto == 6 && ip.frag == 1", true},
		{"a Service without source ranges", "198.51.100.1", "10.50.1.2", "ip.proto == 6 && ip.frag == 1", true},
		{"shared, from one Service's ranges", "192.0.2.1", "10.50.1.3", "ip.proto == 6 && ip.frag == 1", false},
		{"shared, from the ranges of both", "192.0.2.129", "10.50.1.3", "ip.proto == 6 && ip.frag == 1", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			family := "ip4"
			if strings.Contains(c.dst, ":") {
				family = "ip6"
			}
			out := sb.trace(t, "slb-lan", fmt.Sprintf("inport == \"slb-lan-localnet\" && eth.src == 02:00:00:00:00:99 && "+
				"eth.dst == %s && %s.src == %s && %s.dst == %s && ip.ttl == 64 && %s", mac, family, c.src, family, c.dst, c.fields))
			if passes := strings.Contains(out, `ingress(dp="slb-lan-0"`); passes != c.passes {
				t.Errorf("reaches the shard's router: %t\n%s", passes, out)
			}
		})
	}
}

// One Service admits the fragments for all that share an address. Another one does when it goes, also in a new process.
func TestFragmentsAreAdmittedByOneService(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	wide := service(3, 1, "10.244.1.10")
	wide.Listeners = slices.DeleteFunc(wide.Listeners, func(l plan.Listener) bool { return l.Protocol == world.UDP })
	wide.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.0/24")}
	narrow := beside(wide, "narrow", 81)
	narrow.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.128/25", "198.51.100.0/24")}
	expect := func(what, service, source string) {
		t.Helper()
		got := s.nbctl(t, "--bare", "--no-headings", "--format=csv", "--columns=match,external_ids", "find", "ACL",
			"action=allow-stateless")
		var admitting []string
		for line := range strings.Lines(got) {
			if strings.Contains(line, "ip.is_frag") {
				admitting = append(admitting, line)
			}
		}
		if len(admitting) != 1 || !strings.Contains(admitting[0], "default/"+service+" ") &&
			!strings.Contains(admitting[0], "default/"+service+":") || !strings.Contains(admitting[0], "{"+source+"}") {
			t.Errorf("%s: %q; want %s from %s", what, admitting, service, source)
		}
	}
	apply(t, d, wide)
	expect("alone", "s3", "192.0.2.0/24")
	apply(t, d, narrow)
	expect("two", "narrow", "192.0.2.128/25")
	prune(t, d, wide, narrow)
	written := s.transactions(t)
	again, _ := dial(t, s)
	configure(t, again, topology(1))
	apply(t, again, wide, narrow)
	prune(t, again, wide, narrow)
	if n := s.transactions(t) - written; n != 0 {
		t.Errorf("a new process: %d transactions", n)
	}
	less := *wide
	less.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.192/26")}
	apply(t, again, &less)
	expect("another one has fewer ranges", "narrow", "192.0.2.192/26")
	apply(t, again, wide)
	remove(t, again, narrow)
	expect("one left", "s3", "192.0.2.0/24")
}
