// SPDX-License-Identifier: Apache-2.0

// Package ovn makes plans true in OVN: it writes the rows that package rows wants into
// the northbound database and reads from the southbound one who carries each shard. It
// is the only user of libovsdb.
//
// Invariants:
//   - What is written is the difference between the rows wanted and those in the
//     database, never between two wants: a second Apply, or a new process, writes nothing.
//   - Rows are ours by external_ids:k8s.ovn.org/owner-controller. Of rows of others only
//     single elements of sets (ports of join, policies of ovn_cluster_router) and single
//     keys of NB_Global are changed.
//   - A row is inserted only if none of its name is there, checked in the same
//     transaction: two processes that both believe to lead write it once.
//   - A router has the load balancers of a Service that admits only some clients only while
//     the ACLs are there.
//   - Addresses leave a return path only once the plan of every Service that the database
//     knows has come, or it was pruned; until then a restarted process could take one that
//     is in use.
//   - A node's rows are looked at when what its backends need has changed, and until that
//     succeeded; Configure looks at all of them.
//   - Nothing is remembered about a connection: every reconnect reads the database anew
//     and reports Rows.
package ovn
