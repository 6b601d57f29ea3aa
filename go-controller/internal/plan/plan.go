// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Service is what one Service needs from any dataplane. Listeners and VIPs are sorted;
// two plans that ask for the same are equal by value.
type Service struct {
	Key       world.Key
	VIPs      []VIP
	Listeners []Listener
	// Beyond is how many backends the Listeners would have (at least one each), if that is more than
	// world.Cluster.MaxBackends. Then there are no Listeners: a part of them would serve some clients and not others.
	Beyond int
	// Outside are the endpoints that would take traffic, but are out of reach: on no node that is known,
	// or their replies would not come back by the shard. Sorted and distinct.
	Outside []netip.Addr
	// ClientAffinity sends all connections of a client to one backend.
	ClientAffinity bool
	// Sources are the clients that addresses of a family are asked by; those of a family
	// without an entry admit everyone, with an empty one nobody.
	Sources map[world.Family][]netip.Prefix
}

// VIP is an address of a Service and the shard that carries it.
type VIP struct {
	Addr  netip.Addr
	Shard world.ShardID
}

// Listener is one address, protocol and port that a Service answers on, with the
// backends behind it. No backends: connections are refused.
type Listener struct {
	VIP      netip.Addr
	Protocol world.Protocol
	Port     uint16
	// Backends take new connections. They are sorted and distinct.
	Backends []Backend
	// Draining are the other endpoints in the slices: they take no new connections, but those that they have
	// continue until the endpoint leaves the slices. They are sorted and distinct, and none of Backends. What was
	// never ready is among them, for a slice does not tell it from what was.
	Draining []Backend
}

// At are the listeners of an address.
func (s *Service) At(vip netip.Addr) []Listener {
	compare := func(l Listener, a netip.Addr) int { return l.VIP.Compare(a) }
	start, _ := slices.BinarySearchFunc(s.Listeners, vip, compare)
	rest := s.Listeners[start:]
	if end := slices.IndexFunc(rest, func(l Listener) bool { return l.VIP != vip }); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// Backend is an endpoint and the node it runs on.
type Backend struct {
	Addr netip.AddrPort
	Node string
	// Host: the address is the node's own. Its clients are hidden.
	Host bool
}

// Fabric is the ground that Services stand on: segments, shards and their gateways.
type Fabric struct {
	Cluster world.Cluster
	// Nodes are those whose chassis is known, sorted by name.
	Nodes []Node
	// Domains are sorted by name.
	Domains []Domain
}

// Domain is a segment with its shards; shards without a VIP have no anchors and need no rows.
type Domain struct {
	Name             string
	PhysicalNetwork  string
	VLAN             int
	Subnets          []world.Subnet
	Detect           time.Duration
	DetectMultiplier int
	Shards           []Shard
	// Residents are the chassis on which the domain's switch has a port to the bridge for the whole life of the domain,
	// whether they carry an address or not: those where that is the bridge of OVN-Kubernetes' own gateway.
	Residents []string
}

const (
	localnetPrefix = "slb-"
	localnetSuffix = "-localnet"
)

// LocalnetPort is the name of the localnet port of a domain.
func LocalnetPort(domain string) string { return localnetPrefix + domain + localnetSuffix }

// IsLocalnetPort reports whether a port has a name that LocalnetPort returns.
func IsLocalnetPort(name string) bool {
	return strings.HasPrefix(name, localnetPrefix) && strings.HasSuffix(name, localnetSuffix)
}

// Shard is one unit of failover.
type Shard struct {
	ID world.ShardID
	// Gateways by falling preference; the first is to be active.
	Gateways []Gateway
	// Anchors are the VIPs, at most one a family, that serve as the router's own
	// external addresses, with the prefix length of their subnet.
	Anchors []netip.Prefix
	// Handover is how far a move to the first gateway has come.
	Handover world.Handover
}

// Node is a node that may have backends, and its chassis in OVN.
type Node struct {
	Name, Chassis string
	// Hosts are its addresses that can be backends themselves.
	Hosts []world.Host
}

// Gateway is a node that may carry a shard. Interface is the node's own on the segment, where
// it is not OVN that answers (OpenShift SDN).
type Gateway struct{ Node, Chassis, Interface string }
