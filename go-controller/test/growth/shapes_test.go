// SPDX-License-Identifier: Apache-2.0

package growth

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// shapes are the inputs that a tenant can make large: n is how large. Each is what the tenant creates beside the
// Services of others, and then changes.
// Shapes that need a cluster of their own, which clusters changes.
const (
	localOnBrEx       = "addresses of a Service on br-ex with externalTrafficPolicy: Local"
	withInterconnect  = "addresses of a Service with interconnect"
	localOnKernels    = "addresses of a Service with OpenShift SDN and externalTrafficPolicy: Local"
	advertisedWithBGP = "addresses of a Service that BGP advertises"
	dualStack         = "addresses of a Service of both families"
	dualStackWithBGP  = "addresses of a Service of both families, of which BGP advertises one"
	ownedByNode       = "addresses of a Service that a node reports as its own"
	listedByOthers    = "free addresses that Services list which do not have them"
)

var clusters = map[string]func(*world.Snapshot){
	localOnBrEx: func(w *world.Snapshot) {
		w.Bridges = map[string]world.Bridges{}
		for _, n := range w.Nodes {
			n.GatewayBridge = "br-ex"
			n.Localnets = map[string]world.Localnet{plan.LocalnetPort(w.Domains[0].Name): {Bridge: "br-ex"}}
			w.Bridges[n.Chassis] = world.Bridges{w.Domains[0].PhysicalNetwork: "br-ex"}
		}
	},
	withInterconnect: func(w *world.Snapshot) {
		w.Cluster.NoDatabase = true
		w.Applied = map[world.Key][]netip.Addr{}
		for _, n := range w.Nodes {
			n.Zone, n.Agent = n.Name, &world.ZoneAgent{}
		}
		for _, s := range w.Services {
			w.Applied[s.Key] = slices.SortedFunc(slices.Values(append(slices.Clone(s.ExternalIPs), s.Assigned...)),
				netip.Addr.Compare)
		}
	},
	localOnKernels: func(w *world.Snapshot) {
		w.Cluster.OpenShiftSDN = true
		for i, n := range w.Nodes {
			own := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 50, 0, byte(11 + i)}), 16)
			n.Chassis = n.Name
			n.Kernel = &world.Kernel{Agent: netip.AddrPortFrom(own.Addr(), 9484),
				Interfaces: map[string][]netip.Prefix{"eth0": {own}}}
		}
		for id, state := range w.ShardStates {
			state.Active = w.Nodes[0].Name
			w.ShardStates[id] = state
		}
	},
	advertisedWithBGP: func(w *world.Snapshot) {
		nodes := []string{"n1", "n2", "n3"}
		w.Peers = []*world.Peer{{Name: "router", Nodes: nodes, MyASN: 64512, PeerASN: 64513,
			Addr: netip.MustParseAddr("192.0.2.1")}}
		w.Advertisements = []*world.Advertisement{{Name: "all", EveryPool: true, Nodes: nodes, Length4: 32, Length6: 128}}
	},
	ownedByNode: func(w *world.Snapshot) {
		for _, s := range w.Services {
			w.Nodes[0].Addrs = append(w.Nodes[0].Addrs, s.ExternalIPs...)
		}
	},
	listedByOthers: func(w *world.Snapshot) {
		for _, s := range w.Services {
			for _, a := range s.ExternalIPs {
				w.Listed.Add([]netip.Prefix{netip.PrefixFrom(a, a.BitLen())})
			}
			s.ExternalIPs = nil
		}
	},
	dualStack: servesIPv6,
	dualStackWithBGP: func(w *world.Snapshot) {
		servesIPv6(w)
		nodes := []string{"n1", "n2", "n3"}
		w.Pools = append(w.Pools, &world.Pool{Name: "six", Created: w.Pools[0].Created, ExternalIPs: true,
			Ranges: w.Pools[0].Ranges[1:]})
		w.Pools[0].Ranges = w.Pools[0].Ranges[:1]
		w.Domains[0].Pools = append(w.Domains[0].Pools, "six")
		w.Peers = []*world.Peer{{Name: "router", Nodes: nodes, MyASN: 64512, PeerASN: 64513, DualStack: true,
			Addr: netip.MustParseAddr("192.0.2.1")}}
		w.Advertisements = []*world.Advertisement{{Name: "six", Pools: []string{"six"}, Nodes: nodes, Length4: 32,
			Length6: 128}}
	},
}

// servesIPv6 adds IPv6 addresses to the pool, to the segment and to the pods.
func servesIPv6(w *world.Snapshot) {
	w.Pools[0].Ranges = append(w.Pools[0].Ranges, netipx.MustParseIPRange("fd50::-fd50::ffff:ffff"))
	w.Domains[0].Subnets = append(w.Domains[0].Subnets, world.Subnet{Prefix: netip.MustParsePrefix("fd50::/64")})
	w.Cluster.ClusterSubnets = append(w.Cluster.ClusterSubnets, netip.MustParsePrefix("fd10:244::/48"))
	for i, n := range w.Nodes {
		n.PodSubnets = append(n.PodSubnets, netip.MustParsePrefix(fmt.Sprintf("fd10:244:0:%d::/64", i)))
	}
}

// externalOfBoth returns a Service with n addresses of spec.externalIPs, half of them of each family.
func externalOfBoth(n int, _ bool) []*world.Service {
	return each(1, func(_ int, s *world.Service) {
		s.Families, s.FamilyPolicy = []world.Family{world.IPv4, world.IPv6}, world.PreferDualStack
		six := *s.Slices[0]
		six.Family, six.Endpoints = world.IPv6, []world.Endpoint{{Addr: netip.MustParseAddr("fd10:244::10"), Node: "n1",
			Ready: true, Serving: true}}
		s.Slices = append(s.Slices, &six)
		a, b := netip.MustParseAddr("10.50.128.0"), netip.MustParseAddr("fd50::1:0")
		for range n / 2 {
			s.ExternalIPs = append(s.ExternalIPs, a)
			a = a.Next()
		}
		for range n / 2 {
			s.ExternalIPs = append(s.ExternalIPs, b)
			b = b.Next()
		}
	})
}

// external returns a Service with n addresses of spec.externalIPs.
func external(local bool) func(n int, _ bool) []*world.Service {
	return func(n int, _ bool) []*world.Service {
		return each(1, func(_ int, s *world.Service) {
			s.LocalPolicy = local
			s.Slices[0].Endpoints[0].Node = "n1"
			a := netip.MustParseAddr("10.50.128.0")
			for range n {
				s.ExternalIPs = append(s.ExternalIPs, a)
				a = a.Next()
			}
		})
	}
}

var shapes = map[string]func(n int, changed bool) []*world.Service{
	"Services": func(n int, _ bool) []*world.Service {
		return each(n, func(int, *world.Service) {})
	},
	"ports of Services that share an address": func(n int, _ bool) []*world.Service {
		return each(10, func(i int, s *world.Service) {
			s.SharingKey, s.Ports = "key", ports(i*n, n)
		})
	},
	"Services that share an address": func(n int, _ bool) []*world.Service {
		return each(n, func(i int, s *world.Service) {
			s.SharingKey, s.Ports = "key", ports(i, 1)
		})
	},
	"Services with one key and different pods": func(n int, _ bool) []*world.Service {
		return each(n, func(i int, s *world.Service) {
			s.SharingKey, s.Ports, s.LocalPolicy = "key", ports(i, 1), true
			s.Selector = map[string]string{"app": fmt.Sprint(i)}
		})
	},
	"Services with one key and wide selectors": func(n int, _ bool) []*world.Service {
		side := int(math.Sqrt(float64(n))) // 40n labels in all selectors together
		return each(side, func(i int, s *world.Service) {
			s.SharingKey, s.Ports, s.LocalPolicy = "key", ports(i, 1), true
			s.Selector = map[string]string{}
			for label := range 40 * side {
				s.Selector[fmt.Sprintf("label-%d-%d", i, label)] = ""
			}
		})
	},
	"Services with one key and one port": func(n int, _ bool) []*world.Service {
		return each(n, func(_ int, s *world.Service) { s.SharingKey = "key" })
	},
	"Services that request one address": func(n int, _ bool) []*world.Service {
		return each(n, func(_ int, s *world.Service) {
			s.Requested, s.RequestedBy = []netip.Addr{netip.MustParseAddr("10.50.0.100")}, "spec.loadBalancerIP"
		})
	},
	"addresses of spec.externalIPs": func(n int, _ bool) []*world.Service {
		return each(2, func(i int, s *world.Service) {
			s.SharingKey, s.Ports = "key", ports(i, 1)
			a := netip.MustParseAddr("10.50.128.0")
			for range n {
				s.ExternalIPs = append(s.ExternalIPs, a)
				a = a.Next()
			}
		})
	},
	localOnBrEx:       external(true),
	withInterconnect:  external(false),
	localOnKernels:    external(true),
	advertisedWithBGP: external(false),
	ownedByNode:       external(false),
	listedByOthers: func(n int, _ bool) []*world.Service {
		return each(n, func(i int, s *world.Service) {
			s.ExternalIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 50, byte(i >> 8), byte(i)})}
		})
	},
	dualStack:        externalOfBoth,
	dualStackWithBGP: externalOfBoth,
	"source ranges": func(n int, _ bool) []*world.Service {
		return each(3, func(_ int, s *world.Service) {
			list := make([]netip.Prefix, n)
			for i := range list {
				list[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{9, byte(i >> 7), byte(i << 1)}), 24)
			}
			s.SourceRanges = convert.MergeRanges(list)
		})
	},
	"endpoints of one port, of which half are replaced": func(n int, changed bool) []*world.Service {
		return each(1, func(_ int, s *world.Service) {
			s.Slices[0].Endpoints = endpoints(0, n)
			if changed {
				s.Slices[0].Endpoints = endpoints(n/2, n+n/2)
			}
		})
	},
	"endpoints of one port, of which every other one goes": func(n int, changed bool) []*world.Service {
		return each(1, func(_ int, s *world.Service) {
			for i, e := range endpoints(0, n) {
				if !changed || i%2 > 0 {
					s.Slices[0].Endpoints = append(s.Slices[0].Endpoints, e)
				}
			}
		})
	},
	"ports with endpoints": func(n int, _ bool) []*world.Service {
		return each(1, func(_ int, s *world.Service) {
			s.Ports, s.Slices[0].Ports = ports(0, n), ports(0, n)
		})
	},
	"EndpointSlices": func(n int, _ bool) []*world.Service {
		return each(1, func(_ int, s *world.Service) {
			slice := *s.Slices[0]
			s.Slices = nil
			for _, e := range endpoints(0, n) {
				one := slice
				one.Endpoints = []world.Endpoint{e}
				s.Slices = append(s.Slices, &one)
			}
		})
	},
}

// each returns n Services of the tenant.
func each(n int, change func(i int, s *world.Service)) []*world.Service {
	var out []*world.Service
	for i := range n {
		s := worldtest.Service(world.Key{Namespace: "tenant", Name: fmt.Sprintf("s%d", i)}, 10+i)
		change(i, s)
		out = append(out, s)
	}
	return out
}

func ports(from, n int) []world.Port {
	var out []world.Port
	for i := range n {
		out = append(out, world.Port{Name: fmt.Sprintf("p%d", from+i), Protocol: world.TCP,
			Port: uint16(1 + from + i)}) //nolint:gosec // less than 65,000
	}
	return out
}

// endpoints returns ready endpoints with the numbers from first to before end.
func endpoints(first, end int) []world.Endpoint {
	var out []world.Endpoint
	for i := first; i < end; i++ {
		out = append(out, world.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}), Node: "n1",
			Ready: true, Serving: true})
	}
	return out
}

// snapshot returns a cluster with the Services of the tenant and one of another tenant.
func snapshot(of []*world.Service) *world.Snapshot {
	w := worldtest.Small(1, append(of, worldtest.Service(world.Key{Namespace: "other", Name: "web"}, 1))...)
	w.Cluster.ClusterSubnets = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	for i, n := range w.Nodes {
		n.PodSubnets = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i << 6), 0}), 18)}
	}
	w.Pools[0].Ranges[0] = netipx.MustParseIPRange("10.50.0.0-10.50.255.254")
	w.Pools[0].ExternalIPs = true
	w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.50.0.0/16")
	w.ShardStates = map[world.ShardID]world.ShardState{}
	for i := range max(1, w.Domains[0].Shards) {
		w.ShardStates[world.ShardID{Domain: w.Domains[0].Name, Index: i}] = world.ShardState{Active: "n1",
			Order: []string{"n1"}}
	}
	return w
}
