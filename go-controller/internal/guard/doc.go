// SPDX-License-Identifier: Apache-2.0

// Package guard detects failures of a gateway that OVN does not detect: the uplink of a physical network is lost,
// ovs-vswitchd does not work while ovn-controller does, or the other way round. It reports them in a Lease of the
// node, and the controller moves the gateway behind the others. The controller also uses the Lease to request address
// probes, which check whether another host on a segment already has an address. The guard also reports other hosts
// that take an address which the node announces, which of OVN's ports are on the node's bridges, whether the flows of
// OVN-Kubernetes on these bridges forward requests to them, and which of OVN's tunnels to other nodes are down. When
// the node's chassis claims a shard, the guard announces the shard's router on the segment, which OVN itself does only
// a second later.
//
// Invariants:
//   - A healthy gateway costs one write per five minutes.
//   - A state that the guard can't observe is not a fault, and the report of a guard that stops expires. Neither
//     takes a gateway out of service.
//   - The beginning of a fault is reported at once, its end only after the fault has been absent for a while.
//   - An address is free if no host answers for it in time (as in RFC 5227 and RFC 4862).
//   - Replacing a guard does not free an address that another host has.
//   - What hosts on a segment send costs a bounded number of probes, of reports and of bytes in reports.
package guard
