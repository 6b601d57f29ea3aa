// SPDX-License-Identifier: Apache-2.0

// Package ovn applies plans to OVN. It writes the rows computed by package rows to the northbound database and reads
// from the southbound database which chassis has claimed each shard. It is the only user of libovsdb.
//
// Invariants:
//   - A transaction contains the difference between the desired rows and the rows in the database, never between two
//     desired states. A second Apply, or a new process, writes nothing. The plans that were applied last are kept only
//     because the rows of a node depend on all plans with backends there; what was accepted, package loop records.
//   - external_ids:k8s.ovn.org/owner-controller marks the rows that we own. In rows of other owners, only single
//     elements of sets (ports of join, policies of ovn_cluster_router) and single keys of NB_Global are changed.
//   - A row is inserted only if no row of that name exists. The same transaction checks this, so two processes that
//     both believe they are the leader insert the row once.
//   - A load balancer of a Service with source ranges has VIPs only while its ACLs exist.
//   - Addresses are removed from a return path only after the plan of every Service in the database has been received
//     or the Service was pruned. Otherwise a restarted process could remove an address that is in use.
//   - The rows of a node are checked when the requirements of its backends have changed, and again until a write
//     succeeds. Configure checks the rows of all nodes.
//   - Rows are always compared with the database as read by the present connection. Every reconnect reads it again and
//     reports Rows.
package ovn
