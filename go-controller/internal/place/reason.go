// SPDX-License-Identifier: Apache-2.0

package place

import "github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"

// Reason says in one word why nothing carries an address, or why a node carries
// nothing. Reasons are part of the API: package v1alpha1 has their words and meanings.
type Reason string

// Why nothing carries an address.
const (
	ReasonNoDomain              Reason = v1alpha1.ReasonNoDomain
	ReasonSwitchedOff           Reason = v1alpha1.ReasonSwitchedOff
	ReasonDomainNotReady        Reason = v1alpha1.ReasonDomainNotReady
	ReasonUnsupported           Reason = v1alpha1.ReasonUnsupported
	ReasonNoGateway             Reason = v1alpha1.ReasonNoGateway
	ReasonAddressOutsideSubnets Reason = v1alpha1.ReasonAddressOutsideSubnets
	ReasonAddressConflict       Reason = v1alpha1.ReasonAddressConflict
	// ReasonProbing passes within a second or so; nobody is told.
	ReasonProbing Reason = "Probing"
)

// Why a node carries nothing.
const (
	ReasonNoChassis      Reason = v1alpha1.LeftOutNoChassis
	ReasonOtherZone      Reason = v1alpha1.LeftOutOtherZone
	ReasonNoAgent        Reason = v1alpha1.LeftOutNoAgent
	ReasonNotAttached    Reason = v1alpha1.LeftOutNotAttached
	ReasonSharedGateway  Reason = v1alpha1.LeftOutSharedGateway
	ReasonNoGuard        Reason = v1alpha1.LeftOutNoGuard
	ReasonPortMissing    Reason = v1alpha1.LeftOutPortMissing
	ReasonEnoughGateways Reason = v1alpha1.LeftOutEnough
	ReasonDraining       Reason = v1alpha1.LeftOutDraining
	ReasonFaulty         Reason = v1alpha1.LeftOutFaulty
)
