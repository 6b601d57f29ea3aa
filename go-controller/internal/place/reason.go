// SPDX-License-Identifier: Apache-2.0

package place

import "github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"

// Reason is a one-word reason why an address is not announced, or why a node is not a gateway. Reasons are part of the
// API: package v1alpha1 defines their values and meanings.
type Reason string

// Reasons why an address is not announced.
const (
	ReasonNoDomain              Reason = v1alpha1.ReasonNoDomain
	ReasonDisabledByMode        Reason = v1alpha1.ReasonDisabledByMode
	ReasonDomainNotReady        Reason = v1alpha1.ReasonDomainNotReady
	ReasonUnsupported           Reason = v1alpha1.ReasonUnsupported
	ReasonNoGateway             Reason = v1alpha1.ReasonNoGateway
	ReasonAddressOutsideSubnets Reason = v1alpha1.ReasonAddressOutsideSubnets
	ReasonAddressConflict       Reason = v1alpha1.ReasonAddressConflict
	ReasonServiceNotSelected    Reason = v1alpha1.ReasonServiceNotSelected
	ReasonOtherServiceProxy     Reason = v1alpha1.ReasonOtherServiceProxy
	// ReasonProbing lasts about a second and is not reported.
	ReasonProbing Reason = "Probing"
)

// Reasons why a node is not a gateway.
const (
	ReasonNoChassis      Reason = v1alpha1.ExcludedNoChassis
	ReasonOtherZone      Reason = v1alpha1.ExcludedOtherZone
	ReasonNoAgent        Reason = v1alpha1.ExcludedNoAgent
	ReasonNoOverlay      Reason = v1alpha1.ExcludedNoOverlay
	ReasonNotAttached    Reason = v1alpha1.ExcludedNotAttached
	ReasonSharedGateway  Reason = v1alpha1.ExcludedSharedGateway
	ReasonNoGuard        Reason = v1alpha1.ExcludedNoGuard
	ReasonPortMissing    Reason = v1alpha1.ExcludedPortMissing
	ReasonEnoughGateways Reason = v1alpha1.ExcludedEnoughGateways
	ReasonDraining       Reason = v1alpha1.ExcludedDraining
	ReasonFaulty         Reason = v1alpha1.ExcludedFaulty
)
