// SPDX-License-Identifier: Apache-2.0

// Package guard sees on a gateway what OVN does not: that the uplink of a physical network
// is lost, and that ovn-controller does not work while Open vSwitch does. It reports that
// in a Lease of the node, and the controller moves the gateway behind the others. There the
// controller asks it, too, whether anybody on a segment has an address already. And it tells which of OVN's ports are
// on the node's bridges, and whether the flows that OVN-Kubernetes has there let requests through to them. When the node's chassis
// claims a shard, it announces the shard's router on the segment, which OVN does a second later.
//
// Invariants:
//   - A healthy gateway costs one write in five minutes.
//   - What the guard can't see is no fault, and a guard that dies is forgotten: neither
//     takes a gateway out.
//   - A fault is told at once, its end only when it has been gone for a while.
//   - An address that nobody answers for in time is free (as in RFC 5227 and RFC 4862).
//   - A guard that is replaced frees no address that somebody has.
package guard
