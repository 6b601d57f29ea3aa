// SPDX-License-Identifier: Apache-2.0

package ipam

// Reason says in one word why a Service waits for an address or what is remarkable
// about the one it has. Reasons are part of the API: they are shown in conditions, and
// package v1alpha1 lists them for users.
type Reason string

// Why a Service waits. With addresses, the same reasons say why it does not get those
// that it asks for instead.
const (
	// ReasonInvalidRequest: what the Service asks for can't be understood or contradicts
	// itself. It gets nothing new until that is mended.
	ReasonInvalidRequest Reason = "InvalidRequest"
	// ReasonNoPool: no pool serves Services that name none.
	ReasonNoPool Reason = "NoPool"
	// ReasonPoolNotFound: the pool that the Service names does not exist.
	ReasonPoolNotFound Reason = "PoolNotFound"
	// ReasonPoolInvalid: the pool has problems of its own and gives nothing.
	ReasonPoolInvalid Reason = "PoolInvalid"
	// ReasonPoolDisabled: the pool gives nothing new.
	ReasonPoolDisabled Reason = "PoolDisabled"
	// ReasonPoolExhausted: every address of the family is in use in the pools that the
	// Service may draw from.
	ReasonPoolExhausted Reason = "PoolExhausted"
	// ReasonFamilyUnavailable: the pools that the Service may draw from have no address
	// of a family at all.
	ReasonFamilyUnavailable Reason = "FamilyUnavailable"
	// ReasonAddressNotInPool: a requested address is in no pool, or not in the one that
	// is requested too.
	ReasonAddressNotInPool Reason = "AddressNotInPool"
	// ReasonAddressExcluded: a requested address is in a pool, but not to be given: the
	// pool leaves it out (exclude, avoidBuggyIPs), or it is a node's, a next hop, the
	// first or the broadcast address of a subnet, or in a pod or Service network.
	ReasonAddressExcluded Reason = "AddressExcluded"
	// ReasonAddressInUse: another Service has the requested address. As a remark: it has
	// the address that stood in this Service's status, so this one got another.
	ReasonAddressInUse Reason = "AddressInUse"
)

// Remarks on a Service that has an address.
const (
	// ReasonPartlyAllocated: one family has no address yet.
	ReasonPartlyAllocated Reason = "PartlyAllocated"
	// ReasonAddressLeftPool: the Service keeps an address that its pool would not give
	// any more: the pool lost it, excludes it, is disabled, invalid or gone.
	ReasonAddressLeftPool Reason = "AddressLeftPool"
)
