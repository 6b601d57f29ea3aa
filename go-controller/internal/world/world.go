// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"net/netip"
	"time"

	"go4.org/netipx"
)

// Snapshot is the complete state of the cluster at one time.
type Snapshot struct {
	// Now is when the snapshot was taken. Decisions use it as the current time.
	Now      time.Time
	Cluster  Cluster
	Pools    []*Pool
	Domains  []*Domain
	Nodes    []*Node
	Services []*Service
	// Changed are the changes of Services since the last snapshot that no amendment has taken.
	Changed map[Key]Change
	// EgressHosts are the nodes whose hosts translate connections that pods of a Service open, to the Service's address
	// (EgressService of OVN-Kubernetes with sourceIPBy: LoadBalancerIP). There need be no Node of that name.
	EgressHosts map[Key]string
	// PrimaryNetworks are the namespaces whose pods have a primary user-defined network of OVN-Kubernetes. Their
	// addresses on the default network, which EndpointSlices have, take no traffic of Services.
	PrimaryNetworks map[string]bool
	// Peers and Advertisements are the BGP configuration.
	Peers          []*Peer
	Advertisements []*Advertisement
	// Profiles are the names of all BFDProfiles. Communities maps the name of each Community to its findings.
	Profiles    []string
	Communities map[string][]Finding
	// Sessions are the BGP sessions that each node reports, by node and peer.
	Sessions map[string]map[string]PeerSession
	// Claims are the claims for addresses of external pools; nil where they are not read, as on nodes.
	Claims *Claims
	// FRR is what frr-k8s has and reports; nil if the controller uses none.
	FRR *FRR
	// ShardStates maps each shard that exists in OVN to its state in OVN.
	ShardStates map[ShardID]ShardState
	// Ordinals are the ordinals that shards have, in a cluster with interconnect.
	Ordinals map[ShardID]int
	// Bridges maps the name of each chassis in OVN to its bridges. The bridges of a chassis without an entry are
	// unknown.
	Bridges map[string]Bridges
	// Reports are the conflicts that the guard of each node reports, by node and address. They may be stale or forged.
	// Package decide decides which of them to accept.
	Reports map[string]map[netip.Addr]Conflict
	// AnnouncedReports are the conflicts that the guard of each node reports on addresses that the node announces, as
	// Reports.
	AnnouncedReports map[string]map[netip.Addr]Conflict
	// Probed are the IDs of the probe requests that guards have completed, by node.
	Probed map[string][]string
	// Conflicts are the accepted reports: responses to our own address probes, and reports of gateways on addresses that
	// they announce. The zero Conflict is that of an address that was contested before nothing announced it, and has not
	// been probed again.
	Conflicts map[netip.Addr]Conflict
	// Applied are the addresses of each Service that the zones of their active gateways have programmed, and
	// ApplyErrors the reasons why those zones could not, in a cluster with interconnect. Both are nil otherwise.
	Applied     map[Key][]netip.Addr
	ApplyErrors map[Key]string
	// Announced are the addresses that the network's own database, or with interconnect the ServicePlans, announce now,
	// limited to those of ServicesToVerify. It is nil while these cannot be read.
	Announced map[netip.Addr]bool
	// Misplaced are the addresses whose logical flows OVN has in the wrong routers.
	Misplaced map[netip.Addr]bool
	// Leaving are the addresses of ours in the statuses of Services that are no longer served, until those statuses are
	// cleared. LeavingShared are those that the status of a served Service, or of one in Leaving, contains as well.
	Leaving       map[netip.Addr]Key
	LeavingShared map[Key][]netip.Addr
	// Unsettled are the addresses in statuses that earlier decisions wanted, as long as their writes may still arrive.
	Unsettled map[Key][]netip.Addr
	// Granted are the addresses that decisions of ours gave to Services, possibly none, and that are not yet in their
	// statuses.
	Granted map[Key][]netip.Addr
	// HeldExternalIPs are the addresses of spec.externalIPs that Services hold according to decisions of ours that are
	// not yet in their statuses (Service.HeldExternalIPs).
	HeldExternalIPs map[Key][]netip.Addr
}

// Conflict is the observation of another host that answers for an address (RFC 5227 for IPv4, RFC 4862 section 5.4 for
// IPv6).
type Conflict struct {
	// MAC is the address of the other host. Node is the node that observed it.
	MAC, Node string
	// Since is when the conflict was first observed. It does not change while the conflict lasts.
	Since time.Time
	// Probe is the ID of the address probe that the other host answered. It is empty if the address is announced.
	Probe string
}

// Cluster holds the settings and facts that apply to the whole cluster.
type Cluster struct {
	// ID distinguishes this cluster from others on the same segment. It is the UID of namespace kube-system. MAC
	// addresses are derived from it.
	ID string
	// PodNets are the cluster subnets of OVN-Kubernetes. ServiceNets are the ClusterIP ranges.
	PodNets, ServiceNets []netip.Prefix
	// InternalNets are the subnets that OVN-Kubernetes reserves for itself (join, transit, masquerade), as far as
	// OpenShift reports them.
	InternalNets []netip.Prefix
	// Switch selects the dataplanes that are enabled.
	Switch Switch
	// AutoAssignCIDRs are OpenShift's autoAssignCIDRs, as written there. If there are any, OpenShift assigns addresses
	// to Services, and no other controller must.
	AutoAssignCIDRs []string
	// Limits bound what is programmed.
	Limits Limits
	// OpenShiftSDN means that there is no OVN. The kernels of the nodes hold the addresses.
	OpenShiftSDN bool
	// NoDatabase means that no northbound database is configured. Segments can then be served only with interconnect,
	// by agents that program the databases of their zones. OpenShift SDN needs no database.
	NoDatabase bool
}

// Limits are the largest numbers of backends (addresses x ports x endpoints) that are programmed for a Service, for all
// Services of a namespace, and in total. Source ranges count as well for the latter two. 0 is no limit.
type Limits struct{ ServiceBackends, NamespaceBackends, Backends int }

// Key identifies a Service.
type Key struct{ Namespace, Name string }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// Pool is a set of addresses to assign to Services.
type Pool struct {
	Name    string
	Created time.Time
	// Ranges are the addresses in the order in which the user wrote them. Addresses in Exclude are never assigned.
	Ranges, Exclude []netipx.IPRange
	// AutoAssign makes the pool available to Services that request neither a pool nor an address.
	AutoAssign bool
	// ExternalIPs announces addresses of the pool that Services list in spec.externalIPs.
	ExternalIPs bool
	// SharedByCluster lets Services of different namespaces share addresses of the pool.
	SharedByCluster bool
	// AvoidBuggyIPs excludes IPv4 addresses that end in .0 or .255.
	AvoidBuggyIPs bool
	// Disabled keeps assigned addresses and stops new assignments.
	Disabled bool
	// Admission restricts the Services that the pool serves. A pool without it serves all Services, and is tried after
	// the pools that have one.
	Admission *Admission
	// Quota is the limit on the addresses that the Services of one namespace may have, 0 for no limit.
	Quota int
	// Reservations are addresses that are assigned only to the Service they name.
	Reservations []Reservation
	// ReuseDelay is the cooldown of an address between two Services, 0 for none.
	ReuseDelay time.Duration
	// Leases record which Service had each address of a pool with a ReuseDelay at the last decision. A shared address
	// has one lease per Service.
	Leases []Lease
	// External is the provider's pool from which the addresses come, nil for the addresses in Ranges. Ranges is empty
	// then: the pool has the addresses of Services that have one from it according to their status, and those of its
	// claims.
	External *ExternalPool
	// Problems are the reasons why this pool cannot assign addresses (field, value and what is wrong). It is empty if
	// the pool is usable.
	Problems []string
}

// Domain is one physical layer 2 segment.
type Domain struct {
	Name    string
	Created time.Time
	// Pools are the names of the pools whose addresses are on this segment. Nodes are the names of the nodes that the
	// selectors match. The reader of the API object has resolved both.
	Pools, Nodes []string
	// Services match the labels of the announced Services. Empty announces all.
	Services []Selector
	// PhysicalNetwork is the network name of ovn-bridge-mappings.
	PhysicalNetwork string
	// VLAN is the 802.1Q tag, 0 for none.
	VLAN    int
	Subnets []Subnet
	// MaxGateways is the limit on the gateways of a shard, 0 for no limit.
	MaxGateways int
	// Shards is the number of failover units, 0 for the default.
	Shards int
	// Preferred are preferences among the nodes.
	Preferred []Preference
	// Detect is the BFD interval between gateways. DetectMultiplier is the number of packets that may be missed.
	Detect           time.Duration
	DetectMultiplier int
	// Preempt lets a gateway that returns reclaim its shards, and a more preferred one take over others.
	Preempt bool
	// Announce is the time after which gateways repeat the announcement of a shard, 0 for never.
	Announce time.Duration
	// Anchors maps the index of each shard to its external addresses, as in the status of the domain. Ordinals are the
	// shards' ordinals there, in a cluster with interconnect.
	Anchors  map[int][]netip.Addr
	Ordinals map[int]int
	// Gateways are the nodes of each shard in order of preference, as in the status of the domain. Active is the active
	// one of each shard that has one there. A change of Active alone does not renew the domain: a new controller needs it.
	Gateways map[int][]string
	Active   map[int]string
	// Move is the request to move shards, nil without one. Moved is the progress of the last request.
	Move  *MoveRequest
	Moved MoveResult
	// Served is the mode in the status of the domain: gateways may still answer that were programmed in it.
	Served   ServingMode
	Problems []string
}

// Preference adds Weight to how much a domain prefers each of Nodes, by name.
type Preference struct {
	Weight int
	Nodes  []string
}

// Subnet is a subnet of a segment. Gateway is its next hop, the zero Addr for none.
type Subnet struct {
	Prefix  netip.Prefix
	Gateway netip.Addr
}

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
	// Draining is the reason why the node is draining and should not receive traffic (the signal and its value), empty
	// if it is not.
	Draining string
	// Guarded means that a guard runs on the node and answers address probe requests for its segments.
	Guarded bool
	// Faults maps a physical network, or EveryNetwork, to what prevents the node from serving it although OVN considers
	// the node able to. The node's own guard reports them.
	Faults map[string]string
	// Localnets maps the name of each localnet port of an L2Domain to OVN's port on one of the node's bridges, as the
	// node's guard reports it. It is nil if no guard reports them.
	Localnets map[string]Localnet
	// Tunnels is what the node's guard reports of OVN's tunnels to other nodes, nil if no guard reports it.
	Tunnels *Tunnels
	// Kernel is what the agent and the annotation of an OpenShift SDN node report, nil without either.
	Kernel *Kernel
}

// Localnet is OVN's port on a bridge for an L2Domain. Stale are the addresses, sorted, whose requests (ARP, neighbour
// solicitations) do not reach the port because of flows of the bridge.
type Localnet struct {
	Bridge string
	Stale  []netip.Addr
}

// EveryNetwork is the key in Node.Faults for all physical networks of a node.
const EveryNetwork = "*"

// Protocol is a transport protocol as Service ports spell it.
type Protocol string

// The protocols that a Service port can have.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Family is an address family.
type Family uint8

// The address families.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

func (f Family) String() string {
	if f == IPv4 {
		return "IPv4"
	}
	return "IPv6"
}

// FamilyOf returns the family of an address; 4-in-6 addresses count as IPv4.
func FamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// FamilyPolicy is the number of families that a Service requests (KEP-563).
type FamilyPolicy uint8

// The values of spec.ipFamilyPolicy.
const (
	SingleStack FamilyPolicy = iota
	PreferDualStack
	RequireDualStack
)

// Service is a Service of type LoadBalancer that this controller serves. A Snapshot does not contain Services of other
// types or classes, nor Services that are being deleted.
type Service struct {
	Key     Key
	UID     string
	Created time.Time
	Labels  map[string]string
	// Families are in the order of spec.ipFamilies. There is at least one.
	Families     []Family
	FamilyPolicy FamilyPolicy
	// Requested are the requested addresses and RequestedPool is the requested pool. Both are empty for any.
	// RequestedBy and PoolRequestedBy name the field or annotation of the request.
	Requested                    []netip.Addr
	RequestedPool                string
	RequestedBy, PoolRequestedBy string
	// Assigned are the addresses in status.loadBalancer.ingress.
	Assigned []netip.Addr
	// AssignedHosts are the host names without an address in status.loadBalancer.ingress. Only other controllers write
	// host names.
	AssignedHosts []string
	// ListsPorts means that the first entry of status.loadBalancer.ingress has ports.
	ListsPorts bool
	// Given are the addresses that this controller assigned, according to the status (condition Allocated). Addresses
	// in Assigned that are not in Given belong to another controller.
	Given []netip.Addr
	// GivenFrom are the names of the pools of Given according to the status, empty for those in no pool.
	GivenFrom []string
	// FromRequested are those of Given that, according to the status, came from RequestedPool. They stay if a pool is
	// edited: the request is not newer than the address.
	FromRequested []netip.Addr
	// NamesClass means that spec.loadBalancerClass is one that we serve, so that no other controller serves the Service.
	NamesClass bool
	// Contested means that, according to the status, an address is not announced because another host answers for it, or
	// did so before nothing announced it.
	Contested bool
	// ExternalIPs are the addresses in spec.externalIPs. HeldExternalIPs are those that the Service holds according to
	// its status (condition ExternalIPs).
	ExternalIPs, HeldExternalIPs []netip.Addr
	Ports                        []Port
	// SharingKey lets Services with the same key share an address. Empty disables sharing.
	SharingKey string
	// Selector is spec.selector.
	Selector map[string]string
	// SessionAffinity means sessionAffinity: ClientIP.
	SessionAffinity bool
	// ConnectionsMayEnd means that connections need not continue when the shard moves
	// (v1alpha1.AnnotationKeepConnections is false).
	ConnectionsMayEnd bool
	// LocalPolicy means externalTrafficPolicy: Local.
	LocalPolicy bool
	// ListedRanges is the number of source ranges that the Service lists. Of more than MaxListedRanges, none is read.
	ListedRanges int
	// SourceRanges are the fewest prefixes with the addresses of loadBalancerSourceRanges, by family. A family without an
	// entry admits all clients. A family with an empty list admits none: ranges that could not be parsed admit none, and
	// neither does a family that the list lacks. If the list has nothing but 0.0.0.0/0 and ::/0, both families are
	// admitted: 0.0.0.0/0 is the default of Kubernetes, and stands for all clients.
	SourceRanges map[Family][]netip.Prefix
	// Slices are in the order of the names of their EndpointSlices.
	Slices []*Slice
	// Problems are the fields of the object that cannot be parsed or served (field, value and what is wrong). The
	// Service is not served until they are fixed.
	Problems []string
	// Limits are fields in use that this release supports only in part. They are reported to the user and have no other
	// effect.
	Limits []string
	// Layer2Limits are the Limits that come from L2Domains. They do not apply to a Service that is announced only by
	// BGP.
	Layer2Limits []string
}

// MaxListedRanges is the maximum number of source ranges that a Service lists. Reading them takes longer than all else,
// and after they were merged, fewer count (plan.MaxSourceRanges).
const MaxListedRanges = 10_000

// Port is a port of a Service. Name matches it to the ports of the slices.
type Port struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Slice is an EndpointSlice of one family.
type Slice struct {
	Family    Family
	Ports     []Port
	Endpoints []Endpoint
}

// Endpoint is one backend with the conditions of KEP-1672.
type Endpoint struct {
	Addr                        netip.Addr
	Node                        string
	Ready, Serving, Terminating bool
}
