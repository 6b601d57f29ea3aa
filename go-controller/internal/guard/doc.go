// SPDX-License-Identifier: Apache-2.0

// Package guard sees on a gateway what OVN does not: that the uplink of a physical network
// is lost, and that ovn-controller does not work while Open vSwitch does. It reports that
// in a Lease of the node, and the controller moves the gateway behind the others.
//
// Invariants:
//   - There is a Lease while there is a fault. A healthy gateway costs no write.
//   - What the guard can't see is no fault, and a guard that dies is forgotten: neither
//     takes a gateway out.
//   - A fault is told at once, its end only when it has been gone for a while.
package guard
