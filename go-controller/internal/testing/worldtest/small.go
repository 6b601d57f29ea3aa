// SPDX-License-Identifier: Apache-2.0

package worldtest

import (
	"fmt"
	"net/netip"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Small returns a snapshot with a pool of a few addresses, a domain of three nodes, and Services with one backend each.
func Small(addresses int, services ...*world.Service) *world.Snapshot {
	first := netip.MustParseAddr("10.50.0.100")
	last := first
	for range addresses - 1 {
		last = last.Next()
	}
	w := &world.Snapshot{
		Pools: []*world.Pool{{Name: "lan", AutoAssign: true, Ranges: []netipx.IPRange{netipx.IPRangeFrom(first, last)}}},
		Domains: []*world.Domain{{
			Name: "lan", Pools: []string{"lan"}, Nodes: []string{"n1", "n2", "n3"}, PhysicalNetwork: "physnet", Shards: 1,
			Subnets: []world.Subnet{{Prefix: netip.MustParsePrefix("10.50.0.0/24"), Gateway: netip.MustParseAddr("10.50.0.1")}},
		}},
		Services: services,
	}
	for i := 1; i <= 3; i++ {
		pods := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i - 1), 0}), 24)
		w.Nodes = append(w.Nodes, &world.Node{Name: fmt.Sprintf("n%d", i), Chassis: fmt.Sprintf("chassis-%d", i),
			PodSubnets: []netip.Prefix{pods}})
	}
	return w
}

// Service returns a Service with one port and one backend. age is its creation time in seconds.
func Service(key world.Key, age int) *world.Service {
	port := world.Port{Name: "http", Protocol: world.TCP, Port: 80}
	backend := netip.AddrFrom4([4]byte{10, 244, 0, byte(age)})
	return &world.Service{
		Key: key, UID: key.Name, Created: time.Unix(int64(age), 0), Families: []world.Family{world.IPv4},
		Ports: []world.Port{port},
		Slices: []*world.Slice{{Family: world.IPv4, Ports: []world.Port{port},
			Endpoints: []world.Endpoint{{Addr: backend, Ready: true, Serving: true}}}},
	}
}

// OnBrEx returns a small snapshot whose domain is on the bridge of OVN-Kubernetes' own gateway, in local gateway mode.
// Each node has a guard that has not reported a port yet.
func OnBrEx(services ...*world.Service) *world.Snapshot {
	w := Small(5, services...)
	w.Now = time.Unix(1000, 0)
	w.Bridges = map[string]world.Bridges{}
	for _, n := range w.Nodes {
		n.GatewayBridge, n.Localnets = "br-ex", map[string]world.Localnet{}
		w.Bridges[n.Chassis] = world.Bridges{"physnet": "br-ex"}
	}
	return w
}

// ReportStale makes the guard of a node report OVN's port and stale flows that keep requests for some addresses from
// it.
func ReportStale(n *world.Node, stale ...string) {
	is := world.Localnet{Bridge: "br-ex"}
	for _, a := range stale {
		is.Stale = append(is.Stale, netip.MustParseAddr(a))
	}
	n.Localnets = map[string]world.Localnet{"slb-lan-localnet": is}
}
