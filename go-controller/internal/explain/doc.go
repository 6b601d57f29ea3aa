// SPDX-License-Identifier: Apache-2.0

// Package explain follows the path from a client to a Service through the objects of a cluster, and names the first
// broken link on it: Service, pool, address, L2Domain, shard, gateway, dataplane, clients, endpoints, BGP.
//
// Invariants:
//   - The result depends only on the objects and on the question. There is no clock and no I/O.
//   - A link is OK only if an object shows it, or a probe that the caller made. What nothing shows is Unknown.
//   - The links are in the order of the path. Each is judged by itself, so that a fault that the controller has not
//     seen yet is reported, too. The conditions of the Service decide what only the controller can see.
//   - With the address of a client, domains, shards, gateways, rows, endpoints and routes are those of the Service's
//     addresses of its family. A fault of the other family breaks no link.
//   - Which clients are admitted is decided by world.Service.SourceRanges, from which the rows in OVN are built.
package explain
