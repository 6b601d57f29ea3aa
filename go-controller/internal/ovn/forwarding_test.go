// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A shard's router does not forward what comes from the segment to its next hop, which could send it back, nor what was
// sent to a group of hosts, of which each shard and gateway would send a copy. What the router itself answers leaves.
func TestShardsForwardNothingToTheNextHop(t *testing.T) {
	t.Parallel()
	nb, sb := clusterWithNorthd(t)
	d, _ := dial(t, nb)
	f := topology(1)
	f.Domains[0].Subnets = append(f.Domains[0].Subnets, world.Subnet{Prefix: netip.MustParsePrefix("10.60.0.0/24"),
		Gateway: netip.MustParseAddr("10.60.0.1")})
	configure(t, d, f)
	second := service(2, 1, "10.244.1.10")
	second.VIPs[0].Addr = netip.MustParseAddr("10.60.0.50")
	for i := range second.Listeners {
		if l := &second.Listeners[i]; l.VIP.Is4() {
			l.VIP = second.VIPs[0].Addr
		}
	}
	apply(t, d, service(1, 1, "10.244.1.10", "fd00:10:244:2::10"), second)
	nb.sync(t)
	mac := nb.mac(t, "slb-lan-0-ext")
	const group, backend, segment = "01:00:5e:00:00:09", "a backend", "the segment"
	for _, c := range []struct {
		what, mac, src, dst, fields, to string // to is empty if the packet is dropped
	}{
		{"a port", mac, "198.51.100.1", "10.50.1.1", "tcp.dst == 80", backend},
		{"a port in the other subnet", mac, "198.51.100.1", "10.60.0.50", "tcp.dst == 80", backend},
		{"no port in the other subnet", mac, "198.51.100.1", "10.60.0.50", "tcp.dst == 22", ""},
		{"an address beyond", mac, "10.50.0.9", "198.51.100.1", "udp.dst == 53", ""},
		{"an IPv6 address beyond", mac, "fd00:50::9", "2001:db8::1", "udp.dst == 53", ""},
		{"to a group", group, "10.50.0.9", "198.51.100.1", "udp.dst == 53", ""},
		{"to a group over IPv6", "33:33:00:00:00:09", "fd00:50::9", "2001:db8::1", "udp.dst == 53", ""},
		{"to a group, a port", group, "10.50.0.9", "10.50.1.1", "tcp.dst == 80", ""},
		{"ping", mac, "198.51.100.1", "10.50.1.1", "icmp4.type == 8 && icmp4.code == 0", segment},
		{"ping over IPv6", mac, "2001:db8::1", "fd00:50::1:1", "icmp6.type == 128 && icmp6.code == 0", segment},
		{"as a ping's reply", mac, "fd00:50::1:1", "2001:db8::1", "icmp6.type == 129 && icmp6.code == 0", ""},
		{"a hop limit that is used up", mac, "198.51.100.1", "10.60.0.50", "udp.dst == 5 && ip.ttl == 1", segment},
	} {
		t.Run(c.what, func(t *testing.T) {
			family := "ip4"
			if strings.Contains(c.dst, ":") {
				family = "ip6"
			}
			if !strings.Contains(c.fields, "ttl") {
				c.fields += " && ip.ttl == 64"
			}
			out := sb.trace(t, "slb-lan", fmt.Sprintf("inport == \"slb-lan-localnet\" && eth.src == 02:00:00:00:00:99 && "+
				"eth.dst == %s && %s.src == %s && %s.dst == %s && %s", c.mac, family, c.src, family, c.dst, c.fields))
			got := ""
			switch {
			case strings.Contains(out, `ingress(dp="join"`):
				got = backend
			case !dropped.MatchString(out):
				got = segment
			}
			if got != c.to {
				t.Errorf("gets to %q, want %q:\n%s", got, c.to, out)
			}
		})
	}
}
