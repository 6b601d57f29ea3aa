// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate checks what is needed to create a session: the addresses are valid, and the timers are consistent. The CRD's
// rules check more. In addition Validate checks label selectors. Each error names the field and the value.
func (p *BGPPeer) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	for _, a := range []struct {
		field string
		text  IPAddress
	}{{"peerAddress", p.Spec.PeerAddress}, {"sourceAddress", p.Spec.SourceAddress}, {"routerID", p.Spec.RouterID}} {
		addr, err := a.text.Parse()
		switch {
		case a.text == "":
		case err != nil:
			errs = append(errs, field.Invalid(spec.Child(a.field), string(a.text), err.Error()))
		case a.field == "routerID" && !addr.Is4():
			errs = append(errs, field.Invalid(spec.Child(a.field), string(a.text), "is no IPv4 address"))
		case a.field == "peerAddress" && !addr.IsGlobalUnicast() && !addr.IsLoopback() && !addr.IsLinkLocalUnicast():
			errs = append(errs, field.Invalid(spec.Child(a.field), string(a.text), "is no unicast address"))
		case a.field == "peerAddress" && addr.Is6() && addr.IsLinkLocalUnicast(): // IPv4 needs no zone (RFC 3927).
			errs = append(errs, field.Invalid(spec.Child(a.field), string(a.text),
				"is on any link: name the interface instead"))
		}
	}
	if (p.Spec.PeerAddress == "") == (p.Spec.Interface == "") {
		errs = append(errs, field.Invalid(spec.Child("peerAddress"), string(p.Spec.PeerAddress),
			"exactly one of peerAddress and interface is required"))
	}
	hold := DefaultHoldTime
	if p.Spec.HoldTime != nil {
		hold = p.Spec.HoldTime.Duration
	}
	if k := p.Spec.KeepaliveTime; k != nil && hold != 0 && hold < KeepalivesPerHoldTime*k.Duration {
		errs = append(errs, field.Invalid(spec.Child("holdTime"), hold.String(),
			"is less than three times keepaliveTime: "+k.Duration.String()))
	}
	return append(errs, validateSelectors(spec.Child("nodeSelectors"), p.Spec.NodeSelectors)...)
}

// Validate checks label selectors, which the CRD's rules do not. Each error names the field and the value.
func (a *BGPAdvertisement) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSelectors(spec.Child("ipAddressPoolSelectors"), a.Spec.IPAddressPoolSelectors)
	errs = append(errs, validateSelectors(spec.Child("nodeSelectors"), a.Spec.NodeSelectors)...)
	return append(errs, validateSelectors(spec.Child("serviceSelectors"), a.Spec.ServiceSelectors)...)
}
