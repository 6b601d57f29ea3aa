// SPDX-License-Identifier: Apache-2.0

// Package ipam decides which address each Service has.
//
// The whole decision is made anew each time, from the world alone: Services that have
// addresses keep them, in order of age; then those that wait are served, in order of age.
//
// Invariants (those with a name are fuzz tests of that name):
//   - Exclusive: no address is given to two Services, except those that may share it.
//   - Sticky: an address once given stays, whatever happens to its pool; only the
//     Service itself moves it, by asking for another address, pool or family, or by ceasing
//     to fit those that it shares the address with.
//   - OrderIndependent: the order of the lists in the snapshot changes nothing.
//   - Idempotent: once the outcome is in the statuses, the same outcome comes again.
//   - Twin: a naive allocator that lists all addresses comes to the same outcome.
//   - An address that still stands in a Service's status is not given to another
//     one that could not share it.
//   - An address that rests (spec.reuseDelay) is given to nobody but those who had it
//     last. The rests and who has the addresses that may come to rest are handed on from
//     pass to pass as leases (world.Pool.Leases, PoolUse.Leases).
//   - Time and memory grow with the number of Services, pools and nodes, never with the
//     number of addresses in a pool.
package ipam
