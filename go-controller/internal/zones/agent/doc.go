// SPDX-License-Identifier: Apache-2.0

// Package agent programs the OVN databases of one node of a cluster with interconnect: its zone. It reads the published
// shards and plans, and builds and applies rows with the same code as the controller of a cluster with one database.
//
// Invariants:
//   - Nothing is written unless OVN-Kubernetes reports that the node has its own zone. Otherwise the database could be
//     that of the whole cluster.
//   - A node whose Node has been deleted has no rows, since the other zones no longer know it as a gateway.
//   - Nothing is written before all published objects have been read, except that a gateway steps down from its shards
//     after a boot of the node (internal/ovn/stepdown.go).
//   - Changes of Nodes wait between two computations of the topology. An order of gateways and a planned move do not.
//   - The report never claims that a plan is applied before the database has accepted its rows.
//   - An agent that ends leaves its rows in place.
package agent
