// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Segment is a layer 2 network: a bridge in the switch namespace, with one subnet per address family.
type Segment struct {
	// Bridge is the bridge in the switch namespace. It is a Linux bridge, or an Open vSwitch bridge if Wire is set.
	// Several segments share an Open vSwitch bridge and are separated by VLAN.
	Bridge string
	Wire   bool
	// VLAN is the 802.1Q tag that nodes see on the wire, 0 for untagged. Other ports receive the packets untagged.
	VLAN int
	// MTU of the links attached to the segment, in bytes.
	MTU int
	// Subnets has the IPv4 subnet first, then the IPv6 subnet if the segment has one.
	Subnets []netip.Prefix
}

// Management carries the connections of nodes to the OVN databases and the API server.
func Management() Segment { return segment("mgmt", 1500, "172.31.0.0/24") }

// Underlay carries Geneve between nodes. Its MTU leaves room for a pod packet of 1400 bytes and for encapsulating the
// packet of a VIP twice.
func Underlay() Segment { return segment("underlay", 2000, "172.32.0.0/24") }

// LAN is the network of the nodes, physical network "physnet" on br-ex.
func LAN() Segment { return segment("lan", 1500, "172.18.0.0/24", "fd00:18::/64") }

// Provider is a dedicated segment for load balancer addresses, physical network "provider" on br-provider.
func Provider() Segment { return segment("provider", 1500, "10.50.0.0/24", "fd00:50::/64") }

// DMZ is a second provider network, physical network "dmz" on br-dmz. The first node is not attached to it.
func DMZ() Segment { return onWire(segment("br-dmz", 1500, "10.60.0.0/24", "fd00:60::/64"), 0) }

// Tagged is a VLAN on the wire of DMZ.
func Tagged() Segment { return onWire(segment("br-dmz", 1500, "10.70.0.0/24", "fd00:70::/64"), 20) }

func onWire(s Segment, vlan int) Segment {
	s.Wire, s.VLAN = true, vlan
	return s
}

// Beyond is the segment behind the router.
func Beyond() Segment { return segment("beyond", 1500, "198.51.100.0/24", "fd00:98::/64") }

func segment(bridge string, mtu int, subnets ...string) Segment {
	s := Segment{Bridge: bridge, MTU: mtu}
	for _, text := range subnets {
		s.Subnets = append(s.Subnets, netip.MustParsePrefix(text))
	}
	return s
}

// Host returns the n-th address of each subnet, with the subnet's length: 172.18.0.11/24 and fd00:18::b/64 for 11.
func (s Segment) Host(n int) []netip.Prefix { return hosts(s.Subnets, n) }

// Router returns the addresses of the router on the segment.
func (s Segment) Router() []netip.Addr { return addrsOf(s.Host(routerHost)) }

// Host numbers of the fixed hosts. For readability, the clients have the same digits in both families.
const (
	routerHost  = 1
	centralHost = 250
	nodeHosts   = 10 // Node i is host 10+i of the LAN.
	maxNodes    = 100
)

// clientHosts returns the host numbers of the client on its segment, by family.
func clientHosts() []int { return []int{200, 0x200} }

// ClientAddresses returns the addresses of the client on the served segment.
func (l *Lab) ClientAddresses() []netip.Addr {
	var own []netip.Addr
	for i, n := range clientHosts() {
		own = append(own, l.state.Network.Served().Host(n)[i].Addr())
	}
	return own
}

// DMZAddresses returns the addresses of the client on the DMZ segment.
func DMZAddresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("10.60.0.200"), netip.MustParseAddr("fd00:60::200")}
}

// TaggedAddresses returns the addresses of the client on the Tagged segment.
func TaggedAddresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("10.70.0.200"), netip.MustParseAddr("fd00:70::200")}
}

// RemoteAddresses returns the addresses of the client behind the router.
func RemoteAddresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("198.51.100.10"), netip.MustParseAddr("fd00:98::10")}
}

// The networks of the cluster are OVN-Kubernetes' defaults.
func clusterSubnets() []netip.Prefix { return prefixes("10.244.0.0/16", "fd00:10:244::/48") }
func serviceSubnets() []netip.Prefix { return prefixes("10.96.0.0/16", "fd00:10:96::/112") }
func joinSubnets() []netip.Prefix    { return prefixes("100.64.0.0/16", "fd98::/64") }
func transitSubnets() []netip.Prefix { return prefixes("100.88.0.0/16", "fd97::/64") }

// masqueradeSubnets returns the subnets that OVN-Kubernetes uses between a node and OVN. They are the same on every
// node.
func masqueradeSubnets() []netip.Prefix { return prefixes("169.254.169.0/29", "fd69::/125") }

// MasqueradeAddresses returns the masquerade addresses that a node routes to OVN through its management port.
func MasqueradeAddresses() []netip.Addr { return addrsOf(hosts(masqueradeSubnets(), 3)) }

// masqueradeHairpin returns the source addresses of load balancer hairpin traffic.
func masqueradeHairpin() []netip.Addr { return addrsOf(hosts(masqueradeSubnets(), 5)) }

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// hosts adds n to the network address of each prefix and keeps the prefix length.
func hosts(subnets []netip.Prefix, n int) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(subnets))
	for _, subnet := range subnets {
		raw := subnet.Masked().Addr().AsSlice()
		tail := raw[len(raw)-4:]
		binary.BigEndian.PutUint32(tail, binary.BigEndian.Uint32(tail)+uint32(n))
		addr, _ := netip.AddrFromSlice(raw)
		out = append(out, netip.PrefixFrom(addr, subnet.Bits()))
	}
	return out
}

// ovnMAC returns the MAC address that OVN-Kubernetes derives from an IPv4 address: 0a:58 followed by its four bytes.
func ovnMAC(addr netip.Addr) string {
	b := addr.As4()
	return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// Node describes a node. Its names and addresses follow from its index.
type Node struct {
	// Index counts from 1.
	Index int
	// Name is n1, n2, ...
	Name string
	// Chassis is the name of the OVN chassis, which is the system-id of the node's Open vSwitch.
	Chassis string
	// ID is the cluster-wide number of the node in OVN-Kubernetes, from which Join and Transit follow.
	ID int
	// PodSubnets, LAN, Join and Transit have IPv4 first, then IPv6. LAN and Join are addresses of GR_<node>, and Transit
	// those of its zone on the transit switch, with the prefix length of their subnet.
	PodSubnets, LAN, Join, Transit []netip.Prefix
	// MAC is the MAC address of br-ex and therefore of GR_<node>'s external port.
	MAC string
}

func node(i int) Node {
	v4, v6 := clusterSubnets()[0].Addr().As4(), clusterSubnets()[1].Addr().As16()
	v4[2] = byte(i)
	v6[7] = byte(i)
	n := Node{
		Index:   i,
		Name:    fmt.Sprintf("n%d", i),
		Chassis: fmt.Sprintf("chassis-n%d", i),
		LAN:     LAN().Host(nodeHosts + i),
		MAC:     fmt.Sprintf("02:42:ac:12:00:%02x", nodeHosts+i),
	}
	// In OVN-Kubernetes the cluster router has number 1.
	n.take(given{ID: i + 1, PodSubnets: []netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4(v4), 24),
		netip.PrefixFrom(netip.AddrFrom16(v6), 64),
	}})
	return n
}

// given holds what OVN-Kubernetes assigns to a node.
type given struct {
	// PodSubnets is the same as in Node.
	PodSubnets []netip.Prefix `json:"podSubnets"`
	// ID is the same as in Node.
	ID int `json:"id"`
}

func (n *Node) take(g given) {
	n.PodSubnets, n.ID = g.PodSubnets, g.ID
	n.Join, n.Transit = hosts(joinSubnets(), g.ID), hosts(transitSubnets(), g.ID)
}

// OnDMZ reports whether the node is attached to the physical network "dmz". All nodes but the first are.
func (n Node) OnDMZ() bool { return n.Index > 1 }

// gateway returns the addresses of the cluster router on the node's switch. mp0 returns those of the node.
func (n Node) gateway() []netip.Prefix { return hosts(n.PodSubnets, 1) }
func (n Node) mp0() []netip.Prefix     { return hosts(n.PodSubnets, 2) }

// PodGateways returns the addresses of the cluster router on the node's switch.
func (n Node) PodGateways() []netip.Addr { return addrsOf(n.gateway()) }

// ManagementPort returns the node's own addresses in its pod subnets, from which the node connects to pods.
func (n Node) ManagementPort() []netip.Addr { return addrsOf(n.mp0()) }

// firstPod is the host number of the first pod: 10.244.<i>.3 follows the gateway and mp0.
const firstPod = 3

// withLengthOf gives each address the prefix length of the subnet that contains it.
func withLengthOf(subnets []netip.Prefix, addrs []netip.Addr) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(addrs))
	for _, addr := range addrs {
		for _, subnet := range subnets {
			if subnet.Contains(addr) {
				out = append(out, netip.PrefixFrom(addr, subnet.Bits()))
			}
		}
	}
	return out
}

// addrsOf strips the prefix lengths.
func addrsOf(prefixes []netip.Prefix) []netip.Addr {
	out := make([]netip.Addr, 0, len(prefixes))
	for _, p := range prefixes {
		out = append(out, p.Addr())
	}
	return out
}
