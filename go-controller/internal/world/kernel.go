// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"net/netip"
	"slices"
)

// Kernel is a node whose kernel itself holds addresses of Services (OpenShift SDN).
type Kernel struct {
	// Interfaces are those with a carrier that an agent on the node tells of, with the node's
	// own addresses and the lengths of their subnets.
	Interfaces map[string][]netip.Prefix
	// Agent is where the agent answers for its health; the zero value if there is none.
	Agent netip.AddrPort
	// Held are the addresses that the node is told to hold, Problem why that can't be read.
	Held    []Held
	Problem string
	// Version is that of the object with Held in it.
	Version string
}

// Held is an address that a node is told to hold.
type Held struct {
	Addr    netip.Addr
	Service Key
	// Generation grows by one each time the address moves: of two nodes that are told to hold
	// it the one with the higher generation shall.
	Generation uint64
	// Shard is the unit of failover that the address is in, Interface the node's on its segment.
	Shard     ShardID
	Interface string
}

// Equal tells whether both are the same, whatever the versions.
func (k *Kernel) Equal(o *Kernel) bool {
	if k == nil || o == nil {
		return k == o
	}
	return k.Agent == o.Agent && k.Problem == o.Problem && slices.Equal(k.Held, o.Held) &&
		maps.EqualFunc(k.Interfaces, o.Interfaces, slices.Equal)
}
