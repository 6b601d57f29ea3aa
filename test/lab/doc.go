// SPDX-License-Identifier: Apache-2.0

// Package lab builds a complete cluster from real components on one Linux machine: etcd and kube-apiserver, OVN's
// databases and ovn-northd, nodes that each run Open vSwitch (userspace datapath) and ovn-controller in the topology of
// OVN-Kubernetes with shared gateways, an FRR router, and clients. Everything runs in network namespaces. It requires
// root, but neither containers nor kernel modules. With interconnect, NB, SB and ovn-northd run on each node.
//
//	namespace   contents                         mgmt          underlay      LAN (br-ex)      provider
//	NAME-sw     a Linux bridge per segment, and the switch of the DMZ's wire
//	NAME-cen    NB, SB, ovn-northd, API server   172.31.0.250
//	NAME-n1..N  one node each                    172.31.0.<i>  172.32.0.<i>  172.18.0.<10+i>  (no address)
//	NAME-router FRR, forwards between segments                               172.18.0.1       10.50.0.1
//	            (and host .1 of the segments below)
//	NAME-client a client on the provider segment                                              10.50.0.200
//	NAME-dmz    a client on a second provider segment (br-dmz), to which all nodes but n1 are attached: 10.60.0.200
//	NAME-tagged a client on VLAN 20 of the same wire: 10.70.0.200
//	NAME-remote a client behind the router: 198.51.100.10
//	NAME-pod-*  one per pod, on br-int of its node: 10.244.<i>.<x>
//
// The programs of OVN and Open vSwitch are those in LAB_OVN_PREFIX, or the newest that the system or the cache has
// (package ovnprefix). Those of FRR are the system's or those in LAB_FRR_PREFIX (package frr).
//
// The NB rows, names and annotations follow captured clusters (OVN-Kubernetes release 1.3, one zone and interconnect,
// shared gateway mode). Addresses are the same in every lab because no two labs share a namespace.
//
// Invariants:
//   - No link of the lab is ever in the machine's own network namespace, so labs on one machine cannot collide.
//   - The directory and the namespaces of a lab carry its name. Down needs only that name, whichever processes have
//     died.
//   - A lab writes files only in its own directory, which Down removes.
//   - IPv4 and IPv6 are always both enabled, and the same code handles both.
package lab
