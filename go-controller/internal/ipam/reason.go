// SPDX-License-Identifier: Apache-2.0

package ipam

import "github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"

// Reason says in one word why a Service waits for an address or what is remarkable
// about the one it has. Reasons are part of the API: package v1alpha1 has their words
// and meanings.
type Reason string

// Why a Service waits. With addresses, the same reasons say why it does not get those
// that it asks for instead.
const (
	ReasonSwitchedOff       Reason = v1alpha1.ReasonSwitchedOff
	ReasonOpenShiftAssigns  Reason = v1alpha1.ReasonOpenShiftAssigns
	ReasonInvalidRequest    Reason = v1alpha1.ReasonInvalidRequest
	ReasonNoPool            Reason = v1alpha1.ReasonNoPool
	ReasonPoolNotFound      Reason = v1alpha1.ReasonPoolNotFound
	ReasonPoolInvalid       Reason = v1alpha1.ReasonPoolInvalid
	ReasonPoolDisabled      Reason = v1alpha1.ReasonPoolDisabled
	ReasonNotAdmitted       Reason = v1alpha1.ReasonNotAdmitted
	ReasonQuotaExceeded     Reason = v1alpha1.ReasonQuotaExceeded
	ReasonPoolExhausted     Reason = v1alpha1.ReasonPoolExhausted
	ReasonFamilyUnavailable Reason = v1alpha1.ReasonFamilyUnavailable
	ReasonAddressNotInPool  Reason = v1alpha1.ReasonAddressNotInPool
	ReasonAddressExcluded   Reason = v1alpha1.ReasonAddressExcluded
	ReasonAddressConflict   Reason = v1alpha1.ReasonAddressConflict
	ReasonAddressInUse      Reason = v1alpha1.ReasonAddressInUse
	ReasonAddressResting    Reason = v1alpha1.ReasonAddressResting
	ReasonForeignAddress    Reason = v1alpha1.ReasonForeignAddress
)

// Remarks on a Service that has an address.
const (
	ReasonPartlyAllocated Reason = v1alpha1.ReasonPartlyAllocated
	ReasonAddressLeftPool Reason = v1alpha1.ReasonAddressLeftPool
)
