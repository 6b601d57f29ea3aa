// SPDX-License-Identifier: Apache-2.0

// Package ipam allocates addresses to Services.
//
// Allocate recomputes the whole allocation on each pass from the snapshot alone. Services that have addresses keep
// them, oldest first. Then pending Services are served, oldest first.
//
// Invariants (the named ones are fuzz tests of that name):
//   - Exclusive: no address is allocated to two Services, except to Services that may share it.
//   - Sticky: an allocated address stays, whatever happens to its pool. Only the Service itself gives it up, by
//     requesting another address, pool or family, or by becoming incompatible with the Services it shares the address
//     with.
//   - HolderKeeps: an address of spec.externalIPs that a Service owns stays as well, served or not, for as long as the
//     Service lists it and the pool does not reserve it for another one.
//   - OrderIndependent: the order of the lists in the snapshot does not affect the result.
//   - Idempotent: once the outcome is in the statuses, another pass returns the same outcome.
//   - Twin: a naive allocator that enumerates all addresses computes the same outcome.
//   - An address that is still in the status of a Service is not allocated to another Service that could not share
//     it.
//   - An address in cooldown (spec.reuseDelay) is allocated only to the Services that had it last. Cooldowns, and the
//     holders of the addresses that may enter a cooldown, are passed from pass to pass as leases (world.Pool.Leases,
//     PoolUsage.Leases).
//   - Time and memory grow with the number of Services, pools and nodes, never with the number of addresses in a
//     pool.
package ipam
