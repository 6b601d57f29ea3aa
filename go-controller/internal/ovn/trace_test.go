// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// clusterWithNorthd starts the databases of a cluster with three chassis, and a real northd between them.
func clusterWithNorthd(t *testing.T) (nb, sb *server) {
	t.Helper()
	nb, sb = serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	nb.nbctl(t, "set", "Logical_Switch_Port", "jtor-ovn_cluster_router", "options:router-port=rtoj-ovn_cluster_router",
		"addresses=router")
	sb.sbctl(t, "init")
	sb.addChassis(t)
	translate(t, nb, sb)
	return nb, sb
}

// addChassis adds three chassis.
func (s *server) addChassis(t *testing.T) {
	t.Helper()
	for i := range 3 {
		s.sbctl(t, "chassis-add", fmt.Sprintf("c%d", i+1), "geneve", fmt.Sprintf("127.0.0.%d", i+1))
	}
}

// mac returns the MAC address of a router's port.
func (s *server) mac(t *testing.T, port string) string {
	t.Helper()
	return s.nbctl(t, "--bare", "--columns=mac", "find", "Logical_Router_Port", "name="+port)
}

// trace returns how a real northd processes packets from a port of a router or switch.
func (s *server) trace(t *testing.T, datapath, packet string) string {
	t.Helper()
	cmd := exec.Command("ovn-trace", "--db=unix:"+s.socket, "--no-leader-only", "--ct=new", datapath, packet)
	var warnings strings.Builder
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	// ovn-northd accepts any match. Like ovn-controller, ovn-trace skips the flows of one that is not an expression.
	if err != nil || strings.Contains(warnings.String(), "parsing expression failed") {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, warnings.String())
	}
	return strings.TrimSpace(string(out))
}

// dropped matches the end of the trace of a dropped packet. The last alternative is an ACL of OVN 25.09.
var dropped = regexp.MustCompile(`(drop;|no match \(implicit drop\)|/\* drop \*/|reg8\[18\] = 0;)\s*$`)

// A packet to an alias reaches a backend only if it comes from a shard's router and is for a port that a Service
// serves. All others are dropped, and none loops.
func TestAliasesAreReachedThroughShardsOnly(t *testing.T) {
	t.Parallel()
	nb, sb := clusterWithNorthd(t)
	d, _ := dial(t, nb)
	configure(t, d, topology(1))
	apply(t, d, onHost(service(1, 1, "10.244.1.10", "fd00:10:244:2::10")))
	nb.sync(t)
	join := fmt.Sprintf(`inport == "join-slb-lan-0" && eth.src == %s && eth.dst == %s`, nb.mac(t, "slb-lan-0-join"),
		nb.mac(t, "rtoj-ovn_cluster_router"))
	pods := fmt.Sprintf(`inport == "rtos-n2" && eth.dst == %s`, nb.mac(t, "rtos-n2"))
	segment := fmt.Sprintf(`inport == "slb-lan-localnet" && eth.src == 02:00:00:00:00:99 && eth.dst == %s`,
		nb.mac(t, "slb-lan-0-ext"))
	pod, host, pod6 := "240.1.10.0", "240.2.0.0", "fd3e:5b1c:2::10:0"
	for _, c := range []struct {
		what, datapath, from, src, dst string
		port                           int
		to                             string // empty if the packet is dropped
	}{
		{"from a shard to a pod", "join", join, "10.50.0.9", pod, 8080, "10.244.1.10:8080"},
		{"from a shard to a pod over IPv6", "join", join, "fd00:50::9", pod6, 8080, "[fd00:10:244:2::10]:8080"},
		{"from a shard to a node", "join", join, "10.50.0.9", host, 9080, "172.18.0.11:9080"},
		{"another port of the pod", "join", join, "10.50.0.9", pod, 22, ""},
		{"another port of the pod over IPv6", "join", join, "fd00:50::9", pod6, 22, ""},
		{"another port of the node", "join", join, "10.50.0.9", host, 10250, ""},
		{"a pod that is no backend", "join", join, "10.50.0.9", "240.1.11.0", 8080, ""},
		{"a shard that is not there", "join", join, "10.50.0.9", "240.1.10.7", 8080, ""},
		{"a subnet that no node has", "join", join, "10.50.0.9", "240.99.10.0", 8080, ""},
		{"from a pod to the alias", "ovn_cluster_router", pods, "10.244.0.5", pod, 8080, ""},
		{"from a pod to the alias over IPv6", "ovn_cluster_router", pods, "fd00:10:244:1::5", pod6, 8080, ""},
		{"from a pod to the alias of a node", "ovn_cluster_router", pods, "10.244.0.5", host, 9080, ""},
		{"a pod pretends to be an alias", "ovn_cluster_router", pods, pod, "10.50.0.9", 8080, ""},
		{"from the segment to the alias", "slb-lan", segment, "10.50.0.9", pod, 8080, ""},
		{"from the segment to the alias over IPv6", "slb-lan", segment, "fd00:50::9", pod6, 8080, ""},
		{"the segment pretends to be an alias", "slb-lan", segment, pod, "10.50.1.1", 80, ""},
		{"the segment pretends to be a pod", "slb-lan", segment, "10.244.1.7", "10.50.1.1", 80, ""},
		{"the segment pretends to be a pod over IPv6", "slb-lan", segment, "fd00:10:244:2::7", "fd00:50::1:1", 80, ""},
		{"the segment pretends to be a router on the join switch", "slb-lan", segment, "100.64.0.4", "10.50.1.1", 80, ""},
		{"from the segment to a router on the join switch", "slb-lan", segment, "10.50.0.9", "100.64.0.1", 80, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			family := "ip4"
			if strings.Contains(c.dst, ":") {
				family = "ip6"
			}
			out := sb.trace(t, c.datapath, fmt.Sprintf("%s && %s.src == %s && %s.dst == %s && ip.ttl == 64 && tcp.src == "+
				"40000 && tcp.dst == %d",
				c.from, family, c.src, family, c.dst, c.port))
			visits := strings.Count(out, `ingress(dp="ovn_cluster_router"`)
			switch {
			case c.to != "" && !strings.Contains(out, "(backends="+c.to+";"):
				t.Errorf("does not get to %s:\n%s", c.to, out)
			case c.to == "" && (strings.Contains(out, "backends=") || visits > 1 || !dropped.MatchString(out)):
				t.Errorf("is forwarded, %d times through the cluster router:\n%s", visits, out)
			}
		})
	}
}

// A backend's packets from its port pass the node's router, which knows whether they are replies. Those of other pods
// of the node from the same port do not: policies of OVN-Kubernetes that name the pods' port as the inport, those for
// external gateways in gateway mode local, would not apply to what comes back from there (ADR 7).
func TestOnlyPacketsOfBackendsPassTheNodeRouter(t *testing.T) {
	t.Parallel()
	nb, sb := clusterWithNorthd(t)
	nb.nbctl(t, "ls-add", "n3", "--", "lsp-add", "n3", "k8s-n3",
		"--", "--policy=src-ip", "lr-route-add", "ovn_cluster_router", "10.244.1.0/24", "100.64.0.4",
		"--", "--policy=src-ip", "lr-route-add", "ovn_cluster_router", "fd00:10:244:2::/64", "fd98::4")
	d, _ := dial(t, nb)
	configure(t, d, topology(1))
	route := func(src string) string {
		family, dst := "ip4", "192.0.2.1"
		if strings.Contains(src, ":") {
			family, dst = "ip6", "2001:db8::1"
		}
		return sb.trace(t, "ovn_cluster_router", fmt.Sprintf(`inport == "rtos-n3" && eth.dst == %s && %s.src == %s && `+
			"%s.dst == %s && ip.ttl == 64 && tcp.src == 8080 && tcp.dst == 40000",
			nb.mac(t, "rtos-n3"), family, src, family, dst))
	}
	selected := regexp.MustCompile(`lr_in_policy \(.*inport == "rtos-n3" .*, priority 700,`)
	for _, step := range [][]string{
		{"10.244.1.10", "fd00:10:244:2::10"},
		{"10.244.1.11", "fd00:10:244:2::10", "fd00:10:244:2::11"},
	} {
		apply(t, d, service(1, 1, step...))
		nb.sync(t)
		for _, src := range []string{"10.244.1.10", "10.244.1.11", "fd00:10:244:2::10", "fd00:10:244:2::11"} {
			out := route(src)
			passes := selected.MatchString(out)
			if passes != slices.Contains(step, src) {
				t.Errorf("backends %v: packets of %s pass the node's router: %t\n%s", step, src, passes, out)
			}
		}
	}
}

// Whoever sends BFD from the address of a next hop could make ovn-northd compute everything again, packet by packet.
// What OVN sends to the next hop reaches the segment.
func TestNextHopHasNoBFDSession(t *testing.T) {
	t.Parallel()
	nb, sb := clusterWithNorthd(t)
	d, _ := dial(t, nb)
	configure(t, d, topology(1))
	apply(t, d, service(1, 1, "10.244.1.10", "fd00:10:244:2::10"))
	nb.sync(t)
	for _, c := range []struct {
		what, inport, src, dst string
		handled, forwarded     bool
	}{
		{"from the next hop", "slb-lan-localnet", "10.50.0.1", "10.50.1.1", false, false},
		{"from the next hop over IPv6", "slb-lan-localnet", "fd00:50::1", "fd00:50::1:1", false, false},
		{"from another host", "slb-lan-localnet", "10.50.0.9", "10.50.1.1", true, false},
		{"to the next hop", "ext-slb-lan-0", "10.50.1.1", "10.50.0.1", false, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			family := "ip4"
			if strings.Contains(c.dst, ":") {
				family = "ip6"
			}
			from, to := "02:00:00:00:00:99", nb.mac(t, "slb-lan-0-ext")
			if c.forwarded {
				from, to = to, from
			}
			out := sb.trace(t, "slb-lan", fmt.Sprintf("inport == %q && eth.src == %s && eth.dst == %s && %s.src == %s && "+
				"%s.dst == %s && ip.ttl == 255 && udp.src == 50000 && udp.dst == 3784",
				c.inport, from, to, family, c.src, family, c.dst))
			if handled := strings.Contains(out, "handle_bfd_msg"); handled != c.handled {
				t.Errorf("taken for a packet of a BFD session: %t\n%s", handled, out)
			}
			if forwarded := strings.Contains(out, `output to "slb-lan-localnet"`); forwarded != c.forwarded {
				t.Errorf("forwarded: %t\n%s", forwarded, out)
			}
		})
	}
}
