// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// sharedTopology returns topology(2) with the domain on the bridge of OVN-Kubernetes' own gateway, in shared mode. The
// gateways are n1 and n2.
func sharedTopology() *plan.Topology {
	f := topology(2)
	f.Domains[0].VLAN = 0
	for i := range f.Domains[0].Shards {
		f.Domains[0].Shards[i].Gateways = []plan.Gateway{
			{Node: "n1", Chassis: "c1", SharedBridge: true}, {Node: "n2", Chassis: "c2", SharedBridge: true},
		}
	}
	return f
}

// externalSwitches creates the rows of OVN-Kubernetes between a node's gateway router and its bridge.
func (s *server) externalSwitches(t *testing.T, nodes ...string) {
	t.Helper()
	for _, n := range nodes {
		s.nbctl(t, "ls-add", "ext_"+n, "--", "lrp-add", "GR_"+n, "rtoe-GR_"+n, "0a:58:ac:12:00:0b", "172.18.0.11/24",
			"--", "lsp-add", "ext_"+n, "etor-GR_"+n, "--", "lsp-set-type", "etor-GR_"+n, "router",
			"--", "lsp-set-options", "etor-GR_"+n, "router-port=rtoe-GR_"+n)
	}
}

// bridgePort creates the port of a node's external switch on the bridge.
func (s *server) bridgePort(t *testing.T, node string) {
	t.Helper()
	port := "br-ex_" + node
	s.nbctl(t, "lsp-add", "ext_"+node, port, "--", "lsp-set-type", port, "localnet",
		"--", "lsp-set-addresses", port, "unknown", "--", "lsp-set-options", port, "network_name=physnet")
}

// The external switches of nodes are not in the replica. In-ports are attached to them nevertheless, a restart writes
// nothing, a port that another client deletes is written again, and nothing of ours stays.
func TestInPortsAreOnTheExternalSwitchesOfGateways(t *testing.T) {
	t.Parallel()
	nb := serve(t, schema)
	nb.clusterRows(t)
	nb.externalSwitches(t, "n1", "n2", "n3")
	bare := stripped(nb.dump(t))
	d, events := dial(t, nb)
	configure(t, d, sharedTopology())
	ports := func(node string) string {
		return strings.Join(strings.Fields(nb.nbctl(t, "--bare", "--columns=name", "find", "Logical_Switch_Port",
			"name=in-slbin-lan/"+node+"-0")+" "+nb.nbctl(t, "lsp-list", "ext_"+node)), " ")
	}
	for _, n := range []string{"n1", "n2"} {
		if got := ports(n); !strings.Contains(got, "in-slbin-lan/"+n+"-0)") ||
			!strings.Contains(got, "in-slbin-lan/"+n+"-1)") {
			t.Errorf("ports of ext_%s: %s", n, got)
		}
		if got := nb.nbctl(t, "acl-list", "ext_"+n); strings.Count(got, "is_chassis_resident") != 2 {
			t.Errorf("ACLs of ext_%s: %s", n, got)
		}
	}
	if got := nb.nbctl(t, "lsp-list", "ext_n3"); strings.Contains(got, "slbin") {
		t.Errorf("ports of ext_n3, which is no gateway: %s", got)
	}
	written := stripped(nb.dump(t))
	transactions := nb.transactions(t)
	again, _ := dial(t, nb)
	configure(t, again, sharedTopology())
	prune(t, again)
	if n := nb.transactions(t) - transactions; n != 0 {
		t.Errorf("a process after it: %d transactions, want none", n)
	}
	drain(events)
	nb.nbctl(t, "lsp-del", "in-slbin-lan/n2-1", "--", "acl-del", "ext_n1")
	waitFor(t, events, Rows)
	configure(t, d, sharedTopology())
	if diff := cmp.Diff(written, stripped(nb.dump(t))); diff != "" {
		t.Errorf("after the repair: %s", diff)
	}
	d.mu.Lock() // a check in the background may read it
	d.topology = nil
	d.mu.Unlock()
	configure(t, d, &plan.Topology{Cluster: sharedTopology().Cluster})
	prune(t, d)
	if diff := cmp.Diff(bare, stripped(nb.dump(t))); diff != "" {
		t.Errorf("after the last domain is gone: %s", diff)
	}
}

// A gateway whose external switch is missing has no in-ports, and the others don't wait for it.
func TestInPortsOfOtherGatewaysAreWrittenIfASwitchIsMissing(t *testing.T) {
	t.Parallel()
	nb := serve(t, schema)
	nb.clusterRows(t)
	nb.externalSwitches(t, "n1", "n2")
	nb.nbctl(t, "ls-del", "ext_n1")
	d, _ := dial(t, nb)
	err := d.Configure(t.Context(), sharedTopology())
	if err == nil || !strings.Contains(err.Error(), "Logical_Switch ext_n1 is not in the database") {
		t.Errorf("error %v, want one that names the switch", err)
	}
	if got := nb.nbctl(t, "lsp-list", "ext_n2"); !strings.Contains(got, "in-slbin-lan/n2-0)") {
		t.Errorf("ports of ext_n2: %s", got)
	}
	nb.nbctl(t, "ls-add", "ext_n1")
	configure(t, d, sharedTopology())
	if got := nb.nbctl(t, "lsp-list", "ext_n1"); !strings.Contains(got, "in-slbin-lan/n1-0)") {
		t.Errorf("ports of ext_n1 when it exists: %s", got)
	}
}

// A packet that arrives at the external switch of a gateway is balanced as one from the segment, and the same packets
// are dropped: those of excluded clients, and those for internal addresses.
func TestPacketsFromExternalSwitches(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	nb.externalSwitches(t, "n1", "n2")
	for i, n := range nodes()[:2] {
		nb.nbctl(t, "set", "Logical_Router", "GR_"+n.name, fmt.Sprintf("options:chassis=c%d", i+1))
		nb.bridgePort(t, n.name)
	}
	sb.sbctl(t, "init")
	sb.addChassis(t)
	translate(t, nb, sb)
	d, _ := dial(t, nb)
	configure(t, d, sharedTopology())
	restricted := service(3, 2, "10.244.1.10")
	restricted.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("10.50.0.9/32")}
	apply(t, d, service(1, 2, "10.244.1.10", "fd00:10:244:2::10"), restricted)
	nb.sync(t)
	address := nb.mac(t, "slb-lan-1-ext")
	for _, c := range []struct {
		what, packet string
		to           string // empty if the packet is dropped
	}{
		{"IPv4", "ip4.src == 10.50.0.8 && ip4.dst == 10.50.1.1 && tcp.dst == 80", "240.1.10.1:8080"},
		{"IPv6", "ip6.src == fd00:50::8 && ip6.dst == fd00:50::1:1 && tcp.dst == 80", "[fd3e:5b1c:2::10:1]:8080"},
		{"UDP", "ip4.src == 10.50.0.8 && ip4.dst == 10.50.1.1 && udp.dst == 53", "240.1.10.1:8053"},
		{"from beyond", "ip4.src == 198.51.100.1 && ip4.dst == 10.50.1.1 && tcp.dst == 80", "240.1.10.1:8080"},
		{"a client in the source ranges", "ip4.src == 10.50.0.9 && ip4.dst == 10.50.1.3 && tcp.dst == 80",
			"240.1.10.1:8080"},
		{"another client", "ip4.src == 10.50.0.8 && ip4.dst == 10.50.1.3 && tcp.dst == 80", ""},
		{"a host that pretends to be a pod", "ip4.src == 10.244.1.7 && ip4.dst == 10.50.1.1 && tcp.dst == 80", ""},
		{"an alias", "ip4.src == 10.50.0.9 && ip4.dst == 240.1.10.1 && tcp.dst == 8080", ""},
		{"an address of the join switch", "ip4.src == 10.50.0.9 && ip4.dst == 100.64.0.1 && tcp.dst == 80", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			out := sb.trace(t, "ext_n1", fmt.Sprintf("inport == \"br-ex_n1\" && eth.src == 02:00:00:00:00:99 && "+
				"eth.dst == %s && ip.ttl == 64 && %s", address, c.packet))
			if balanced := strings.Contains(out, "backends="); balanced != (c.to != "") || !strings.Contains(out, c.to) {
				t.Errorf("want %q:\n%s", c.to, out)
			} else if !balanced && !dropped.MatchString(out) {
				t.Errorf("is not dropped:\n%s", out)
			}
		})
	}
	t.Run("a frame to a group", func(t *testing.T) {
		out := sb.trace(t, "ext_n1", "inport == \"br-ex_n1\" && eth.src == 02:00:00:00:00:99 && "+
			"eth.dst == 01:00:5e:00:00:09 && ip.ttl == 64 && ip4.src == 10.50.0.8 && ip4.dst == 10.50.1.1 && tcp.dst == 80")
		if !dropped.MatchString(out) || strings.Contains(out, "backends=") {
			t.Errorf("is not dropped:\n%s", out)
		}
	})
}

// In the zone of a gateway the in-port is on the shard's router: packets for internal addresses are dropped before it,
// also if they are sent to a multicast address, which a router accepts on any port.
func TestPacketsFromTheExternalSwitchOfAZone(t *testing.T) {
	t.Parallel()
	nb, sb := startZone(t, "n2")
	nb.externalSwitches(t, "n2")
	nb.bridgePort(t, "n2")
	sb.addChassis(t)
	translate(t, nb, sb)
	f := zoneTopology("n2", "c2")
	f.Domains[0].VLAN = 0
	for i := range f.Domains[0].Shards {
		f.Domains[0].Shards[i].Gateways = []plan.Gateway{{Node: "n2", Chassis: "c2", SharedBridge: true}}
	}
	external := func() string {
		return nb.nbctl(t, "--columns=ports,acls,external_ids", "list", "Logical_Switch", "ext_n2")
	}
	before := external()
	d := dialZone(t, "n2", nb, sb)
	configure(t, d, f)
	restricted := service(1, 2, "10.244.1.10", "fd00:10:244:2::10")
	restricted.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("10.50.0.8/32")}
	apply(t, d, restricted)
	nb.sync(t)
	address := nb.mac(t, "slb-lan-1-ext")
	for _, c := range []struct {
		what, dst, packet string
		accepted          bool
	}{
		{"a VIP", address, "ip4.src == 10.50.0.8 && ip4.dst == 10.50.1.1 && tcp.dst == 80", true},
		{"a VIP over IPv6", address, "ip6.src == fd00:50::8 && ip6.dst == fd00:50::1:1 && tcp.dst == 80", true},
		{"an alias", address, "ip4.src == 10.50.0.8 && ip4.dst == 240.1.10.1 && udp.dst == 8053", false},
		{"an alias, multicast", "01:00:5e:00:00:09",
			"ip4.src == 10.50.0.8 && ip4.dst == 240.1.10.1 && udp.dst == 8053", false},
		{"an alias over IPv6, multicast", "33:33:00:00:00:09",
			"ip6.src == fd00:50::8 && ip6.dst == fd3e:5b1c:2::10:1 && udp.dst == 8053", false},
		{"pretends to be a pod", address,
			"ip6.src == fd00:10:244:2::7 && ip6.dst == fd00:50::1:1 && tcp.dst == 80", false},
		{"pretends to be a router on the transit switch", address,
			"ip6.src == fd97::3 && ip6.dst == fd00:50::1:1 && tcp.dst == 80", false},
		{"a VIP over IPv6, multicast", "33:33:00:00:00:09",
			"ip6.src == fd00:50::8 && ip6.dst == fd00:50::1:1 && tcp.dst == 80", false},
		{"pretends to be an alias", address, "ip4.src == 240.1.10.1 && ip4.dst == 10.50.1.1 && tcp.dst == 80", false},
		{"an address of the join switch", address, "ip4.src == 10.50.0.8 && ip4.dst == 100.64.0.1 && tcp.dst == 80", false},
		{"an address of the join switch, multicast", "01:00:5e:00:00:09",
			"ip4.src == 10.50.0.8 && ip4.dst == 100.64.0.1 && udp.dst == 80", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			out := sb.trace(t, "ext_n2", fmt.Sprintf("inport == \"br-ex_n2\" && eth.src == 02:00:00:00:00:99 && "+
				"eth.dst == %s && ip.ttl == 64 && %s", c.dst, c.packet))
			if got := strings.Contains(out, `ingress(dp="slb-lan-1"`); got != c.accepted {
				t.Errorf("the router accepts it: %t, want %t:\n%s", got, c.accepted, out)
			}
		})
	}
	configure(t, d, &plan.Topology{Zone: &plan.Zone{Node: "n2"}})
	remove(t, d, restricted)
	if got := external(); got != before {
		t.Errorf("the external switch after us: %s, before: %s", got, before)
	}
}
