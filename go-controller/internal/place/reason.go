// SPDX-License-Identifier: Apache-2.0

package place

// Reason says in one word why nothing carries an address, or why a node carries
// nothing. Reasons are part of the API: they are shown in conditions, and package
// v1alpha1 lists them for users.
type Reason string

// Why nothing carries an address.
const (
	// ReasonNoDomain: no L2Domain has the pool of the address (or, for an address that
	// is in no pool, a subnet with it).
	ReasonNoDomain Reason = "NoDomain"
	// ReasonDomainNotReady: the L2Domain has problems and carries nothing.
	ReasonDomainNotReady Reason = "DomainNotReady"
	// ReasonNoGateway: none of the nodes of the L2Domain can be a gateway.
	ReasonNoGateway Reason = "NoGateway"
	// ReasonAddressOutsideSubnets: the address is in none of the subnets of its
	// L2Domain, so neighbours on the segment would never ask for it.
	ReasonAddressOutsideSubnets Reason = "AddressOutsideSubnets"
	// ReasonBackendConflict: a backend of the Service is behind an older VIP in another
	// L2Domain already; the replies of a backend have one way out only.
	ReasonBackendConflict Reason = "BackendConflict"
)

// Why a node carries nothing.
const (
	// ReasonNoChassis: the node is not known to OVN, or not yet.
	ReasonNoChassis Reason = "NoChassis"
	// ReasonEnoughGateways: all shards have gateways.max gateways without this node.
	ReasonEnoughGateways Reason = "EnoughGateways"
	// ReasonDraining: a planned outage of the node was announced. It stays the last
	// gateway of its shards, and carries them if all others fail.
	ReasonDraining Reason = "Draining"
)
