// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"time"
)

// Domain is one physical layer 2 segment.
type Domain struct {
	Name    string
	Created time.Time
	// Pools are the names of the pools whose addresses are on this segment. Nodes are the names of the nodes that the
	// selectors match. The reader of the API object has resolved both.
	Pools, Nodes []string
	// Services match the labels of the announced Services. Empty announces all.
	Services []Selector
	// PhysicalNetwork is the network name of ovn-bridge-mappings.
	PhysicalNetwork string
	// VLAN is the 802.1Q tag, 0 for none.
	VLAN    int
	Subnets []Subnet
	// MaxGateways is the limit on the gateways of a shard, 0 for no limit.
	MaxGateways int
	// Shards is the number of failover units, 0 for the default.
	Shards int
	// Preferred are preferences among the nodes.
	Preferred []Preference
	// Detect is the BFD interval between gateways. DetectMultiplier is the number of packets that may be missed.
	Detect           time.Duration
	DetectMultiplier int
	// Preempt lets a gateway that returns reclaim its shards, and a more preferred one take over others.
	Preempt bool
	// Recovering are the nodes, with Preempt, to which no shard returns yet: they had a fault, or were excluded, a short
	// while ago, or still are.
	Recovering []string
	// RecentlyStale are the gateways with flows of OVN-Kubernetes that kept requests from OVN a short while ago, or still
	// do, and until when that counts if the flows end now.
	RecentlyStale map[string]time.Time
	// Announce is the time after which gateways repeat the announcement of a shard, 0 for never.
	Announce time.Duration
	// Anchors maps the index of each shard to its external addresses, as in the status of the domain. Ordinals are the
	// shards' ordinals there, in a cluster with interconnect.
	Anchors  map[int][]netip.Addr
	Ordinals map[int]int
	// Gateways are the nodes of each shard in order of preference, as in the status of the domain. Active is the active
	// one of each shard that has one there. A change of Active alone does not renew the domain: a new controller needs it.
	Gateways map[int][]string
	Active   map[int]string
	// Move is the request to move shards, nil without one. Moved is the progress of the last request.
	Move  *MoveRequest
	Moved MoveResult
	// Served is the mode in the status of the domain: gateways may still answer that were programmed in it.
	Served   ServingMode
	Problems []string
}

// Preference adds Weight to how much a domain prefers each of Nodes, by name.
type Preference struct {
	Weight int
	Nodes  []string
}

// Subnet is a subnet of a segment. Gateway is its next hop, the zero Addr for none.
type Subnet struct {
	Prefix  netip.Prefix
	Gateway netip.Addr
}
