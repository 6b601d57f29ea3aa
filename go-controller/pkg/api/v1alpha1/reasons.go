// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types on Services.
const (
	// ConditionAllocated reports whether the Service has the addresses that it requests. If True, the message begins
	// with the allocated addresses, separated by ", ". After a restart, the controller uses them to distinguish its own
	// addresses in the status from those of another controller.
	ConditionAllocated = "slb.k8s.ovn.org/Allocated"
	// ConditionExternalIPs reports which addresses of spec.externalIPs belong to the Service, in pools with
	// externalIPs. It is absent if the Service lists none. If True, the message contains these addresses, separated by
	// ", ": no other Service, not even an older one, gets them while this Service lists them.
	ConditionExternalIPs = "slb.k8s.ovn.org/ExternalIPs"
	// ConditionAnnounced reports whether the addresses are reachable from outside the cluster, as far as the dataplanes
	// know. Reason and message describe the first failure on the path.
	ConditionAnnounced = "slb.k8s.ovn.org/Announced"
)

// Reasons of ConditionAllocated. If the condition is True, a reason marked False explains why the Service has its
// present addresses instead of the requested ones.
const (
	// ReasonAllocated (True): every requested family has an address.
	ReasonAllocated = "Allocated"
	// ReasonPartlyAllocated (True): one family has no address yet.
	ReasonPartlyAllocated = "PartlyAllocated"
	// ReasonDisabledByMode (False): service load balancers are disabled by the mode (AnnotationMode), so no pool
	// allocates addresses. Also a reason of ConditionAnnounced (False), if the dataplanes that would announce the
	// addresses are disabled, and of pools, L2Domains, BGPPeers and BGPNodeStatuses (Ready=False).
	ReasonDisabledByMode = "DisabledByMode"
	// ReasonOpenShiftAssigns (False): OpenShift itself assigns addresses (autoAssignCIDRs of its Network
	// configuration), so no pool does. Also a reason of pools (Ready=False).
	ReasonOpenShiftAssigns = "OpenShiftAssigns"
	// ReasonNoPool (False): the Service requests no pool, and no pool may serve it automatically.
	ReasonNoPool = "NoPool"
	// ReasonPoolNotFound (False): the requested pool does not exist.
	ReasonPoolNotFound = "PoolNotFound"
	// ReasonPoolInvalid (False): the requested pool is not accepted.
	ReasonPoolInvalid = "PoolInvalid"
	// ReasonPoolDisabled (False): the requested pool allocates no new addresses.
	ReasonPoolDisabled = "PoolDisabled"
	// ReasonNotAdmitted (False): the requested pool, or the pool of the requested address, does not serve the Service
	// (serviceAllocation). If True, the pool of an address in spec.externalIPs does not serve the Service, or no such
	// addresses at all (externalIPs).
	ReasonNotAdmitted = "NotAdmitted"
	// ReasonQuotaExceeded (False): the namespace has reached the quota of the pools that may serve the Service
	// (quotaPerNamespace).
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPoolExhausted (False): all addresses of a family are in use or in cooldown (reuseDelay) in the pools that
	// may serve the Service.
	ReasonPoolExhausted = "PoolExhausted"
	// ReasonFamilyUnavailable (False): the pools that may serve the Service have no addresses of a family.
	ReasonFamilyUnavailable = "FamilyUnavailable"
	// ReasonAddressInUse (False): the requested address belongs to another Service. If True, the address in the status
	// belongs to another Service, and this Service got another address.
	ReasonAddressInUse = "AddressInUse"
	// ReasonAddressExcluded (False): the requested address is never allocated to the Service. Its pool excludes it
	// (exclude, avoidBuggyIPs) or reserves it for another Service (reservations), or it is the address of a node or an
	// EgressIP, a next hop, the first or the broadcast address of a subnet, or in a pod or Service network.
	ReasonAddressExcluded = "AddressExcluded"
	// ReasonAddressCoolingDown (False): the requested address recently belonged to another Service and is in cooldown
	// (reuseDelay). The message contains the time at which the cooldown ends.
	ReasonAddressCoolingDown = "AddressCoolingDown"
	// ReasonAddressConflict (False): a host outside the cluster answers for the requested address. If True, it answers
	// for an address that the Service has and keeps. Also a reason of ConditionAnnounced (False): the guard of a
	// gateway found the conflict, so the address is not announced until no other host answers for it. If Announced is
	// True, the host took the address later; it stays announced, and both answer.
	ReasonAddressConflict = "AddressConflict"
	// ReasonAddressNotInPool (False): no pool contains the requested address, or the requested pool does not contain
	// it.
	ReasonAddressNotInPool = "AddressNotInPool"
	// ReasonClaimPending (False): the provider of an external pool has not fulfilled the IPAddressClaim in the message
	// yet, or the claim cannot be created.
	ReasonClaimPending = "ClaimPending"
	// ReasonClaimRefused (False): the provider of an external pool refuses the IPAddressClaim in the message (its
	// condition Ready is False). Also a reason of pools (Ready=False).
	ReasonClaimRefused = "ClaimRefused"
	// ReasonClaimUnusable (False): the address with which the provider of an external pool fulfilled the IPAddressClaim in
	// the message cannot be allocated: it is no unicast address of the pool's family, another pool or Service has it, it
	// is in no subnet of the L2Domain, and so on. Also a reason of pools (Ready=False).
	ReasonClaimUnusable = "ClaimUnusable"
	// ReasonForeignAddress (False): another controller wrote an address to the status that no pool would allocate: it
	// is in no pool, excluded, the address of a node or a next hop, and so on; or it wrote a host name. The status is
	// not changed and nothing in it is announced. The Service gets no address until it is cleared or
	// spec.loadBalancerClass selects a controller. If True, such an address or host name was removed, because
	// spec.loadBalancerClass is LoadBalancerClass or this controller allocated the other addresses.
	ReasonForeignAddress = "ForeignAddress"
	// ReasonInvalidRequest (False): the request of the Service is malformed or contradicts itself. The Service gets no
	// new address until it is corrected.
	ReasonInvalidRequest = "InvalidRequest"
	// ReasonAddressRetained (True): the address is kept although its pool would no longer allocate it: the pool no
	// longer contains it, excludes it, does not serve the Service, is disabled, invalid or deleted, or another pool has
	// its range now, and the Service requested the former one. Or a node or an EgressIP has the address as well, or its
	// IPAddressClaim is gone, is being deleted, or has another one. The address is released when the Service is
	// recreated, or, one of spec.externalIPs, when the Service no longer lists it.
	ReasonAddressRetained = "AddressRetained"
)

// Reasons of ConditionExternalIPs.
const (
	// ReasonHeld (True): the addresses in the message belong to the Service.
	ReasonHeld = "Held"
	// ReasonNoneHeld (False): none of the addresses belongs to the Service; ConditionAllocated explains why.
	ReasonNoneHeld = "NoneHeld"
)

// Reasons of ConditionAnnounced.
const (
	// ReasonAnnounced (True): a gateway answers for every address, or nodes advertise it.
	ReasonAnnounced = "Announced"
	// ReasonNotAllocated (False): there is no address to announce.
	ReasonNotAllocated = "NotAllocated"
	// ReasonNoDomain (False): no L2Domain and no BGPAdvertisement selects the pool. For an address that is in no pool:
	// no L2Domain has a subnet with it, and no BGPAdvertisement selects all pools. If one selects it and has no effect,
	// Announced has its reason instead (NoNodes, PeerNotFound, CommunityNotFound, Invalid), and the message its name.
	ReasonNoDomain = "NoDomain"
	// ReasonZoneLagging (Announced=True): with interconnect, the zone of a node with endpoints has not applied the latest
	// change.
	ReasonZoneLagging = "ZoneLagging"
	// ReasonUnsteady (Unknown): the address is announced, but ceased to be so more than twice within minutes. It must last
	// for 10 s to 1 min before the condition is True again.
	ReasonUnsteady = "Unsteady"
	// ReasonDomainNotReady (False): the L2Domain is not accepted. As a reason of ConditionAllocated: no gateway of the
	// L2Domain can serve a new address yet.
	ReasonDomainNotReady = "DomainNotReady"
	// ReasonAddressOutsideSubnets (False): no subnet of the L2Domain contains the address, so hosts on the segment
	// would never send ARP or neighbor discovery requests for it. On a pool: this is so for all of its addresses.
	ReasonAddressOutsideSubnets = "AddressOutsideSubnets"
	// ReasonNoGateway (False): no node can be a gateway of the L2Domain.
	ReasonNoGateway = "NoGateway"
	// ReasonStaleFlow (False): a flow of OVN-Kubernetes on the bridge of the gateway prevents requests for an address
	// from reaching OVN.
	ReasonStaleFlow = "StaleFlow"
	// ReasonMisplacedFlow (False): because of a bug in ovn-northd, the logical flows of an address are in the wrong
	// routers.
	ReasonMisplacedFlow = "MisplacedFlow"
	// ReasonNoGuard (Unknown): no guard on the gateway reports whether its bridge lets requests for an address through.
	ReasonNoGuard = "NoGuard"
	// ReasonNoActiveGateway (False): no gateway has claimed the shard of an address.
	ReasonNoActiveGateway = "NoActiveGateway"
	// ReasonSeveralActiveGateways (False): with interconnect, more than one gateway has claimed the shard of an address,
	// and clients reach one or the other.
	ReasonSeveralActiveGateways = "SeveralActiveGateways"
	// ReasonGatewayFaulty (False): with interconnect, a gateway whose ovs-vswitchd does not work can't release the shard
	// of an address, which another one has claimed.
	ReasonGatewayFaulty = "GatewayFaulty"
	// ReasonNoSession (False): addresses that are announced only by BGP are advertised by no node: no selected node has
	// an established session. Also a reason of BGPPeers (Ready=False).
	ReasonNoSession = "NoSession"
	// ReasonEgressUnserved (True): the address is reachable, but connections that the pods open from it (EgressService of
	// OVN-Kubernetes with sourceIPBy: LoadBalancerIP) get no replies by layer 2, or are not opened from it.
	ReasonEgressUnserved = "EgressUnserved"
	// ReasonNoEndpoints (False): no endpoint of the Service is ready, or gateways reach none because OVN's tunnels between
	// nodes are down.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonTooManyBackends (False): addresses x ports x endpoints exceed what the controller writes to OVN for one
	// Service (--max-service-backends), for a namespace (--max-namespace-backends) or in total (--max-backends), or the
	// Service has more than 2,500 addresses, counted for each protocol. The existing configuration of the Service is
	// removed from OVN, not kept.
	ReasonTooManyBackends = "TooManyBackends"
	// ReasonTooManySourceRanges (False): spec.loadBalancerSourceRanges has more than 2,000 ranges after adjacent and
	// overlapping ones were merged. The existing configuration of the Service is removed from OVN, not kept.
	ReasonTooManySourceRanges = "TooManySourceRanges"
	// ReasonUnsupported (False): the Service uses a field that the dataplane in use does not support; the message names
	// the field. Or no L2Domain can be served in this cluster.
	ReasonUnsupported = "Unsupported"
	// ReasonServiceNotSelected (False): the serviceSelectors of the L2Domain do not match the labels of the Service, and
	// no BGPAdvertisement selects its address.
	ReasonServiceNotSelected = "ServiceNotSelected"
	// ReasonOtherServiceProxy (False): the Service has the label service.kubernetes.io/service-proxy-name, so another
	// service proxy serves it, and kube-proxy and OVN-Kubernetes ignore it (KEP-2447). It keeps its addresses.
	ReasonOtherServiceProxy = "OtherServiceProxy"
	// ReasonProgramming (Unknown): the dataplane has not confirmed the configuration yet.
	ReasonProgramming = "Programming"
	// ReasonNotTranslated (Unknown): ovn-northd has not translated the rows of the Service for 30 s. OVN keeps what it
	// had.
	ReasonNotTranslated = "NotTranslated"
	// ReasonDatabaseUnreachable (Unknown): the controller is not connected to OVN's databases, so it does not know
	// whether a gateway answers. OVN keeps its configuration. Also a reason of L2Domains (Ready).
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonDataplaneError (False): the dataplane returned an error; the controller retries.
	ReasonDataplaneError = "DataplaneError"
)

// Condition types on the kinds of this group.
const (
	// ConditionModeAccepted, on IPAddressPools, reports whether AnnotationMode is a valid mode. It is present while the
	// annotation is. The reason is the mode in force: Disabled, Layer2, BGP or Layer2AndBGP.
	ConditionModeAccepted = "ModeAccepted"
	// ConditionAccepted reports whether the object is valid and in effect.
	ConditionAccepted = "Accepted"
	// ConditionReady reports whether the object currently works: a pool has addresses to allocate, a domain has
	// gateways, the sessions of a peer are established.
	ConditionReady = "Ready"
)

// Reasons of the conditions on the kinds of this group.
const (
	// ReasonAccepted (Accepted=True): the object is valid.
	ReasonAccepted = "Accepted"
	// ReasonInvalid (Accepted=False): the object is invalid by itself.
	ReasonInvalid = "Invalid"
	// ReasonReady (Ready=True): the object works.
	ReasonReady = "Ready"
	// ReasonDisabled (Ready=False): the object is disabled by its own spec.
	ReasonDisabled = "Disabled"
	// ReasonExhausted (Ready=False): all addresses of the pool are in use or in cooldown.
	ReasonExhausted = "Exhausted"
	// ReasonNoClaims (Ready=False), on pools with an externalPool: the API server has no IPAddressClaims, or the
	// controller cannot read or write them.
	ReasonNoClaims = "NoClaims"
	// ReasonNoPools (Ready=False): the object has no pool: no pool exists, or older objects have them.
	ReasonNoPools = "NoPools"
	// ReasonGatewaysDraining (Ready=True): the object works, but a planned outage was announced for all of its
	// gateways. They continue to serve because there are no others.
	ReasonGatewaysDraining = "GatewaysDraining"
	// ReasonTooFewGateways (Ready=True): the object works, but with fewer than 3 gateways the loss of one may not be
	// survived.
	ReasonTooFewGateways = "TooFewGateways"
	// ReasonPartlyUsable (Accepted=True, Ready=True): the object works, except for what the message names. Also a reason
	// of Services (Announced=True): the addresses of one family have no usable endpoint, or gateways do not reach some
	// endpoints because OVN's tunnels of a node are down.
	ReasonPartlyUsable = "PartlyUsable"
	// ReasonDraining (Ready=False), on BGPNodeStatuses: the node is draining: its routes are withdrawn, then its
	// sessions are closed.
	ReasonDraining = "Draining"
	// ReasonStopped (Ready=False), on BGPNodeStatuses: the BGP daemon of the node was stopped, and its sessions have
	// ended.
	ReasonStopped = "Stopped"
	// ReasonNotRead (Ready=False), on BGPNodeStatuses: the BGP daemon of the node has been unable for two minutes to read
	// a kind that it decides from, while it could read others, so that it advertises by what it read before. Also a reason
	// of Services (Announced, Unknown) that only such nodes may advertise.
	ReasonNotRead = "NotRead"
	// ReasonSessionsDown (Ready=False): on BGPPeers, some nodes have no established session; on BGPNodeStatuses, some
	// sessions of the node are not established.
	ReasonSessionsDown = "SessionsDown"
	// ReasonNoFRRK8s (Ready=False or Unknown), on BGPPeers with backend FRRK8s: the controller has no
	// --frr-k8s-namespace, the cluster has no frr-k8s, or its objects cannot be read.
	ReasonNoFRRK8s = "NoFRRK8s"
	// ReasonFRRConflict (Ready=False), on BGPPeers with backend FRRK8s: on some nodes, FRRConfigurations contradict each
	// other or the BGPPeer, or are not read because they are too large, so that nothing is written for these nodes, or
	// refer to a Secret that does not exist, so that frr-k8s applies nothing there. On Services (Announced=False), also:
	// FRR has the family not activated for the peer.
	ReasonFRRConflict = "FRRConflict"
	// ReasonFRRRefused (Ready=False), on BGPPeers with backend FRRK8s: the API server refused an FRRConfiguration.
	ReasonFRRRefused = "FRRRefused"
	// ReasonTooManyRoutes (Ready=False), on BGPPeers with backend FRRK8s: there are more prefixes than FRR is given
	// (1,000, and 100,000 prefixes x nodes of Services with externalTrafficPolicy Local). Namespaces have equal shares
	// and what others leave, in which those that are advertised already and then those of the oldest Services come first.
	// On Services (Announced, False): an address is not among them.
	ReasonTooManyRoutes = "TooManyRoutes"
	// ReasonNotWithdrawn (Ready=False), on BGPPeers whose backend is or was FRRK8s: FRR on some nodes advertises routes
	// that it should have withdrawn.
	ReasonNotWithdrawn = "NotWithdrawn"
	// ReasonNodeSilent (Unknown), on Services (Announced), BGPPeers and BGPNodeStatuses (Ready): the sessions that
	// nodes reported have expired. On Services also: the agent of the active gateway of an address does not report.
	ReasonNodeSilent = "NodeSilent"
)

// Reasons of Accepted on the BGP kinds. If False, the object has no effect. If True, the message describes what is
// missing.
const (
	// ReasonSecretNotFound (False): the Secret of a BGPPeer does not exist or has no password.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonProfileNotFound (True): the BFDProfile does not exist, so BFD is not used.
	ReasonProfileNotFound = "ProfileNotFound"
	// ReasonCommunityNotFound (False): no Community defines a name in communities. Without the community, routes could
	// be propagated too far.
	ReasonCommunityNotFound = "CommunityNotFound"
	// ReasonPeerNotFound: a BGPPeer in peers does not exist. False if none of them exists. ReasonPoolNotFound is the
	// equivalent for pools.
	ReasonPeerNotFound = "PeerNotFound"
	// ReasonNoNodes (False): nodeSelectors select no node, or no BGP session carries the IP family of an address. Also a
	// reason of BGPPeers (Ready=False).
	ReasonNoNodes = "NoNodes"
	// ReasonDuplicatePeer: an older BGPPeer has the same peer on the same nodes. False if no node is left. Or
	// FRRConfigurations of others have the same session (True), and a router has only one of the two.
	ReasonDuplicatePeer = "DuplicatePeer"
	// ReasonDuplicateName (True): an older Community defines a name with a different value.
	ReasonDuplicateName = "DuplicateName"
	// ReasonAttributesDiffer (True): an older BGPAdvertisement advertises the same prefix to a peer with different
	// attributes, which take precedence.
	ReasonAttributesDiffer = "AttributesDiffer"
	// ReasonSharedSession (True), on BGPPeers with backend FRRK8s: another FRRConfiguration defines the session, and
	// fields of the BGPPeer that differ from it have no effect.
	ReasonSharedSession = "SharedSession"
	// ReasonRouteAdvertisements (True), on BGPPeers with backend FRRK8s: RouteAdvertisements of OVN-Kubernetes select the
	// FRRConfigurations of the BGPPeer. It copies them, or rejects the RouteAdvertisements because of them.
	ReasonRouteAdvertisements = "SelectedByRouteAdvertisements"
	// ReasonNotInFRRK8s (True), on BGPAdvertisements: attributes that FRRConfigurations do not have are not sent to
	// BGPPeers with backend FRRK8s, or routes with nextHop: Gateway are not advertised to them.
	ReasonNotInFRRK8s = "NotInFRRK8s"
	// ReasonAggregateTooWide (True): an aggregate extends beyond the pool, so its addresses are advertised
	// individually.
	ReasonAggregateTooWide = "AggregateTooWide"
)

// Reasons of excluded nodes. They say why a node is not a gateway of an L2Domain, in its status.excludedNodes.
const (
	// ExcludedNoChassis: OVN does not know the node, or does not know it yet.
	ExcludedNoChassis = "NoChassis"
	// ExcludedOtherZone: the node is in a different zone of OVN-Kubernetes (k8s.ovn.org/zone-name) than most nodes, so
	// it is configured by a different northbound database.
	ExcludedOtherZone = "OtherZone"
	// ExcludedNoAgent: `ovnkube-slb node --enable-l2` (with interconnect) or `ovnkube-slb node --enable-sdn` (with
	// OpenShift SDN) has not reported from the node.
	ExcludedNoAgent = "NoAgent"
	// ExcludedNoOverlay: with interconnect, the node's databases have no transit switch (transport no-overlay of
	// OVN-Kubernetes), so OVN reaches no other node.
	ExcludedNoOverlay = "NoOverlay"
	// ExcludedNotAttached: the node's ovn-bridge-mappings do not contain physicalNetwork, so it is not connected to the
	// segment. With OpenShift SDN: the node has no address in a subnet of the domain.
	ExcludedNotAttached = "NotAttached"
	// ExcludedSharedGateway: physicalNetwork is the bridge of OVN-Kubernetes' own gateway in shared mode, which
	// intercepts all packets to addresses of Services without their VLAN, and the segment has a VLAN.
	ExcludedSharedGateway = "SharedGateway"
	// ExcludedNoGuard: physicalNetwork is the bridge of OVN-Kubernetes' own gateway, and no guard
	// (`ovnkube-slb node`) reports from the node whether that bridge lets requests through to OVN.
	ExcludedNoGuard = "NoGuard"
	// ExcludedPortMissing: physicalNetwork is the bridge of OVN-Kubernetes' own gateway, and OVN's port for the domain
	// is not on it yet.
	ExcludedPortMissing = "PortMissing"
	// ExcludedDraining: a planned outage of the node was announced. The node remains the last gateway of its shards and
	// serves them if all others fail.
	ExcludedDraining = "Draining"
	// ExcludedFaulty: the node's guard reports that the node cannot serve the network although OVN considers it able
	// to: its uplink is lost, ovn-controller does not work, or stale flows on br-ex keep requests from OVN. The node
	// remains the last gateway of its shards and keeps those for which there is no better one.
	ExcludedFaulty = "Faulty"
	// ExcludedEnoughGateways: every shard has gateways.max gateways without this node.
	ExcludedEnoughGateways = "EnoughGateways"
)

// Reasons of Events. There is one Event per transition. The Events are on Services unless noted otherwise.
const (
	// EventIPAllocated: an address was allocated to the Service.
	EventIPAllocated = "IPAllocated"
	// EventAllocationFailed: no address was allocated to the Service; the message explains why. While a claim is pending
	// (ReasonClaimPending), only after 30 s.
	EventAllocationFailed = "AllocationFailed"
	// EventAddressRetained: the Service keeps an address that it would not get any more; the message explains why.
	EventAddressRetained = "AddressRetained"
	// EventIPReleased: the Service's address was released.
	EventIPReleased = "IPReleased"
	// EventAnnounced: the Service's addresses became reachable.
	EventAnnounced = "Announced"
	// EventAnnouncementFailed: the Service has addresses that are not announced, for the reason in the message.
	EventAnnouncementFailed = "AnnouncementFailed"
	// EventAddressConflict: a host outside the cluster answers for an address of the Service. It is not announced, or both
	// answer.
	EventAddressConflict = "AddressConflict"
	// EventAllocationSuspended, on an IPAddressPool: the pool allocates no addresses, because OpenShift assigns
	// addresses itself or service load balancers are disabled.
	EventAllocationSuspended = "AllocationSuspended"
	// EventAllocationResumed, on an IPAddressPool: the pool allocates addresses again.
	EventAllocationResumed = "AllocationResumed"
	// EventModeChanged, on OpenShift's Network (operator.openshift.io): the set of enabled dataplanes changed.
	EventModeChanged = "ModeChanged"
	// EventModeRefused, on OpenShift's Network (operator.openshift.io): the value of AnnotationMode is not a valid
	// mode, so the previous mode remains in force.
	EventModeRefused = "ModeRefused"
	// EventGatewayChanged, on an L2Domain: the active gateway of one or more shards changed. The message names the
	// shards, the old gateway and the new gateway.
	EventGatewayChanged = "GatewayChanged"
	// EventMoveFailed, on an L2Domain: shards were not moved as AnnotationMove requests. The message explains why.
	EventMoveFailed = "MoveFailed"
	// EventGatewaysDraining, on an L2Domain: a planned outage was announced for the last gateway, too. It remains the
	// gateway until the outage.
	EventGatewaysDraining = "GatewaysDraining"
	// EventNoGateway, on an L2Domain: no node has been able to be a gateway for 5 s.
	EventNoGateway = "NoGateway"
	// EventVIPsUnreadable, on a Node: its annotation AnnotationVIPs cannot be parsed, and the node keeps the addresses
	// it holds.
	EventVIPsUnreadable = "VIPsUnreadable"
	// EventSessionsUp, on a BGPPeer: the session is established on every selected node.
	EventSessionsUp = "SessionsUp"
	// EventSessionsDown, on a BGPPeer: a node lost the session. The message names the nodes without it.
	EventSessionsDown = "SessionsDown"
)
