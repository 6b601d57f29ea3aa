// SPDX-License-Identifier: Apache-2.0

// Package frr runs FRR as a router in a network namespace. It starts zebra, bgpd, bfdd and, from FRR 10 on,
// mgmtd directly because the packaged service supports only one instance per machine. The tests of BGP are in test/bgp.
//
// Invariants:
//   - A router keeps all files in its directory: sockets, logs, records of processes (package proc). Kill and removing
//     the directory leave nothing behind.
//   - The configuration of a router consists of what Configure received since Start. Nothing is written to the files
//     that FRR reads at startup.
package frr
