// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"net/netip"
	"slices"
)

// Equal reports whether two plans, which may be nil, are equivalent for a dataplane.
func Equal(a, b *Service) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.Key == b.Key && a.SessionAffinity == b.SessionAffinity && a.ConnectionsMayEnd == b.ConnectionsMayEnd &&
		a.Excess == b.Excess &&
		maps.EqualFunc(a.SourceRanges, b.SourceRanges, slices.Equal[[]netip.Prefix]) &&
		slices.Equal(a.VIPs, b.VIPs) && slices.Equal(a.Unreachable, b.Unreachable) &&
		slices.EqualFunc(a.Listeners, b.Listeners, equalListeners)
}

func equalListeners(a, b Listener) bool {
	return a.VIP == b.VIP && a.Protocol == b.Protocol && a.Port == b.Port &&
		slices.Equal(a.Backends, b.Backends) && slices.Equal(a.Draining, b.Draining)
}

// EqualTopologies reports whether two topologies, which may be nil, are equivalent for a dataplane.
func EqualTopologies(a, b *Topology) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	if (a.Zone == nil) != (b.Zone == nil) || a.Zone != nil && *a.Zone != *b.Zone {
		return false
	}
	return a.Cluster.ID == b.Cluster.ID && slices.Equal(a.Cluster.ClusterSubnets, b.Cluster.ClusterSubnets) &&
		slices.Equal(a.Cluster.ServiceSubnets, b.Cluster.ServiceSubnets) &&
		slices.EqualFunc(a.Nodes, b.Nodes, equalNodes) && slices.EqualFunc(a.Domains, b.Domains, equalDomains)
}

func equalNodes(a, b Node) bool {
	return a.Name == b.Name && a.Chassis == b.Chassis && slices.Equal(a.Hosts, b.Hosts) &&
		slices.Equal(a.PodSubnets, b.PodSubnets) && slices.Equal(a.Transit, b.Transit)
}

func equalDomains(a, b Domain) bool {
	return a.Name == b.Name && a.PhysicalNetwork == b.PhysicalNetwork && a.VLAN == b.VLAN &&
		a.Detect == b.Detect && a.DetectMultiplier == b.DetectMultiplier && a.Announce == b.Announce &&
		slices.Equal(a.Subnets, b.Subnets) && slices.Equal(a.Residents, b.Residents) &&
		slices.EqualFunc(a.Shards, b.Shards, equalShards)
}

func equalShards(a, b Shard) bool {
	return a.ID == b.ID && a.Ordinal == b.Ordinal && a.Handover == b.Handover && slices.Equal(a.Gateways, b.Gateways) &&
		slices.Equal(a.Anchors, b.Anchors)
}
