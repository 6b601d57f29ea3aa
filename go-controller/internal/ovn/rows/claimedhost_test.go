// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A kubelet can report the address of another node as its own, and a mirror Pod with hostNetwork, that address and a
// port that an endpoint there has. OVN uses either of two policies with one priority and match.
func TestNodeThatReportsTheAddressOfAnotherGetsNoneOfItsPackets(t *testing.T) {
	host := world.Host{Addr: netip.MustParseAddr("172.18.0.11"), Masquerade: netip.MustParseAddr("169.254.169.3")}
	oldest := time.Unix(0, 0)
	nodes := []*world.Node{
		{Name: "n0", Chassis: "c0", Hosts: []world.Host{host}, Created: oldest.AddDate(0, 0, 1)},
		{Name: "n1", Chassis: "c1", Hosts: []world.Host{host}, Created: oldest},
	}
	hostsOf := world.HostsOf(nodes)
	var f plan.Topology
	f.Cluster = world.Cluster{ID: "c", ClusterSubnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}}
	facts := rows.Facts{Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16")}, Nodes: map[string]rows.NodeFacts{}}
	for i, n := range nodes {
		f.Nodes = append(f.Nodes, plan.Node{Name: n.Name, Chassis: n.Chassis, Hosts: hostsOf(n)})
		facts.Nodes[n.Name] = rows.NodeFacts{
			Subnets: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24)},
			Join:    []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, byte(i + 2)}), 16)},
		}
	}
	id := world.ShardID{Domain: "lan"}
	f.Domains = []plan.Domain{{Name: "lan", PhysicalNetwork: "physnet",
		Subnets: []world.Subnet{{Prefix: netip.MustParsePrefix("10.50.0.0/24")}},
		Shards: []plan.Shard{{ID: id, Gateways: []plan.Gateway{{Node: "n1", Chassis: "c1"}},
			Anchors: []netip.Prefix{netip.MustParsePrefix("10.50.0.9/24")}}}}}
	b, err := rows.NewBuilder(&f, facts)
	if err != nil {
		t.Fatal(err)
	}
	backends := []rows.ShardBackend{{Shard: id, Addr: host.Addr, HostNetwork: true,
		Port: rows.Port{Protocol: world.TCP, Number: 443}}}
	var hops []string
	for _, n := range nodes {
		for _, r := range b.NodeRows(n.Name, backends, func(string) map[string]string { return nil }) {
			match, _ := r.Columns["match"].(string)
			if r.Table == rows.Policy && strings.Contains(match, "ip4.dst == "+host.Addr.String()) {
				hop, _ := r.Columns["nexthops"].([]string)
				hops = append(hops, hop...)
			}
		}
	}
	if got := strings.Join(hops, " "); got != "10.244.1.2" {
		t.Errorf("policies for packets to %s have the next hops %s, want 10.244.1.2, that of the oldest node", host.Addr, got)
	}
}
