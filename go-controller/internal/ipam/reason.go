// SPDX-License-Identifier: Apache-2.0

package ipam

import "github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"

// Reason is a one-word reason why a Service is pending, or a remark on the address that it has. Reasons are part of
// the API: package v1alpha1 defines their values and meanings.
type Reason string

// mayEnd reports whether a reason may end when another Service releases an address.
func (r Reason) mayEnd() bool { return r != "" && r != ReasonNotAdmitted }

// Reasons why a Service is pending. If the Service has addresses, they are the reasons why it does not get the
// addresses that it requests instead.
const (
	ReasonDisabledByMode     Reason = v1alpha1.ReasonDisabledByMode
	ReasonOpenShiftAssigns   Reason = v1alpha1.ReasonOpenShiftAssigns
	ReasonInvalidRequest     Reason = v1alpha1.ReasonInvalidRequest
	ReasonNoPool             Reason = v1alpha1.ReasonNoPool
	ReasonPoolNotFound       Reason = v1alpha1.ReasonPoolNotFound
	ReasonPoolInvalid        Reason = v1alpha1.ReasonPoolInvalid
	ReasonPoolDisabled       Reason = v1alpha1.ReasonPoolDisabled
	ReasonNotAdmitted        Reason = v1alpha1.ReasonNotAdmitted
	ReasonQuotaExceeded      Reason = v1alpha1.ReasonQuotaExceeded
	ReasonPoolExhausted      Reason = v1alpha1.ReasonPoolExhausted
	ReasonFamilyUnavailable  Reason = v1alpha1.ReasonFamilyUnavailable
	ReasonAddressNotInPool   Reason = v1alpha1.ReasonAddressNotInPool
	ReasonAddressExcluded    Reason = v1alpha1.ReasonAddressExcluded
	ReasonAddressConflict    Reason = v1alpha1.ReasonAddressConflict
	ReasonAddressInUse       Reason = v1alpha1.ReasonAddressInUse
	ReasonAddressCoolingDown Reason = v1alpha1.ReasonAddressCoolingDown
	ReasonClaimPending       Reason = v1alpha1.ReasonClaimPending
	ReasonClaimRefused       Reason = v1alpha1.ReasonClaimRefused
	ReasonClaimUnusable      Reason = v1alpha1.ReasonClaimUnusable
	ReasonForeignAddress     Reason = v1alpha1.ReasonForeignAddress
)

// ReasonNoClaims is why an external pool gets no addresses at all.
const ReasonNoClaims Reason = v1alpha1.ReasonNoClaims

// Remarks on a Service that has an address.
const (
	ReasonPartlyAllocated Reason = v1alpha1.ReasonPartlyAllocated
	ReasonAddressRetained Reason = v1alpha1.ReasonAddressRetained
)

// isAboutClaim reports whether a Service waits for its IPAddressClaim, or for another answer to it.
func (r Reason) isAboutClaim() bool {
	return r == ReasonClaimPending || r == ReasonClaimRefused || r == ReasonClaimUnusable
}
