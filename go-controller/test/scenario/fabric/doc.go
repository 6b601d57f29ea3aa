// SPDX-License-Identifier: Apache-2.0

// Package fabric is OVN in memory, for tests: the chassis of a cluster, and the databases of the cluster or of each of
// its zones. It has the rows that package internal/ovn/rows builds, and behaves as OVN does as far as the project
// observes it: gateways claim shards, ovn-northd translates changes some time after they were written, databases can be
// out of reach, and other clients change rows.
//
// Invariants:
//   - Rows are only those of package internal/ovn/rows, and a change that leaves a row as it is writes nothing.
//   - The live chassis with the highest priority in the HA chassis group of a shard claims it. With interconnect each
//     chassis decides this by the database of its own zone.
//   - Databases outlive the processes that are connected to them.
//   - A transaction is all or nothing, and Fence is asked right before each one.
package fabric
