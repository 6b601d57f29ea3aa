// SPDX-License-Identifier: Apache-2.0

// Package metallb converts MetalLB's configuration to the kinds of slb.k8s.ovn.org.
//
// It reads IPAddressPool, L2Advertisement, BGPPeer (v1beta1 and v1beta2), BGPAdvertisement, BFDProfile and Community of
// the group metallb.io, and the ConfigMap of MetalLB up to 0.12. The structs contain the documented fields of these
// objects; MetalLB itself is not a dependency.
//
// Invariants:
//   - Convert is pure: the same input gives the same objects and findings, in the same order.
//   - Every field of the input is either converted or named in a finding. Nothing is silently ignored.
//   - Every object of the result is valid. A finding of severity Error means that the result is incomplete.
//   - What MetalLB cannot know, the network of a segment (physicalNetwork, vlan, subnets), comes from the caller.
package metallb
