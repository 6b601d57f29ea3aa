// SPDX-License-Identifier: Apache-2.0

// Package lab builds a whole cluster from real parts on one Linux machine: etcd and kube-apiserver, OVN's central daemons, and
// nodes that each run Open vSwitch (userspace datapath) and ovn-controller in the topology of OVN-Kubernetes' central mode with
// shared gateways, an FRR router and clients. Everything runs in network namespaces; root is needed, containers and kernel
// modules are not.
//
//	namespace   what                                  mgmt              underlay         LAN (br-ex)      provider
//	NAME-sw     one Linux bridge a segment, and the switch of the DMZ's wire
//	NAME-cen    NB, SB, ovn-northd, API server        172.31.0.250
//	NAME-n1..N  one node each                         172.31.0.<i>      172.32.0.<i>     172.18.0.<10+i>  (no address)
//	NAME-router FRR, forwards between its legs                                           172.18.0.1       10.50.0.1 (and .1 of the segments below)
//	NAME-client a client on the provider segment                                                          10.50.0.200
//	NAME-dmz    a client on a second provider segment that all nodes but n1 are attached to (br-dmz): 10.60.0.200
//	NAME-tagged a client on VLAN 20 of the same wire: 10.70.0.200
//	NAME-remote a client behind the router            198.51.100.10
//	NAME-pod-*  one a pod, on br-int of its node      10.244.<i>.<x>
//
// The programs of OVN and Open vSwitch are the system's, or those below LAB_OVN_PREFIX (package ovnprefix).
//
// The NB rows, names and annotations follow a captured cluster (OVN-Kubernetes release 1.3, one zone, shared gateway mode).
// Addresses are the same in every lab: no two labs share a namespace.
//
// Invariants:
//   - No link of the lab is ever in the machine's own network namespace, so labs side by side cannot collide.
//   - Everything of a lab carries its name: the directory, the namespaces. Down needs nothing but that name, whatever died before.
//   - Files are in the lab's directory only; removing it is part of Down.
//   - IPv4 and IPv6 are always both on; code that handles one handles the other by the same lines.
package lab
