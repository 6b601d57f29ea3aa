// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"time"
)

// Node is a node of the cluster.
type Node struct {
	Name string
	// Created is when the Node was created, which a kubelet cannot change.
	Created time.Time
	// Hostname is the label kubernetes.io/hostname, by which objects of others select the node.
	Hostname string
	// Chassis is the node's system-id in OVN's southbound database. It is empty until OVN-Kubernetes publishes it. With
	// OpenShift SDN it is the node's name.
	Chassis string
	// Zone is the OVN-Kubernetes zone whose databases configure the node: "global" if the cluster has one zone, the
	// node's name with interconnect. Empty means global.
	Zone string
	// Addrs are the node's own addresses. They are never assigned to a Service.
	Addrs []netip.Addr
	// Links are the node's addresses with a known subnet, with the prefix length of that subnet.
	Links []netip.Prefix
	// PodSubnets are the subnets of the node's pods, as OVN-Kubernetes publishes them. A family without a subnet is
	// unknown.
	PodSubnets []netip.Prefix
	// Transit are the addresses of the node's zone on the transit switch, in a cluster with interconnect.
	Transit []netip.Prefix
	// Agent is the report of the agent that programs the node's zone, nil without one.
	Agent *ZoneAgent
	// Hosts are the addresses of pods on the node's host network, at most one per family, as far as OVN can reach them.
	Hosts []Host
	// GatewayBridge is the bridge of OVN-Kubernetes' own gateway, empty while unknown. SharedGateway means that traffic
	// for Services goes from the bridge's uplink directly to OVN (gateway mode shared), not through the host.
	GatewayBridge string
	SharedGateway bool
	// NextHops are the next hops of the node's own default routes. They are never assigned to a Service, either.
	NextHops []netip.Addr
	// External are the addresses at which the node accepts traffic to addresses of Services, the first of each family.
	External []netip.Addr
	// GatewayMAC is the MAC address of the bridge of OVN-Kubernetes' own gateway, in lower case, empty while unknown.
	GatewayMAC string
	// NetworkUnavailable is the node condition of that name: the node's network is not set up, so that no traffic may
	// be sent to it.
	NetworkUnavailable bool
	// Unreachable means that the kubelet has stopped reporting (condition Ready is Unknown).
	Unreachable bool
	// Deleting means that the Node is being deleted.
	Deleting bool
	// Draining is the reason why the node is draining and should not receive traffic (the signal and its value), empty
	// if it is not.
	Draining string
	// Guarded means that a guard runs on the node and answers address probe requests for its segments.
	Guarded bool
	// Faults maps a physical network, or EveryNetwork, to what prevents the node from serving it although OVN considers
	// the node able to. The node's own guard reports them.
	Faults map[string]Fault
	// Localnets maps the name of each localnet port of an L2Domain to OVN's port on one of the node's bridges, as the
	// node's guard reports it. It is nil if no guard reports them.
	Localnets map[string]Localnet
	// Tunnels is what the node's guard reports of OVN's tunnels to other nodes, nil if no guard reports it.
	Tunnels *Tunnels
	// Unobserved means that the node's guard can't read Open vSwitch's database, so that it detects no lost uplink. What
	// it reported before stays in Faults.
	Unobserved bool
	// Kernel is what the agent and the annotation of an OpenShift SDN node report, nil without either.
	Kernel *Kernel
}

// Localnet is OVN's port on a bridge for an L2Domain. Stale are the addresses, sorted, whose requests (ARP, neighbour
// solicitations) do not reach the port because of flows of the bridge.
type Localnet struct {
	Bridge string
	Stale  []netip.Addr
}
