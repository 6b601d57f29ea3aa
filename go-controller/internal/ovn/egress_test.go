// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const egressMAC = "02:42:0a:32:00:0c"

// translated returns a plan whose addresses a host translates.
func translated(p *plan.Service) *plan.Service {
	out := *p
	out.VIPs = slices.Clone(p.VIPs)
	for i := range out.VIPs {
		out.VIPs[i].EgressMAC = egressMAC
	}
	return &out
}

func (s *server) localnetAddresses(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(s.nbctl(t, "get", "Logical_Switch_Port", "slb-lan-localnet", "addresses"))
}

// The host that translates an address stays in the localnet port through a restart, which writes nothing, and leaves it
// with the last Service that has it.
func TestHostOfAnAddressIsInTheLocalnetPort(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	one, other := service(1, 1, "10.244.1.10"), service(2, 1, "10.244.1.10")
	const with, without = `["` + egressMAC + ` 10.50.1.1 fd00:50::1:1", unknown]`, `[unknown]`
	apply(t, d, one, other)
	prune(t, d, one, other)
	if got := s.localnetAddresses(t); got != without {
		t.Errorf("without a host: %s", got)
	}
	apply(t, d, translated(one))
	if got := s.localnetAddresses(t); got != with {
		t.Errorf("with a host: %s", got)
	}
	written := s.transactions(t)
	again, _ := dial(t, s)
	configure(t, again, topology(1))
	apply(t, again, other)
	apply(t, again, translated(one))
	prune(t, again, one, other)
	if n := s.transactions(t) - written; n != 0 || s.localnetAddresses(t) != with {
		t.Errorf("a new process: %d transactions, %s", n, s.localnetAddresses(t))
	}
	apply(t, again, one)
	if got := s.localnetAddresses(t); got != without {
		t.Errorf("without a host again: %s", got)
	}
	apply(t, again, translated(one))
	remove(t, again, one)
	if got := s.localnetAddresses(t); got != without {
		t.Errorf("without the Service: %s", got)
	}
	apply(t, again, translated(other))
	third, _ := dial(t, s) // The Service was deleted while no process ran.
	configure(t, third, topology(1))
	prune(t, third)
	if got := s.localnetAddresses(t); got != without {
		t.Errorf("without a plan: %s", got)
	}
}

// What is for no port of a Service goes to the host, also for the address of the router itself, and is dropped if the
// host sends it back. Neither source ranges nor the ports of Services are bypassed. Later fragments reach the router,
// which has conntrack reassemble them.
func TestPacketsForNoPortGoToTheHost(t *testing.T) {
	t.Parallel()
	nb, sb := clusterWithNorthd(t)
	d, _ := dial(t, nb)
	configure(t, d, topology(1))
	anchor, other, none := translated(service(1, 1, "10.244.1.10")), translated(service(2, 1, "10.244.1.10")),
		service(3, 1, "10.244.1.10")
	other.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.0/24")}
	admits := translated(service(4, 1, "10.244.1.10"))
	admits.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("10.50.0.0/16")}
	apply(t, d, anchor, other, none, admits)
	nb.sync(t)
	mac := nb.mac(t, "slb-lan-0-ext")
	const client, host, served = "02:00:00:00:00:99", "the host", "a backend"
	// Fragments are looked up without ports.
	const initial, later = "ip.frag == 1 && udp.src == 0 && udp.dst == 0", "ip.frag == 3 && udp.src == 0 && udp.dst == 0"
	for _, c := range []struct {
		what, from, dst string
		port            int
		to              string // empty if the packet is dropped
		others          string // fields instead of those of TCP
	}{
		{"the router's own address", client, "10.50.1.1", 40000, host, ""},
		{"the router's own IPv6 address", client, "fd00:50::1:1", 40000, host, ""},
		{"another address", client, "10.50.1.2", 40000, host, ""},
		{"another IPv6 address", client, "fd00:50::1:2", 40000, host, ""},
		{"from the host", egressMAC, "10.50.1.1", 40000, "", ""},
		{"from the host over IPv6", egressMAC, "fd00:50::1:2", 40000, "", ""},
		{"a port", client, "10.50.1.1", 80, served, ""},
		{"a port, from the host", egressMAC, "10.50.1.1", 80, served, ""},
		{"a port with source ranges", client, "10.50.1.2", 80, "", ""},
		{"a port with source ranges, from the host", egressMAC, "10.50.1.2", 80, "", ""},
		{"an address without a host", client, "10.50.1.3", 40000, "neither", ""},
		{"a later fragment", client, "10.50.1.1", 0, host, later},
		{"a later fragment, from the host", egressMAC, "10.50.1.1", 0, host, later},
		{"a later fragment over IPv6, from the host", egressMAC, "fd00:50::1:2", 0, host, later},
		{"a first fragment", client, "10.50.1.4", 0, host, initial},
		{"a first fragment, from the host", egressMAC, "10.50.1.1", 0, "", initial},
		{"a first fragment from source ranges, from the host", egressMAC, "10.50.1.4", 0, "", initial},
		{"an ICMP error, from the host", egressMAC, "10.50.1.1", 0, "", "icmp4.type == 3 && icmp4.code == 4"},
	} {
		t.Run(c.what, func(t *testing.T) {
			family, src := "ip4", "10.50.0.9"
			if strings.Contains(c.dst, ":") {
				family, src = "ip6", "fd00:50::9"
			}
			out := sb.trace(t, "slb-lan", fmt.Sprintf("inport == \"slb-lan-localnet\" && eth.src == %s && eth.dst == %s && "+
				"%s.src == %s && %s.dst == %s && ip.ttl == 64 && %s", c.from, mac, family, src, family, c.dst,
				cmp.Or(c.others, fmt.Sprintf("tcp.src == 443 && tcp.dst == %d", c.port))))
			got := "neither"
			switch {
			case strings.Contains(out, "backends="):
				got = served
			case strings.Contains(out, "eth.dst == "+egressMAC) && strings.Contains(out, `output to "slb-lan-localnet"`):
				got = host
			case dropped.MatchString(out):
				got = ""
			}
			if c.others == later && !strings.Contains(out, "ct_dnat") {
				t.Errorf("conntrack does not reassemble it:\n%s", out)
			}
			if got != c.to {
				t.Errorf("gets to %q, want %q:\n%s", got, c.to, out)
			}
		})
	}
}
