// SPDX-License-Identifier: Apache-2.0

// Package site runs a cluster that resembles one with OpenShift SDN in network namespaces: etcd and the API server,
// nodes on one segment with a backend and nftables rules in place of kube-proxy, a client, and the product's
// programs. There is no OVN.
//
//	namespace      what                                     management       segment
//	(the caller's) API server, controllers, both bridges    172.31.0.250
//	NAME-n1..N     one node each                            172.31.0.<i>     10.50.0.<10+i>  fd00:50::<10+i>
//	NAME-client    a client on the segment                                   10.50.0.200     fd00:50::200
//
// The caller's namespace must have been created by [Nest].
package site
