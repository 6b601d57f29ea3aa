// SPDX-License-Identifier: Apache-2.0

// Package frr runs FRR as a router in a network namespace: zebra, bgpd and bfdd, started by hand, for the packaged service
// knows one instance a machine only. Its tests of BGP are those of test/bgp.
//
// Invariants:
//   - Everything of a router is in its directory: sockets, logs, records of processes (package proc). Kill and the directory's
//     removal leave no trace.
//   - A router's configuration is what Configure was given since Start; nothing is written to files that FRR reads at start.
package frr
