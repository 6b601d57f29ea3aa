// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Service is what one Service needs from any dataplane. Listeners and VIPs are sorted. Two equivalent plans are equal
// by value.
type Service struct {
	Key       world.Key
	VIPs      []VIP
	Listeners []Listener
	// Excess is the limit that the Service exceeds. Then there are no Listeners: a part of them would serve some clients
	// and not others.
	Excess Excess
	// Unreachable are the endpoints that would take traffic but can't be reached: they are on no known node, or their
	// replies would not return through the shard. Sorted and distinct.
	Unreachable []netip.Addr
	// SessionAffinity means sessionAffinity: ClientIP. All connections of a client go to one backend.
	SessionAffinity bool
	// ConnectionsMayEnd means that connections need not continue when the shard moves, so that a new one needs no flow of
	// its own in the datapath.
	ConnectionsMayEnd bool
	// SourceRanges are those of world.Service.
	SourceRanges map[world.Family][]netip.Prefix
}

// VIP is an address of a Service and its shard.
type VIP struct {
	Addr  netip.Addr
	Shard world.ShardID
	// EgressMAC is the MAC address of the host that gets the replies to connections that pods open from the address, in
	// lower case; empty if pods open none.
	EgressMAC string
}

// Listener is one address, protocol and port of a Service with its backends. Without backends, connections are
// refused.
type Listener struct {
	VIP      netip.Addr
	Protocol world.Protocol
	Port     uint16
	// Backends take new connections. They are sorted and distinct.
	Backends []Backend
	// Draining are the other endpoints in the slices. They take no new connections, but their existing ones continue
	// until the endpoint is removed from the slices. They are sorted and distinct, and not in Backends. They include
	// endpoints that were never ready, because a slice does not distinguish these.
	Draining []Backend
}

// ListenersFor returns the listeners of an address.
func (s *Service) ListenersFor(vip netip.Addr) []Listener {
	compare := func(l Listener, a netip.Addr) int { return l.VIP.Compare(a) }
	start, _ := slices.BinarySearchFunc(s.Listeners, vip, compare)
	rest := s.Listeners[start:]
	if end := slices.IndexFunc(rest, func(l Listener) bool { return l.VIP != vip }); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// Only returns the plan reduced to the addresses for which keep returns true, with their listeners.
func (s *Service) Only(keep func(VIP) bool) *Service {
	out, kept := *s, make(map[netip.Addr]bool, len(s.VIPs))
	out.VIPs = nil
	for _, v := range s.VIPs {
		if keep(v) {
			out.VIPs, kept[v.Addr] = append(out.VIPs, v), true
		}
	}
	// A Service may have thousands of addresses and of listeners: they are not compared one by one.
	out.Listeners = slices.DeleteFunc(slices.Clone(s.Listeners), func(l Listener) bool { return !kept[l.VIP] })
	return &out
}

// Backend is an endpoint and the node it runs on.
type Backend struct {
	Addr netip.AddrPort
	Node string
	// HostNetwork is set if the address is the node's own. Such a backend does not see client addresses.
	HostNetwork bool
}

// Topology is the base topology of the Services: segments, shards and their gateways.
type Topology struct {
	Cluster world.Cluster
	// Nodes are the nodes with a known chassis, sorted by name.
	Nodes []Node
	// Domains are sorted by name.
	Domains []Domain
	// Zone is the part of the topology that the database holds, in a cluster with interconnect. It is nil if one
	// database configures the whole cluster.
	Zone *Zone
}

// Zone is the node whose databases are to be written, in a cluster with interconnect: there each node has its own
// databases and configures only itself.
type Zone struct {
	Node, Chassis string
	// Boot is the ID of the present boot of the node, different after each boot, or empty if it is unknown.
	Boot string
}

// Domain is a segment with its shards. Shards without a VIP have no anchors and need no rows.
type Domain struct {
	Name             string
	PhysicalNetwork  string
	VLAN             int
	Subnets          []world.Subnet
	Detect           time.Duration
	DetectMultiplier int
	// Announce is the time after which the active gateway of a shard repeats its announcement, 0 for never.
	Announce time.Duration
	Shards   []Shard
	// Residents are the chassis on which the domain's switch has a port to the bridge for the whole life of the
	// domain, whether they are active gateways or not: those where that bridge is the one of OVN-Kubernetes' own
	// gateway.
	Residents []string
}

const (
	localnetPrefix = "slb-"
	localnetSuffix = "-localnet"
)

// LocalnetPort returns the name of the localnet port of a domain.
func LocalnetPort(domain string) string { return localnetPrefix + domain + localnetSuffix }

// DomainOfLocalnetPort is the inverse of LocalnetPort.
func DomainOfLocalnetPort(name string) (domain string, ok bool) {
	domain, prefixed := strings.CutPrefix(name, localnetPrefix)
	domain, suffixed := strings.CutSuffix(domain, localnetSuffix)
	return domain, prefixed && suffixed
}

// IsLocalnetPort reports whether name has the form that LocalnetPort returns.
func IsLocalnetPort(name string) bool {
	_, ok := DomainOfLocalnetPort(name)
	return ok
}

// Shard is one unit of failover.
type Shard struct {
	ID world.ShardID
	// Gateways are in order of preference. The first one is preferred as the active gateway.
	Gateways []Gateway
	// Anchors are the VIPs, at most one per family, that serve as the router's own external addresses, with the
	// prefix length of their subnet.
	Anchors []netip.Prefix
	// Handover is the progress of a move to the first gateway.
	Handover world.Handover
	// Ordinal is the number of the shard, from 0, in a cluster with interconnect: all zones derive the addresses and
	// tunnel keys of its routers from it. Without zones, the database itself stores the ordinals.
	Ordinal int
}

// Node is a node that may have backends, with its chassis in OVN.
type Node struct {
	Name, Chassis string
	// Hosts are the node's addresses that can be backends themselves.
	Hosts []world.Host
	// PodSubnets are the subnets of the node's pods, and Transit the addresses of its zone on the transit switch, with
	// the prefix length of its subnets. They are set only in a cluster with interconnect, where the database of a zone
	// does not have them for other nodes.
	PodSubnets, Transit []netip.Prefix
}

// Gateway is a node that may become the active gateway of a shard.
type Gateway struct {
	Node, Chassis string
	// Interface is the node's own interface on the segment if the node answers instead of OVN (OpenShift SDN).
	Interface string
	// SharedBridge is set if the node has the domain on the bridge of OVN-Kubernetes' own gateway, in shared mode.
	// Packets for addresses of Services then arrive at the external switch of the node (ExternalSwitchPrefix in package
	// rows). In a zone it is set for the node of the zone only.
	SharedBridge bool
}
