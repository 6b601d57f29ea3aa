// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"net/netip"
	"slices"
)

// Kernel is the state of a node whose kernel holds addresses of Services (OpenShift SDN).
type Kernel struct {
	// Interfaces are the interfaces with a carrier that the agent on the node reports, with the node's own addresses
	// and the prefix lengths of their subnets.
	Interfaces map[string][]netip.Prefix
	// Agent is the address of the agent's health check, the zero value if there is no agent.
	Agent netip.AddrPort
	// Held are the addresses that the node is assigned to hold. Problem is the reason why they cannot be read.
	Held    []Held
	Problem string
	// Version is the resource version of the object that contains Held.
	Version string
}

// Held is an address that a node is assigned to hold.
type Held struct {
	Addr    netip.Addr
	Service Key
	// Generation is another number each time the address moves: a node that gets it back announces it again, even if it
	// has not seen that another one had it.
	Generation uint64
	// Shard is the unit of failover of the address. Interface is the node's interface on the segment of the shard.
	Shard     ShardID
	Interface string
}

// Equal reports whether k and o are equal except for their versions.
func (k *Kernel) Equal(o *Kernel) bool {
	if k == nil || o == nil {
		return k == o
	}
	return k.Agent == o.Agent && k.Problem == o.Problem && slices.Equal(k.Held, o.Held) &&
		maps.EqualFunc(k.Interfaces, o.Interfaces, slices.Equal)
}
