// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// LoadBalancerClass is the spec.loadBalancerClass of Services that ask for this
// project by name. Services without a class are served too, unless the controller
// is told otherwise.
const LoadBalancerClass = "slb.k8s.ovn.org/ovn"

// Annotations on Services. Each has the same meaning under metallb.io and
// metallb.universe.tf, which the controller can be told to read as well; ours win.
const (
	// AnnotationLoadBalancerIPs asks for addresses: one, or several separated by
	// commas, at most one a family.
	AnnotationLoadBalancerIPs = "slb.k8s.ovn.org/load-balancer-ips"
	// AnnotationAddressPool asks for addresses from the named IPAddressPool.
	AnnotationAddressPool = "slb.k8s.ovn.org/address-pool"
	// AnnotationAllowSharedIP is a sharing key: Services with the same key may
	// have the same address when their ports differ.
	AnnotationAllowSharedIP = "slb.k8s.ovn.org/allow-shared-ip"

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

// What a node's guard (`ovnkube-slb node`) and the controller tell each other: a Lease with
// the node's name, which the guard keeps. Without one, or with one that has expired, nothing
// is known of the node, and it counts as healthy.
const (
	// GuardsNamespace has the Leases, and nothing else.
	GuardsNamespace = "ovnkube-slb-guards"
	// AnnotationFaults, the guard's, is a JSON object: what is wrong, by the name of the
	// physical network, or by "*" for all of the node's.
	AnnotationFaults = "slb.k8s.ovn.org/faults"
	// AnnotationLocalnets, the guard's, is a JSON object: the ports that OVN has on the node's bridges for L2Domains, by
	// the name of the localnet port, each with its bridge and, as stale, the addresses of which the bridge's flows keep
	// requests away from it.
	AnnotationLocalnets = "slb.k8s.ovn.org/localnets"
	// AnnotationQuestions, the controller's, is a JSON list of objects with id, network, vlan,
	// addresses and own (a MAC address whose answers don't count): the guard asks these
	// segments whether anybody has these addresses.
	AnnotationQuestions = "slb.k8s.ovn.org/questions"
	// AnnotationConflicts, the guard's, is a JSON object: who has an address that was asked
	// about (mac, since, probe: the id of the question), by address. Who does not answer has none.
	AnnotationConflicts = "slb.k8s.ovn.org/conflicts"
)

// What the controller and a node's agent (`ovnkube-slb node --enable-sdn`) tell each other where
// the cluster's network is OpenShift SDN.
const (
	// AnnotationVIPs on a Node, the controller's, is a JSON list of the addresses that the node
	// holds: objects with ip, service (NAMESPACE/NAME), generation (which grows as the address
	// moves), shard (L2DOMAIN/INDEX) and interface.
	AnnotationVIPs = "slb.k8s.ovn.org/vips"
	// AnnotationAgent on the node's Lease in GuardsNamespace, the agent's, is a JSON object with
	// health, where it answers gRPC's health checks, and interfaces, the node's own addresses by
	// interface.
	AnnotationAgent = "slb.k8s.ovn.org/agent"
)

// PasswordsNamespace has the Secrets that BGPPeers name, and no others.
const PasswordsNamespace = "ovnkube-slb-bgp"

// SessionTurnLease is a Lease in PasswordsNamespace, held by the node that closes BGP sessions because BGPPeers were
// edited.
const SessionTurnLease = "session-turn"

// Annotations on the Network "cluster" of OpenShift's network operator (operator.openshift.io).
const (
	// AnnotationMode says which dataplanes work: Disabled, Layer2, BGP or Layer2+BGP.
	AnnotationMode = "slb.k8s.ovn.org/mode"
	// AnnotationReleaseOnDisable, "true", has Services lose their addresses while the mode is
	// Disabled. Otherwise they keep them.
	AnnotationReleaseOnDisable = "slb.k8s.ovn.org/release-on-disable"
)

// AnnotationDrain on a Node has its shards moved away and its BGP routes withdrawn, as
// before maintenance; the value says why, for people. It counts while it is there.
const AnnotationDrain = "slb.k8s.ovn.org/drain"

// Condition types on Services.
const (
	// ConditionAllocated says whether the Service has the addresses it asks for. With True the message
	// begins with the addresses given, separated by ", ": by them a controller that starts anew
	// tells its own addresses in the status from another controller's.
	ConditionAllocated = "slb.k8s.ovn.org/Allocated"
	// ConditionExternalIPs says which addresses of spec.externalIPs are the Service's own, in
	// pools with externalIPs; absent if it lists none. With True the message is these
	// addresses, separated by ", ": no other Service gets them while this one lists them, an
	// older one neither.
	ConditionExternalIPs = "slb.k8s.ovn.org/ExternalIPs"
	// ConditionAnnounced says whether the addresses are reachable from outside as
	// far as the dataplanes know; reason and message name the first broken link.
	ConditionAnnounced = "slb.k8s.ovn.org/Announced"
)

// Reasons of ConditionAllocated. With True, those marked False say why the Service does
// not get the addresses that it asks for instead of the ones it has.
const (
	// ReasonAllocated (True): every family asked for has its address.
	ReasonAllocated = "Allocated"
	// ReasonPartlyAllocated (True): one family has no address yet.
	ReasonPartlyAllocated = "PartlyAllocated"
	// ReasonSwitchedOff (False): service load balancers are switched off (AnnotationMode), so no
	// pool gives anything; also of ConditionAnnounced (False) where what would announce the
	// addresses is switched off, and of pools, L2Domains, BGPPeers and BGPNodeStatuses (Ready=False).
	ReasonSwitchedOff = "SwitchedOff"
	// ReasonOpenShiftAssigns (False): OpenShift allocates addresses itself (autoAssignCIDRs of
	// its Network configuration), so no pool does; also of pools (Ready=False).
	ReasonOpenShiftAssigns = "OpenShiftAssigns"
	// ReasonNoPool (False): no pool may serve the Service without being asked for.
	ReasonNoPool = "NoPool"
	// ReasonPoolNotFound (False): the pool asked for does not exist.
	ReasonPoolNotFound = "PoolNotFound"
	// ReasonPoolInvalid (False): the pool asked for is not accepted.
	ReasonPoolInvalid = "PoolInvalid"
	// ReasonPoolDisabled (False): the pool asked for gives nothing new.
	ReasonPoolDisabled = "PoolDisabled"
	// ReasonNotAdmitted (False): the pool asked for, or the one that has the address asked
	// for, does not serve the Service (serviceAllocation).
	ReasonNotAdmitted = "NotAdmitted"
	// ReasonQuotaExceeded (False): the namespace has as many addresses of the pools that
	// may serve the Service as these allow (quotaPerNamespace).
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPoolExhausted (False): every address of a family is in use, or rests
	// (reuseDelay), in the pools that may serve the Service.
	ReasonPoolExhausted = "PoolExhausted"
	// ReasonFamilyUnavailable (False): the pools that may serve the Service have no
	// address of a family at all.
	ReasonFamilyUnavailable = "FamilyUnavailable"
	// ReasonAddressInUse (False): the address asked for is another Service's. With
	// True: so is the one that stood in the status, and this Service got another.
	ReasonAddressInUse = "AddressInUse"
	// ReasonAddressExcluded (False): the address asked for is one that is never given:
	// its pool leaves it out (exclude, avoidBuggyIPs) or keeps it for another Service
	// (reservations), or it is a node's, a next hop, the
	// first or the broadcast address of a subnet, or in a pod or Service network.
	ReasonAddressExcluded = "AddressExcluded"
	// ReasonAddressResting (False): the address asked for was another Service's a short
	// while ago and rests (reuseDelay); the message says until when.
	ReasonAddressResting = "AddressResting"
	// ReasonAddressConflict (False): somebody outside of the cluster answers for the address
	// asked for. With True: for one that the Service has and keeps. Also of ConditionAnnounced
	// (False): a gateway's guard found that out, so the address is not announced until nobody
	// answers for it any more.
	ReasonAddressConflict = "AddressConflict"
	// ReasonAddressNotInPool (False): no pool has the address asked for, or not the one
	// that is asked for too.
	ReasonAddressNotInPool = "AddressNotInPool"
	// ReasonForeignAddress (False): another controller wrote an address into the status that no
	// pool would give: it is in none, excluded, a node's, a next hop and the like. It is not
	// announced and left alone, and the Service gets nothing until it is cleared or
	// spec.loadBalancerClass names who serves the Service. With True: such an address was
	// dropped, for the class is ours or the others are.
	ReasonForeignAddress = "ForeignAddress"
	// ReasonInvalidRequest (False): what the Service asks for cannot be understood
	// or contradicts itself; it gets nothing new until that is mended.
	ReasonInvalidRequest = "InvalidRequest"
	// ReasonAddressLeftPool (True): the address is kept although its pool would not
	// give it any more: the pool lost it, excludes it, does not serve the Service, is
	// disabled, invalid or gone. It goes when the Service is recreated.
	ReasonAddressLeftPool = "AddressLeftPool"
)

// Reasons of ConditionExternalIPs.
const (
	// ReasonHeld (True): the addresses in the message are the Service's own.
	ReasonHeld = "Held"
	// ReasonNoneHeld (False): none is; ConditionAllocated says why.
	ReasonNoneHeld = "NoneHeld"
)

// Reasons of ConditionAnnounced.
const (
	// ReasonAnnounced (True): a gateway answers for every address.
	ReasonAnnounced = "Announced"
	// ReasonNotAllocated (False): there is no address to announce.
	ReasonNotAllocated = "NotAllocated"
	// ReasonNoDomain (False): no L2Domain and no BGPAdvertisement takes the pool (or, for an
	// address that is in no pool, no L2Domain has a subnet with it and no BGPAdvertisement
	// takes all pools).
	ReasonNoDomain = "NoDomain"
	// ReasonDomainNotReady (False): the L2Domain is not accepted; of Allocated, that no gateway of it can take
	// a new address yet.
	ReasonDomainNotReady = "DomainNotReady"
	// ReasonAddressOutsideSubnets (False): no subnet of the L2Domain has the address, so
	// that neighbours on the segment would never ask for it.
	ReasonAddressOutsideSubnets = "AddressOutsideSubnets"
	// ReasonNoGateway (False): no node may be a gateway of the L2Domain.
	ReasonNoGateway = "NoGateway"
	// ReasonStaleFlow (False): a flow of OVN-Kubernetes on the bridge of the gateway keeps requests for an address from
	// OVN.
	ReasonStaleFlow = "StaleFlow"
	// ReasonMisplacedFlow (False): OVN has the logical flows of an address in the wrong routers, by a fault of ovn-northd.
	ReasonMisplacedFlow = "MisplacedFlow"
	// ReasonNoGuard (Unknown): no guard reports from the gateway whether its bridge lets requests for an address through.
	ReasonNoGuard = "NoGuard"
	// ReasonNoActiveGateway (False): no gateway has claimed the shard of an address.
	ReasonNoActiveGateway = "NoActiveGateway"
	// ReasonNoSession (False): addresses that only BGP tells of are told by no node: none
	// that should has an established session; also of BGPPeers (Ready=False).
	ReasonNoSession = "NoSession"
	// ReasonNoEndpoints (False): no endpoint of the Service is ready.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonTooManyBackends (False): addresses x ports x endpoints are more than the controller gives OVN of one
	// Service (--max-service-backends). What OVN had of it before is removed, not kept as it was.
	ReasonTooManyBackends = "TooManyBackends"
	// ReasonUnsupported (False): the Service asks for something that the dataplane
	// in use cannot give; the message names the field. Or no segment can be served in this cluster at all.
	ReasonUnsupported = "Unsupported"
	// ReasonProgramming (Unknown): the dataplane has not been programmed yet.
	ReasonProgramming = "Programming"
	// ReasonDatabaseUnreachable (Unknown): the controller is not connected to OVN's databases, so it does not know
	// whether a gateway answers; also of L2Domains (Ready). OVN keeps the configuration that it has.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonDataplaneError (False): the dataplane refused; retrying.
	ReasonDataplaneError = "DataplaneError"
)

// Condition types on the kinds of this group.
const (
	// ConditionModeAccepted, on IPAddressPools, says whether AnnotationMode is one of the modes,
	// as long as there is one; the reason is the mode in force: Disabled, Layer2, BGP or Layer2AndBGP.
	ConditionModeAccepted = "ModeAccepted"
	// ConditionAccepted says whether the object is valid and in effect.
	ConditionAccepted = "Accepted"
	// ConditionReady says whether the object does now what it is for: a pool
	// has addresses to give, a domain has gateways, a peer has its sessions.
	ConditionReady = "Ready"
)

// Reasons of the conditions of this group's kinds.
const (
	// ReasonAccepted (Accepted=True): nothing is wrong with the object.
	ReasonAccepted = "Accepted"
	// ReasonInvalid (Accepted=False): the object is wrong by itself.
	ReasonInvalid = "Invalid"
	// ReasonReady (Ready=True).
	ReasonReady = "Ready"
	// ReasonDisabled (Ready=False): switched off by its own spec.
	ReasonDisabled = "Disabled"
	// ReasonExhausted (Ready=False): every address of the pool is given or rests.
	ReasonExhausted = "Exhausted"
	// ReasonNoPools (Ready=False): the object gets no pool: none exists, or older ones
	// have them.
	ReasonNoPools = "NoPools"
	// ReasonGatewaysDraining (Ready=True): it works, but a planned outage was announced for
	// each of its gateways: they carry on for want of others.
	ReasonGatewaysDraining = "GatewaysDraining"
	// ReasonTooFewGateways (Ready=True): it works, but with fewer than
	// MinGatewaysForFailover gateways the loss of one may not be survived.
	ReasonTooFewGateways = "TooFewGateways"
	// ReasonPartlyUsable (Accepted=True): it works, except for what the message names.
	ReasonPartlyUsable = "PartlyUsable"
	// ReasonDraining (Ready=False), of BGPNodeStatuses: the node is to go, and so are its sessions.
	ReasonDraining = "Draining"
	// ReasonSessionsDown (Ready=False), of BGPPeers: some nodes lack the session; of
	// BGPNodeStatuses: the node lacks some.
	ReasonSessionsDown = "SessionsDown"
	// ReasonNodeSilent (Unknown): what nodes reported of their sessions has expired, of Services (Announced),
	// BGPPeers and BGPNodeStatuses (Ready).
	ReasonNodeSilent = "NodeSilent"
)

// Reasons of Accepted for the kinds for BGP. With False the object has no effect, with
// True the message says what it lacks.
const (
	// ReasonSecretNotFound (False): the Secret of a BGPPeer does not exist or has no password.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonProfileNotFound (True): the BFDProfile does not exist, so there is no BFD.
	ReasonProfileNotFound = "ProfileNotFound"
	// ReasonCommunityNotFound (False): no Community defines a name in communities. Without
	// it routes may go where they must not.
	ReasonCommunityNotFound = "CommunityNotFound"
	// ReasonPeerNotFound: a BGPPeer named does not exist; False if none of them does.
	// ReasonPoolNotFound is the same of pools.
	ReasonPeerNotFound = "PeerNotFound"
	// ReasonNoNodes (False): nodeSelectors take no node; also of BGPPeers (Ready=False).
	ReasonNoNodes = "NoNodes"
	// ReasonDuplicatePeer: an older BGPPeer has the same peer on the same nodes; False if
	// none is left.
	ReasonDuplicatePeer = "DuplicatePeer"
	// ReasonDuplicateName (True): an older Community defines a name otherwise.
	ReasonDuplicateName = "DuplicateName"
	// ReasonAttributesDiffer (True): an older BGPAdvertisement tells a peer the same prefix
	// with other attributes, which count.
	ReasonAttributesDiffer = "AttributesDiffer"
	// ReasonAggregateTooWide (True): an aggregate reaches beyond the pool, so that the
	// addresses in it are told one by one.
	ReasonAggregateTooWide = "AggregateTooWide"
)

// Reasons why a node is no gateway of an L2Domain, in its status.leftOutNodes.
const (
	// LeftOutNoChassis: the node is not known to OVN, or not yet.
	LeftOutNoChassis = "NoChassis"
	// LeftOutOtherZone: the node is in another zone of OVN-Kubernetes (k8s.ovn.org/zone-name) than most nodes are: another
	// northbound database configures it.
	LeftOutOtherZone = "OtherZone"
	// LeftOutNoAgent: with OpenShift SDN, `ovnkube-slb node --enable-sdn` has not told of the node.
	LeftOutNoAgent = "NoAgent"
	// LeftOutNotAttached: the node's ovn-bridge-mappings lack physicalNetwork, so that it
	// has no way to the segment; with OpenShift SDN, it has no address in a subnet of the domain.
	LeftOutNotAttached = "NotAttached"
	// LeftOutSharedGateway: physicalNetwork is the bridge of OVN-Kubernetes' own gateway in
	// mode shared, which takes the packets to every address of a Service for itself.
	LeftOutSharedGateway = "SharedGateway"
	// LeftOutNoGuard: physicalNetwork is the bridge of OVN-Kubernetes' own gateway, in mode local, and no guard
	// (`ovnkube-slb node`) reports from the node whether that bridge lets requests through to OVN.
	LeftOutNoGuard = "NoGuard"
	// LeftOutPortMissing: the same bridge, and OVN's port for the domain is not on it yet.
	LeftOutPortMissing = "PortMissing"
	// LeftOutDraining: a planned outage of the node was announced. It stays the last
	// gateway of its shards, and carries them if all others fail.
	LeftOutDraining = "Draining"
	// LeftOutFaulty: the node's guard reports that the node can't serve the network although
	// OVN believes that it can: its uplink is lost, or ovn-controller does not work. It
	// stays the last gateway of its shards, and keeps those for which there is no better one.
	LeftOutFaulty = "Faulty"
	// LeftOutEnough: every shard has gateways.max gateways without this node.
	LeftOutEnough = "EnoughGateways"
)

// Reasons of Events, one a transition; on Services unless said otherwise.
const (
	// EventIPAllocated: the Service got an address.
	EventIPAllocated = "IPAllocated"
	// EventAllocationFailed: the Service got none; the message says why.
	EventAllocationFailed = "AllocationFailed"
	// EventIPReleased: the Service's address was taken back.
	EventIPReleased = "IPReleased"
	// EventAnnounced: the Service's addresses became reachable.
	EventAnnounced = "Announced"
	// EventAnnouncementFailed: the Service's addresses stopped being reachable.
	EventAnnouncementFailed = "AnnouncementFailed"
	// EventAddressConflict: somebody outside of the cluster answers for an address of the
	// Service, so it is not announced.
	EventAddressConflict = "AddressConflict"
	// EventAllocationSuspended, on an IPAddressPool: OpenShift allocates addresses itself, or service
	// load balancers are switched off, so the pool gives none.
	EventAllocationSuspended = "AllocationSuspended"
	// EventAllocationResumed, on an IPAddressPool: it gives addresses again.
	EventAllocationResumed = "AllocationResumed"
	// EventModeChanged, on OpenShift's Network (operator.openshift.io): other dataplanes work now.
	EventModeChanged = "ModeChanged"
	// EventModeRefused, on the same: the value of AnnotationMode is none of the modes, so the one
	// in force stays.
	EventModeRefused = "ModeRefused"
	// EventGatewayChanged, on an L2Domain: another node answers for the addresses of a
	// shard. The message names the shards, the old and the new gateway.
	EventGatewayChanged = "GatewayChanged"
	// EventGatewaysDraining, on an L2Domain: the last gateway is to go as well, and stays
	// the gateway until it does.
	EventGatewaysDraining = "GatewaysDraining"
	// EventNoGateway, on an L2Domain: no node may be a gateway any more.
	EventNoGateway = "NoGateway"
	// EventVIPsUnreadable, on a Node: its annotation AnnotationVIPs can't be read, and the node
	// goes on holding what it holds.
	EventVIPsUnreadable = "VIPsUnreadable"
	// EventSessionsUp, on a BGPPeer: every node that shall have the session has it.
	EventSessionsUp = "SessionsUp"
	// EventSessionsDown, on a BGPPeer: a node lost the session; the message names those
	// without it.
	EventSessionsDown = "SessionsDown"
)
