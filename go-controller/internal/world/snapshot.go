// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"net/netip"
	"time"
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
	// (EgressService of OVN-Kubernetes with sourceIPBy: LoadBalancerIP). There need be no Node of that name. It is empty
	// while OVN-Kubernetes has selected none.
	EgressHosts map[Key]string
	// EgressIPs are the addresses of the EgressIPs of OVN-Kubernetes, sorted, by the name of the object. It gives them to
	// nodes, which answer for them.
	EgressIPs map[string][]netip.Addr
	// EgressIPsUnread is why EgressIPs is not complete. It is empty if it is, also if the cluster has no such kind.
	EgressIPsUnread string
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
	// Anchors are the external addresses that shards have, at most one per family.
	Anchors map[ShardID][]netip.Addr
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
	// Lagging are the nodes with backends of a Service whose zones have not applied its ServicePlan for a while, sorted.
	Lagging map[Key][]string
	// Announced are the addresses that the network's own database, or with interconnect the ServicePlans, announce now,
	// limited to those of ServicesToVerify. It is nil while these cannot be read.
	Announced map[netip.Addr]bool
	// LastAnnounced are those that a database announced when it could last be read. The Services that had the addresses
	// then may have given them up since, and others may have got them.
	LastAnnounced map[netip.Addr]bool
	// Misplaced are the addresses whose logical flows OVN has in the wrong routers.
	Misplaced map[netip.Addr]bool
	// Leaving are the addresses of ours in the statuses of Services that are no longer served, until our conditions are
	// removed there. LeavingShared are those that the status of a served Service, or of one in Leaving, contains as well.
	Leaving       map[netip.Addr]Key
	LeavingShared map[Key][]netip.Addr
	// Listed are the addresses that Services list in spec.externalIPs without having them.
	Listed Listed
	// Unsettled are the addresses in statuses that earlier decisions wanted, as long as their writes may still arrive.
	Unsettled map[Key][]netip.Addr
	// Granted are the addresses that decisions of ours gave to Services, possibly none, and that are not yet in their
	// statuses.
	Granted map[Key][]netip.Addr
	// HeldExternalIPs are the addresses of spec.externalIPs that Services hold according to decisions of ours that are
	// not yet in their statuses (Service.HeldExternalIPs).
	HeldExternalIPs map[Key][]netip.Addr
	// NotRewritten are the addresses of Services whose statuses were to be rewritten so that OVN-Kubernetes recomputes
	// stale flows, and do not show it in time. NotRepaired are those whose flows stayed stale although they were rewritten
	// in time.
	NotRewritten, NotRepaired map[netip.Addr]bool
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

// Key identifies a Service.
type Key struct{ Namespace, Name string }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}
