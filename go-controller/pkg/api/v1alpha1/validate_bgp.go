// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
	"time"

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
	if p.Spec.Backend == BackendFRRK8s {
		errs = append(errs, p.validateFRRK8s(spec, hold)...)
	}
	return append(errs, validateSelectors(spec.Child("nodeSelectors"), p.Spec.NodeSelectors)...)
}

// frrHoldTime and frrKeepaliveTime are FRR's defaults. frr-k8s drops each of both timers that has it, and then writes
// neither, so that either both or none must have it.
const frrHoldTime, frrKeepaliveTime = 180 * time.Second, 60 * time.Second

// maxFRRPort is the largest port that frr-k8s accepts.
const maxFRRPort = 16384

// validateFRRK8s checks what frr-k8s can't express, and that no text of the peer becomes more than one word of FRR's
// configuration.
func (p *BGPPeer) validateFRRK8s(spec *field.Path, hold time.Duration) field.ErrorList {
	var errs field.ErrorList
	excluded := func(name string, value any, why string) {
		errs = append(errs, field.Invalid(spec.Child(name), value, "backend: FRRK8s: "+why))
	}
	if p.Spec.TTLSecurityHops != 0 {
		excluded("ttlSecurityHops", p.Spec.TTLSecurityHops, "frr-k8s has no field for it")
	}
	if ttl := p.Spec.MultihopTTL; ttl != 0 && ttl != DefaultMultihopTTL {
		excluded("multihopTTL", ttl, "frr-k8s has no field for it")
	}
	if p.Spec.PeerPort > maxFRRPort {
		excluded("peerPort", p.Spec.PeerPort, fmt.Sprintf("frr-k8s has ports up to %d", maxFRRPort))
	}
	if k := p.Spec.KeepaliveTime; k != nil && (hold == frrHoldTime) != (k.Duration == frrKeepaliveTime) {
		excluded("keepaliveTime", k.Duration.String(), "either both timers must have FRR's defaults (holdTime 180s, "+
			"keepaliveTime 60s) or none, because frr-k8s would use neither")
	}
	if strings.ContainsFunc(p.Spec.Password, func(r rune) bool { return r <= ' ' || r > '~' }) {
		excluded("password", "(hidden)", "characters other than printable ASCII without blanks")
	}
	word := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_.-", r)
	}
	if strings.ContainsFunc(p.Spec.Interface, func(r rune) bool { return !word(r) }) {
		excluded("interface", p.Spec.Interface, "want letters, digits, dots, dashes and underscores")
	}
	return errs
}

// Validate checks label selectors, which the CRD's rules do not. Each error names the field and the value.
func (a *BGPAdvertisement) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSelectors(spec.Child("ipAddressPoolSelectors"), a.Spec.IPAddressPoolSelectors)
	errs = append(errs, validateSelectors(spec.Child("nodeSelectors"), a.Spec.NodeSelectors)...)
	return append(errs, validateSelectors(spec.Child("serviceSelectors"), a.Spec.ServiceSelectors)...)
}
