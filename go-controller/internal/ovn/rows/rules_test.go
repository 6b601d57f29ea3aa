// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/rowtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// everything returns the rows of a topology with hostile names and a Service.
func everything(t *testing.T) []rows.Row {
	t.Helper()
	var f plan.Topology
	host := []netip.Addr{netip.MustParseAddr("172.18.0.11"), netip.MustParseAddr("fd00:18::b")}
	f.Nodes = []plan.Node{{Name: "n1", Chassis: "c1", Hosts: []world.Host{
		{Addr: host[0], Masquerade: netip.MustParseAddr("169.254.169.3")},
		{Addr: host[1], Masquerade: netip.MustParseAddr("fd69::3")},
	}}}
	f.Cluster = world.Cluster{ID: "c", ClusterSubnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"),
		netip.MustParsePrefix("fd00:10:244::/48")}}
	var out []rows.Row
	var services []*plan.Service
	for i, name := range []string{"ext-lan", "gr-n1", "exgw-ext-n1", "1", "a.b-0", strings.Repeat("d", 253)} {
		d := plan.Domain{Name: name, PhysicalNetwork: "physnet", Detect: time.Second, DetectMultiplier: 3,
			Subnets: []world.Subnet{
				{Prefix: netip.MustParsePrefix("10.50.0.0/16"), Gateway: netip.MustParseAddr("10.50.0.1")},
				{Prefix: netip.MustParsePrefix("fd00:50::/64"), Gateway: netip.MustParseAddr("fd00:50::1")},
			}}
		vips := []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 1, byte(i)}),
			netip.MustParseAddr(fmt.Sprintf("fd00:50::%d", i+2))}
		s := plan.Shard{ID: world.ShardID{Domain: name}, Gateways: []plan.Gateway{{Node: "n1", Chassis: "c1"}},
			Anchors: []netip.Prefix{netip.PrefixFrom(vips[0], 16), netip.PrefixFrom(vips[1], 64)}}
		d.Shards = []plan.Shard{s}
		f.Domains = append(f.Domains, d)
		p := &plan.Service{Key: world.Key{Namespace: "ext_", Name: "GR_n1"}, SourceRanges: map[world.Family][]netip.Prefix{
			world.IPv4: {netip.MustParsePrefix("192.0.2.0/24")}, world.IPv6: nil,
		}}
		for i, vip := range vips {
			p.VIPs = append(p.VIPs, plan.VIP{Addr: vip, Shard: s.ID})
			backend := netip.AddrPortFrom(netip.MustParseAddr("10.244.1.1"), 8080)
			if vip.Is6() {
				backend = netip.AddrPortFrom(netip.MustParseAddr("fd00:10:244::1"), 8080)
			}
			for _, protocol := range []world.Protocol{world.TCP, world.UDP, world.SCTP} {
				p.Listeners = append(p.Listeners, plan.Listener{VIP: vip, Protocol: protocol, Port: 80, Backends: []plan.Backend{
					{Addr: backend, Node: "n1"}, {Addr: netip.AddrPortFrom(host[i], 8080), Node: "n1", HostNetwork: true},
				}})
			}
		}
		services = append(services, p)
	}
	g, err := rows.NewBuilder(&f, rows.Facts{
		Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16"), netip.MustParsePrefix("fd98::1/64")},
		Nodes: map[string]rows.NodeFacts{"n1": {
			Subnets: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd00:10:244::/64")},
			Join:    []netip.Prefix{netip.MustParsePrefix("100.64.0.2/16"), netip.MustParsePrefix("fd98::2/64")},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, builder(g)...)
	var backends []rows.ShardBackend
	for _, p := range services {
		balancers, err := g.Service(p, func(string) map[string]string { return nil })
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, balancers...)
		rows.ForEachBackend(p, func(_ string, b rows.ShardBackend) { backends = append(backends, b) })
	}
	return append(out, g.NodeRows("n1", backends, func(string) map[string]string { return nil })...)
}

// Rows must not match what OVN-Kubernetes deletes, adopts or overwrites. Each case is one rule.
func TestOVNKubernetesKeepsOurRows(t *testing.T) {
	taken := func(name string) bool {
		return strings.HasPrefix(name, "ext_") || strings.HasPrefix(name, "GR_") || strings.HasPrefix(name, "exgw-ext_")
	}
	node := regexp.MustCompile(`^[^_]*_`) // <bridge>_<node>, for any node
	for what, holds := range map[string]func(rows.Row) bool{
		"stale load balancer cleanup: k8s.ovn.org/kind is not set": func(r rows.Row) bool {
			_, set := r.ExternalIDs()["k8s.ovn.org/kind"]
			return !set
		},
		"network cleanup: network and role are not set": func(r rows.Row) bool {
			_, network := r.ExternalIDs()["k8s.ovn.org/network"]
			_, role := r.ExternalIDs()["k8s.ovn.org/role"]
			return !network && !role
		},
		"syncers adopt rows without an owner": func(r rows.Row) bool {
			ids := r.ExternalIDs()
			return ids[rows.KeyController] == rows.Controller && ids[rows.KeyOwnerType] != "" &&
				ids[rows.KeyPrimaryID] == r.ID && strings.HasPrefix(r.ID, "ovnkube-slb:"+ids[rows.KeyOwnerType]+":")
		},
		"load balancers name their Service or node": func(r rows.Row) bool {
			ids := r.ExternalIDs()
			return r.Table != rows.LoadBalancer || ids[rows.KeyService] != "" || ids[rows.KeyNode] != ""
		},
		"switches and routers of nodes go by name":     func(r rows.Row) bool { return !taken(r.Name()) },
		"unknown switches with other_config are stale": func(r rows.Row) bool { return r.Columns["other_config"] == nil },
		"localnet ports are found by <bridge>_<node>": func(r rows.Row) bool {
			return r.Table != rows.SwitchPort || !node.MatchString(r.Name())
		},
		"reject ACLs are stripped": func(r rows.Row) bool {
			return r.Table != rows.ACL || r.Columns["action"] != "reject"
		},
		"conntrack does not run for ACLs": func(r rows.Row) bool {
			return r.Table != rows.ACL || r.Columns["action"] == "drop" || r.Columns["action"] == "allow-stateless"
		},
		"routes with ecmp_symmetric_reply are its own": func(r rows.Row) bool {
			return r.Table != rows.StaticRoute || r.Columns["options"] == nil
		},
		"policy priorities in use are left free": func(r rows.Row) bool {
			return r.Table != rows.Policy || slices.Contains([]any{699, 700, 1010, 1011, 1012}, r.Columns["priority"])
		},
		// What comes back from the node's router has another inport: policies that name this one no longer apply.
		"only packets of backends, or of the node itself, leave the pods' switch another way": func(r rows.Row) bool {
			match, _ := r.Columns["match"].(string)
			return r.Table != rows.Policy || r.Columns["action"] != "reroute" ||
				!strings.Contains(match, rows.PodPortPrefix) || strings.Contains(match, ".src == $slb_backends_") ||
				regexp.MustCompile(`ip[46]\.src == [0-9a-f.:]+ `).MatchString(match)
		},
		"HA priorities are positive": func(r rows.Row) bool {
			p, ok := r.Columns["priority"].(int)
			return !ok || p >= 1
		},
		"MAC addresses are locally administered, single": localMAC,
		"columns of others' rows are overwritten, but for these sets": func(r rows.Row) bool {
			if strings.HasPrefix(r.Parent.Name, "slb") {
				return true // a row we own
			}
			return slices.Contains([]rows.ParentRef{
				{}, {Table: rows.Switch, Column: "ports", Name: rows.JoinSwitch},
				{Table: rows.Router, Column: "static_routes", Name: rows.ClusterRouter},
				{Table: rows.Router, Column: "policies", Name: rows.ClusterRouter},
			}, r.Parent)
		},
		"with a node go routes and policies to its gateway router": func(r rows.Row) bool {
			hop, _ := r.Columns["nexthop"].(string)
			hops, _ := r.Columns["nexthops"].([]string)
			gone := func(hop string) bool { return hop == "100.64.0.2" || hop == "fd98::2" }
			return !gone(hop) && !slices.ContainsFunc(hops, gone)
		},
	} {
		t.Run(what, func(t *testing.T) {
			for _, r := range everything(t) {
				if !holds(r) {
					t.Errorf("%s %s: %v", r.Table, r.ID, r.Columns)
				}
			}
		})
	}
}

func localMAC(r rows.Row) bool {
	mac, ok := r.Columns["mac"].(string)
	return !ok || regexp.MustCompile(`^[0-9a-f][26ae](:[0-9a-f]{2}){5}$`).MatchString(mac)
}

// Names and IDs are unique within their tables. Logical ports of switches and routers share one namespace.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]rows.Row{}
	for _, r := range everything(t) {
		table := strings.TrimPrefix(r.Table, "Logical_Switch_")
		table = strings.TrimPrefix(table, "Logical_Router_")
		for _, key := range []string{table + " name " + r.Name(), r.Table + " id " + r.ID} {
			if other, ok := seen[key]; ok && !strings.HasSuffix(key, " name ") &&
				rowtest.Value(other.Columns) != rowtest.Value(r.Columns) {
				t.Errorf("%s: %s and %s", key, other.ID, r.ID)
			}
			seen[key] = r
		}
	}
}

// Priorities stay distinct and descending if there are more gateways than steps of ten.
func TestManyGateways(t *testing.T) {
	s := plan.Shard{ID: world.ShardID{Domain: "lan"}, Anchors: []netip.Prefix{netip.MustParsePrefix("10.50.0.5/24")}}
	for i := range 2000 {
		s.Gateways = append(s.Gateways, plan.Gateway{Chassis: fmt.Sprint("c", i)})
	}
	f := plan.Topology{Domains: []plan.Domain{{Name: "lan", Shards: []plan.Shard{s}}}}
	g, err := rows.NewBuilder(&f, rows.Facts{Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16")}})
	if err != nil {
		t.Fatal(err)
	}
	var priorities []int
	for _, r := range builder(g) {
		if r.Table == rows.HAChassis {
			priorities = append(priorities, r.Columns["priority"].(int))
		}
	}
	slices.Reverse(priorities)
	if len(slices.Compact(slices.Clone(priorities))) != 2000 || !slices.IsSorted(priorities) || priorities[0] < 1 ||
		priorities[1999] > 32767 {
		t.Errorf("%d priorities from %d to %d", len(priorities), priorities[1999], priorities[0])
	}
}
