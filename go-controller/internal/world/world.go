// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"net/netip"
	"time"

	"go4.org/netipx"
)

// Snapshot is one state of the cluster, whole.
type Snapshot struct {
	// Now is when the snapshot was taken: the time that decisions know.
	Now      time.Time
	Cluster  Cluster
	Pools    []*Pool
	Domains  []*Domain
	Nodes    []*Node
	Services []*Service
	// Peers and Advertisements are those for BGP.
	Peers          []*Peer
	Advertisements []*Advertisement
	// Profiles are the names of all BFDProfiles; Communities the findings of each Community.
	Profiles    []string
	Communities map[string][]Finding
	// Sessions are those that each node tells of, by node and peer.
	Sessions map[string]map[string]PeerSession
	// Carriers says, for each shard that OVN already knows, who carries it now.
	Carriers map[ShardID]Carrier
	// Bridges are those of each chassis that OVN has told of, by the chassis' name. What is
	// not in it is unknown.
	Bridges map[string]Bridges
	// Reports are the conflicts that the guard of each node reports, by node and address. They may be
	// stale or forged: package slb decides which of them count.
	Reports map[string]map[netip.Addr]Conflict
	// Conflicts are the reports that count: answers to our own questions.
	Conflicts map[netip.Addr]Conflict
	// Announced are addresses that the network's own database announces now, of those Services whose status
	// does not say it (Contested, ExternalIPs). It is nil while that database can't be read.
	Announced map[netip.Addr]bool
	// Misplaced are addresses of which OVN's logical flows are in the wrong routers.
	Misplaced map[netip.Addr]bool
	// Leaving are the addresses in statuses of Services that are not served any more, until
	// those are cleared, as far as no served Service's status has them.
	Leaving map[netip.Addr]Key
	// HeldExternalIPs are newer than those of the Services in it: decided by us, and not yet in
	// their statuses.
	HeldExternalIPs map[Key][]netip.Addr
}

// Conflict is the sight of a stranger that answers for an address (RFC 5227 for IPv4,
// RFC 4862 section 5.4 for IPv6).
type Conflict struct {
	// MAC is the stranger's, Node who saw it.
	MAC, Node string
	// Since is when it was seen first; it stays as long as the conflict lasts.
	Since time.Time
	// Probe is the ID of the question that it answers.
	Probe string
}

// Cluster is what all objects share.
type Cluster struct {
	// ID tells this cluster from others on the same segment (the UID of namespace
	// kube-system); MAC addresses are derived from it.
	ID string
	// PodNets are the cluster subnets of OVN-Kubernetes, ServiceNets the ClusterIP ranges.
	PodNets, ServiceNets []netip.Prefix
	// InternalNets are those that OVN-Kubernetes has for itself (join, transit, masquerade), as
	// far as OpenShift tells them.
	InternalNets []netip.Prefix
	// Switch says what shall work.
	Switch Switch
	// AutoAssignCIDRs are OpenShift's, as written there: if there are any, OpenShift gives
	// addresses to Services itself, and nobody else shall.
	AutoAssignCIDRs []string
	// MaxBackends bounds what is programmed of a Service: addresses x ports x endpoints. 0 for no bound.
	MaxBackends int
	// OpenShiftSDN: there is no OVN. Addresses are held by the kernels of nodes.
	OpenShiftSDN bool
	// NoDatabase: no northbound database is configured, so no segment can be served. With OpenShift SDN none is needed.
	NoDatabase bool
}

// Key names a Service.
type Key struct{ Namespace, Name string }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// Pool is a set of addresses to give to Services.
type Pool struct {
	Name    string
	Created time.Time
	// Ranges are the addresses in the order in which the user wrote them, Exclude those of them never given.
	Ranges, Exclude []netipx.IPRange
	// AutoAssign lets Services that name neither pool nor address draw from it.
	AutoAssign bool
	// ExternalIPs answers for addresses of the pool that Services list themselves.
	ExternalIPs bool
	// SharedByCluster lets Services of different namespaces share addresses of the pool.
	SharedByCluster bool
	// AvoidBuggyIPs leaves out IPv4 addresses that end in .0 or .255.
	AvoidBuggyIPs bool
	// Disabled keeps what is given and gives nothing new.
	Disabled bool
	// Admission narrows the Services that the pool serves; nil serves every one, after
	// the pools that have it.
	Admission *Admission
	// Quota bounds the addresses that the Services of one namespace may have; 0 for no bound.
	Quota int
	// Reservations are addresses that are given to nobody but the Service named.
	Reservations []Reservation
	// ReuseDelay is how long an address rests between two Services; 0 for not at all.
	ReuseDelay time.Duration
	// Leases say who had which address of a pool with a ReuseDelay when that was
	// decided last; a shared address has one for each of its Services.
	Leases []Lease
	// Problems are the reasons why this pool can't give addresses (field, value and what is wrong); empty if usable.
	Problems []string
}

// Domain is one physical layer 2 segment.
type Domain struct {
	Name    string
	Created time.Time
	// Pools names the pools whose addresses live on this segment, Nodes the nodes
	// that the selectors choose; both resolved by the reader.
	Pools, Nodes []string
	// PhysicalNetwork is the network name of ovn-bridge-mappings.
	PhysicalNetwork string
	// VLAN is the 802.1Q tag, 0 for none.
	VLAN    int
	Subnets []Subnet
	// MaxGateways bounds the gateways of a shard, 0 for no bound.
	MaxGateways int
	// Shards is the number of failover units, 0 for the default.
	Shards int
	// Detect is the BFD interval between gateways, DetectMultiplier how many may be missed.
	Detect           time.Duration
	DetectMultiplier int
	// Preempt lets a returning gateway take its shards back.
	Preempt bool
	// Anchors are the external addresses of each shard, by its index, as the status of the
	// domain tells them.
	Anchors  map[int][]netip.Addr
	Problems []string
}

// Subnet is an address range of a segment; Gateway is its next hop, the zero Addr for none.
type Subnet struct {
	Prefix  netip.Prefix
	Gateway netip.Addr
}

// Node is a machine of the cluster.
type Node struct {
	Name string
	// Chassis is the node's system-id in OVN's southbound database, empty while OVN-Kubernetes has not told it.
	// With OpenShift SDN it is the node's name.
	Chassis string
	// Zone is OVN-Kubernetes' name for those whose databases configure the node: "global" where the cluster has one zone,
	// the node's name with interconnect. Empty stands for global.
	Zone string
	// Addrs are the node's own addresses: never given to a Service.
	Addrs []netip.Addr
	// Links are those of its addresses that come with a subnet, with its length.
	Links []netip.Prefix
	// PodSubnets are those that the addresses of its pods are from, as OVN-Kubernetes tells; a family without one
	// is not known.
	PodSubnets []netip.Prefix
	// Hosts are the addresses that pods on its own network have, at most one a family, as
	// far as OVN can reach them.
	Hosts []Host
	// GatewayBridge is the bridge of OVN-Kubernetes' own gateway, empty while it is not known. SharedGateway means that
	// traffic for Services goes from its uplink straight to OVN (gateway mode shared) rather than through the host.
	GatewayBridge string
	SharedGateway bool
	// NextHops are the routers that the node's own default routes go to: they, too, are
	// never given to a Service.
	NextHops []netip.Addr
	// External are the addresses at which the node takes traffic to addresses of Services,
	// the first of each family.
	External []netip.Addr
	// NetworkUnavailable says that the node's network is not set up (its condition of that
	// name), so that nothing may be sent there.
	NetworkUnavailable bool
	// Unreachable: the kubelet has not reported for a while (Ready is Unknown).
	Unreachable bool
	// Draining says why the node shall carry nothing (the signal and its value), empty if it may.
	Draining string
	// Guarded: a guard runs on the node and answers questions about its segments.
	Guarded bool
	// Faults say what keeps the node from serving a physical network although OVN believes
	// that it does, as its own guard sees it: by the name of the network, or EveryNetwork.
	Faults map[string]string
	// Localnets are the ports that OVN has on the node's bridges for L2Domains, as its guard reports them, by the name of
	// the localnet port. It is nil if no guard reports them.
	Localnets map[string]Localnet
	// Kernel is what an OpenShift SDN node's own agent and annotation say, nil without either.
	Kernel *Kernel
}

// Localnet is OVN's port on a bridge for an L2Domain. Stale are the addresses of which flows of the bridge keep
// requests (ARP, neighbour solicitations) away from it, sorted.
type Localnet struct {
	Bridge string
	Stale  []netip.Addr
}

// Host is an address that pods on the network of their node have.
type Host struct {
	Addr netip.Addr
	// Masquerade can stand for clients: the node sends what is for it to OVN, and nobody has it.
	Masquerade netip.Addr
}

// EveryNetwork stands for all physical networks of a node.
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

// FamilyPolicy says how many families a Service wants (KEP-563).
type FamilyPolicy uint8

// The values of spec.ipFamilyPolicy.
const (
	SingleStack FamilyPolicy = iota
	PreferDualStack
	RequireDualStack
)

// Service is a Service of type LoadBalancer that is ours to serve. Services of other
// types or classes, and those being deleted, are not in a Snapshot.
type Service struct {
	Key     Key
	UID     string
	Created time.Time
	Labels  map[string]string
	// Families in the order of spec.ipFamilies; at least one.
	Families     []Family
	FamilyPolicy FamilyPolicy
	// Requested are the addresses asked for, RequestedPool the pool; empty for any.
	// RequestedBy and PoolRequestedBy are the field or annotation that asks.
	Requested                    []netip.Addr
	RequestedPool                string
	RequestedBy, PoolRequestedBy string
	// Assigned are the addresses in status.loadBalancer.ingress.
	Assigned []netip.Addr
	// ListsPorts: the first entry of status.loadBalancer.ingress has ports.
	ListsPorts bool
	// Given are the addresses that the status says we gave (condition Allocated). Those of
	// Assigned that are not among them are another controller's.
	Given []netip.Addr
	// NamesClass: spec.loadBalancerClass is ours, so that no other controller serves the Service.
	NamesClass bool
	// Contested: the status says that an address is not announced because another host answers for it.
	Contested bool
	// ExternalIPs are the addresses that the user says lead to the Service (spec.externalIPs),
	// HeldExternalIPs those that the status says are the Service's own (condition ExternalIPs).
	ExternalIPs, HeldExternalIPs []netip.Addr
	Ports                        []Port
	// SharingKey lets Services that have the same one have one address; empty shares none.
	SharingKey string
	// Selector is spec.selector: the labels of the pods.
	Selector map[string]string
	// ClientAffinity is sessionAffinity: ClientIP.
	ClientAffinity bool
	// LocalPolicy is externalTrafficPolicy: Local.
	LocalPolicy bool
	// SourceRanges is loadBalancerSourceRanges; empty admits everyone. The zero Prefix stands
	// for one that could not be read, and admits nobody.
	SourceRanges []netip.Prefix
	Slices       []*Slice
	// Problems are the fields of the object that can't be understood or served (field,
	// value, what is wrong): the Service gets nothing until they are mended.
	Problems []string
	// Limits are fields in use that this release serves only in part; told to the user, otherwise harmless.
	Limits []string
	// Layer2Limits are those of L2Domains: they do not concern a Service that is announced by BGP alone.
	Layer2Limits []string
}

// Port is a port that a Service listens on. Name ties it to the ports of the slices.
type Port struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Compare orders ports by their names, then protocol: by what ties those of Services and slices together.
func (p Port) Compare(o Port) int {
	return cmp.Or(cmp.Compare(p.Name, o.Name), cmp.Compare(p.Protocol, o.Protocol))
}

// Slice is an EndpointSlice of one family.
type Slice struct {
	Family Family
	// Ports are sorted (Port.Compare): there may be thousands, and each is looked for.
	Ports     []Port
	Endpoints []Endpoint
}

// Endpoint is one backend with the conditions of KEP-1672.
type Endpoint struct {
	Addr                        netip.Addr
	Node                        string
	Ready, Serving, Terminating bool
}

// ShardID names a unit of failover: shard Index of a domain, from 0.
type ShardID struct {
	Domain string
	Index  int
}

// Compare orders shards by domain, then index.
func (s ShardID) Compare(o ShardID) int {
	return cmp.Or(cmp.Compare(s.Domain, o.Domain), cmp.Compare(s.Index, o.Index))
}

// Carrier is what OVN says of a shard: the chassis that has claimed it (empty if none
// or unknown), whether that claim has stood for a while, the chassis of its HA chassis
// group by descending priority, and how far its rows say that a planned move has come.
type Carrier struct {
	Active   string
	Settled  bool
	Order    []string
	Handover Handover
}

// Handover is how far the planned move of a shard to another gateway has come.
type Handover uint8

// The steps of a handover.
const (
	// NoHandover: the shard stays where it is.
	NoHandover Handover = iota
	// HandoverAwaited: the gateway that shall have the shard has not claimed it yet.
	HandoverAwaited
	// HandoverClaimed: it has, a moment ago.
	HandoverClaimed
)

func (h Handover) String() string { return [...]string{"none", "awaited", "claimed"}[h] }
