// SPDX-License-Identifier: Apache-2.0

package world

import (
	"time"

	"go4.org/netipx"
)

// Pool is a set of addresses to assign to Services.
type Pool struct {
	Name    string
	Created time.Time
	// Ranges are the addresses in the order in which the user wrote them. Addresses in Exclude are never assigned.
	Ranges, Exclude []netipx.IPRange
	// AutoAssign makes the pool available to Services that request neither a pool nor an address.
	AutoAssign bool
	// ExternalIPs announces addresses of the pool that Services list in spec.externalIPs.
	ExternalIPs bool
	// SharedByCluster lets Services of different namespaces share addresses of the pool.
	SharedByCluster bool
	// AvoidBuggyIPs excludes IPv4 addresses that end in .0 or .255.
	AvoidBuggyIPs bool
	// Disabled keeps assigned addresses and stops new assignments.
	Disabled bool
	// Admission restricts the Services that the pool serves. A pool without it serves all Services, and is tried after
	// the pools that have one.
	Admission *Admission
	// Quota is the limit on the addresses that the Services of one namespace may have, 0 for no limit.
	Quota int
	// Reservations are addresses that are assigned only to the Service they name.
	Reservations []Reservation
	// ReuseDelay is the cooldown of an address between two Services, 0 for none.
	ReuseDelay time.Duration
	// Leases record which Service had each address of a pool with a ReuseDelay at the last decision. A shared address
	// has one lease per Service.
	Leases []Lease
	// External is the provider's pool from which the addresses come, nil for the addresses in Ranges. Ranges is empty
	// then: the pool has the addresses of Services that have one from it according to their status, and those of its
	// claims.
	External *ExternalPool
	// Problems are the reasons why this pool cannot assign addresses (field, value and what is wrong). It is empty if
	// the pool is usable.
	Problems []string
}
