// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// LoadBalancerClass is the spec.loadBalancerClass of Services that explicitly select this project. Services without a
// class are served too, unless the controller has --require-load-balancer-class, and those of other classes that
// --load-balancer-class lists.
const LoadBalancerClass = "slb.k8s.ovn.org/ovn"

// Annotations on Services. MetalLB's annotations under metallb.io and metallb.universe.tf have the same meaning. The
// controller reads them as well, unless it has --metallb-annotations=false; the annotations of this project take
// precedence.
const (
	// AnnotationLoadBalancerIPs requests addresses: one or several separated by commas, at most one per family.
	AnnotationLoadBalancerIPs = "slb.k8s.ovn.org/load-balancer-ips"
	// AnnotationAddressPool requests addresses from the named IPAddressPool.
	AnnotationAddressPool = "slb.k8s.ovn.org/address-pool"
	// AnnotationAllowSharedIP is a sharing key: Services with the same key may share an address if their ports differ.
	AnnotationAllowSharedIP = "slb.k8s.ovn.org/allow-shared-ip"
	// AnnotationKeepConnections is true or false, by default true: whether connections to the Service continue when its
	// shard moves to another gateway. False is for Services with many short connections, each of which otherwise needs a
	// datapath flow of its own on the gateway.
	AnnotationKeepConnections = "slb.k8s.ovn.org/keep-connections"

	// AnnotationMetalLBLoadBalancerIPs is MetalLB's AnnotationLoadBalancerIPs.
	AnnotationMetalLBLoadBalancerIPs = "metallb.io/loadBalancerIPs"
	// AnnotationMetalLBAddressPool is MetalLB's AnnotationAddressPool.
	AnnotationMetalLBAddressPool = "metallb.io/address-pool"
	// AnnotationMetalLBAllowSharedIP is MetalLB's AnnotationAllowSharedIP.
	AnnotationMetalLBAllowSharedIP = "metallb.io/allow-shared-ip"

	// AnnotationMetalLBLegacyLoadBalancerIPs is the spelling before MetalLB 0.15.
	AnnotationMetalLBLegacyLoadBalancerIPs = "metallb.universe.tf/loadBalancerIPs"
	// AnnotationMetalLBLegacyAddressPool is the spelling before MetalLB 0.15.
	AnnotationMetalLBLegacyAddressPool = "metallb.universe.tf/address-pool"
	// AnnotationMetalLBLegacyAllowSharedIP is the spelling before MetalLB 0.15.
	AnnotationMetalLBLegacyAllowSharedIP = "metallb.universe.tf/allow-shared-ip"
)

// The Lease of a node. Through it the node's guard (`ovnkube-slb node`) and the controller communicate. It has the name
// of the node, and the guard renews it. If there is no Lease, or it has expired, the state of the node is unknown, and
// the node is considered healthy.
const (
	// GuardsNamespace is the namespace of these Leases. It contains nothing else.
	GuardsNamespace = "ovnkube-slb-guards"
	// AnnotationFaults is written by the guard. It is a JSON object that maps the name of a physical network, or "*"
	// for all networks of the node, to a fault: an object with kind (uplink, ovn_controller or ovs_vswitchd), message
	// and, of an uplink, links without carrier and bridge.
	AnnotationFaults = "slb.k8s.ovn.org/faults"
	// AnnotationLocalnets is written by the guard. It is a JSON object that lists OVN's ports on the node's bridges for
	// L2Domains, by the name of the localnet port. Each entry has the bridge and, as stale, the addresses for which
	// flows on the bridge prevent requests from reaching the port. It is null if the guard has been unable for 30 s to
	// read the flows or Open vSwitch's database.
	AnnotationLocalnets = "slb.k8s.ovn.org/localnets"
	// AnnotationTunnels is written by the guard. It is a JSON object about OVN's tunnels to other nodes, as their BFD
	// sessions show them: allDown, how many other chassis there are, if there are at least two and no tunnel to any of
	// them is up, or down, a list of up to 64 chassis to which no tunnel is up. The object is empty if all
	// are up, and the text if the guard has been unable for 30 s to read Open vSwitch's database.
	AnnotationTunnels = "slb.k8s.ovn.org/tunnels"
	// AnnotationAddressProbes is written by the controller. It is a JSON list of probe requests, objects with id,
	// network, vlan, addresses and own (a MAC address whose replies are ignored). The guard probes these segments for
	// hosts that have these addresses.
	AnnotationAddressProbes = "slb.k8s.ovn.org/address-probes"
	// AnnotationConflicts is written by the guard. It is a JSON object that maps each probed address to the host that
	// has it (mac, since, and probe: the id of the probe request). Addresses without a reply are absent.
	AnnotationConflicts = "slb.k8s.ovn.org/conflicts"
	// AnnotationAnnouncedConflicts is written by the guard. It is a JSON object that maps addresses that the node
	// announces to another host that has them as well (mac, since), at most 200. They stay announced.
	AnnotationAnnouncedConflicts = "slb.k8s.ovn.org/announced-conflicts"
	// AnnotationProbed is written by the guard. It is a JSON list of the ids of probe requests that it has completed: the
	// addresses of these that slb.k8s.ovn.org/conflicts does not list were probed, and no host answered.
	AnnotationProbed = "slb.k8s.ovn.org/probed"
)

// Annotations of agents. Through them the controller and a node's agent communicate, with interconnect (`ovnkube-slb
// node
// --enable-l2`) and with OpenShift SDN (`ovnkube-slb node --enable-sdn`).
const (
	// AnnotationVIPs on a Node is written by the controller. It is a JSON list of the addresses that the node holds:
	// objects with ip, service (NAMESPACE/NAME), generation (which increases when the address moves), shard
	// (L2DOMAIN/INDEX) and interface.
	AnnotationVIPs = "slb.k8s.ovn.org/vips"
	// AnnotationZone on the node's Lease in GuardsNamespace is written by the agent that programs the node's zone, in a
	// cluster with interconnect. It is a JSON object with the bridges of the node, the shards that it has claimed, and
	// what it has applied.
	AnnotationZone = "slb.k8s.ovn.org/zone"
	// AnnotationAgent on the node's Lease in GuardsNamespace is written by the agent. It is a JSON object with health,
	// the address at which the agent serves gRPC health checks, interfaces, the node's own addresses by interface, and
	// singles, those without a subnet.
	AnnotationAgent = "slb.k8s.ovn.org/agent"
)

// PasswordsNamespace is the namespace of the Secrets to which BGPPeers refer. It contains no other Secrets.
const PasswordsNamespace = "ovnkube-slb-bgp"

// SessionTurnLease is a Lease in PasswordsNamespace. The node that holds it may close BGP sessions to apply edited
// BGPPeers.
const SessionTurnLease = "session-turn"

// Annotations on OpenShift's Network. It is the object "cluster" of the network operator (operator.openshift.io).
const (
	// AnnotationMode selects the enabled dataplanes: Disabled, Layer2, BGP or Layer2+BGP.
	AnnotationMode = "slb.k8s.ovn.org/mode"
	// AnnotationReleaseOnDisable, if "true", makes Services lose their addresses while the mode is Disabled. Otherwise
	// they keep them.
	AnnotationReleaseOnDisable = "slb.k8s.ovn.org/release-on-disable"
)

// AnnotationDrain on a Node moves its shards to other gateways and withdraws its BGP routes, for example before
// maintenance. The value is a reason for human readers. The annotation is in effect while it is present.
const AnnotationDrain = "slb.k8s.ovn.org/drain"

// AnnotationMove on an L2Domain moves shards to a gateway once (`kubectl slb move`). It is a JSON object with node,
// shards (a list of indexes) and id, an optional text that distinguishes a repeated request from the last one. The
// request is over when status.move has the state Completed or Failed, after at most 30 seconds. From then on the
// annotation has no effect, whatever happens to the node, and may be removed.
const AnnotationMove = "slb.k8s.ovn.org/move"

// Labels, annotation and finalizer of the IPAddressClaims (ipam.cluster.x-k8s.io) that the controller creates in its
// own namespace for pools with an externalPool.
const (
	// LabelServiceUID marks a claim as this project's. The value is the UID of the Service that needs the address.
	LabelServiceUID = "slb.k8s.ovn.org/service-uid"
	// LabelServiceNamespace is the namespace of that Service.
	LabelServiceNamespace = "slb.k8s.ovn.org/service-namespace"
	// LabelServiceName is the name of that Service.
	LabelServiceName = "slb.k8s.ovn.org/service-name"
	// AnnotationIPAddressPool is the name of the IPAddressPool for which the claim is.
	AnnotationIPAddressPool = "slb.k8s.ovn.org/ip-address-pool"
	// FinalizerClaim keeps the claim until no Service has its address any more.
	FinalizerClaim = "slb.k8s.ovn.org/address-in-use"
)
