// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits that the CRDs also contain.
const (
	maxReuseDelay     = 24 * time.Hour
	minDetectInterval = 50 * time.Millisecond
	maxDetectInterval = 10 * time.Second

	minAnnounceInterval = 10 * time.Second
	maxAnnounceInterval = time.Hour
	maxVLAN             = 4094
)

// Validate checks the pool by itself, as the CRD's rules do. In addition it checks label selectors and both ends of
// each CIDR. Each error names the field and the value.
func (p *IPAddressPool) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	switch {
	case p.Spec.ExternalPool != nil:
		errs = append(errs, p.Spec.validateExternal(spec)...)
	case len(p.Spec.Addresses) == 0:
		errs = append(errs, field.Required(spec.Child("addresses"), "a pool needs addresses or an externalPool"))
	}
	addresses := read(&errs, spec.Child("addresses"), p.Spec.Addresses)
	for i, a := range addresses {
		for _, b := range addresses[:i] {
			if a.addrs.Overlaps(b.addrs) {
				errs = append(errs, field.Invalid(a.path, string(a.text), "overlaps "+string(b.text)))
			}
		}
	}
	for _, x := range read(&errs, spec.Child("exclude"), p.Spec.Exclude) {
		if !insideOne(addresses, x.addrs) {
			errs = append(errs, field.Invalid(x.path, string(x.text), "is not inside one entry of addresses"))
		}
	}
	errs = append(errs, p.Spec.validateReservations(spec.Child("reservations"), addresses)...)
	if d := p.Spec.ReuseDelay; d != nil && (d.Duration < 0 || d.Duration > maxReuseDelay) {
		errs = append(errs, field.Invalid(spec.Child("reuseDelay"), d.Duration.String(), "is not between 0s and 24h"))
	}
	switch p.Spec.Sharing {
	case "", SharingNamespace, SharingCluster:
	default:
		errs = append(errs, field.NotSupported(spec.Child("sharing"), p.Spec.Sharing,
			[]SharingScope{SharingNamespace, SharingCluster}))
	}
	if s := p.Spec.ServiceAllocation; s != nil {
		at := spec.Child("serviceAllocation")
		errs = append(errs, validateSelectors(at.Child("namespaceSelectors"), s.NamespaceSelectors)...)
		errs = append(errs, validateSelectors(at.Child("serviceSelectors"), s.ServiceSelectors)...)
	}
	return errs
}

// validateExternal checks a pool whose addresses a provider chooses.
func (s *IPAddressPoolSpec) validateExternal(spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Addresses) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("addresses"), "excludes externalPool: keep one of them"))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"exclude", len(s.Exclude) > 0}, {"reservations", len(s.Reservations) > 0}, {"reuseDelay", s.ReuseDelay != nil},
		{"avoidBuggyIPs", s.AvoidBuggyIPs}, {"externalIPs", s.ExternalIPs}} {
		if f.set {
			errs = append(errs, field.Forbidden(spec.Child(f.name),
				"excludes externalPool, whose provider chooses the addresses"))
		}
	}
	at, x := spec.Child("externalPool"), s.ExternalPool
	for _, why := range validation.IsDNS1123Subdomain(x.APIGroup) {
		errs = append(errs, field.Invalid(at.Child("apiGroup"), x.APIGroup, "is no API group: "+why))
	}
	if !kindName.MatchString(x.Kind) || len(x.Kind) > validation.DNS1123LabelMaxLength {
		errs = append(errs, field.Invalid(at.Child("kind"), x.Kind, "is no kind"))
	}
	for _, why := range validation.IsDNS1123Subdomain(x.Name) {
		errs = append(errs, field.Invalid(at.Child("name"), x.Name, "is no name of an object: "+why))
	}
	if f := x.IPFamily; f != "" && f != IPv4 && f != IPv6 {
		errs = append(errs, field.NotSupported(at.Child("ipFamily"), f, []IPFamily{IPv4, IPv6}))
	}
	return errs
}

// kindName matches the names of kinds that Cluster API's contract accepts.
var kindName = regexp.MustCompile(`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`)

func (s *IPAddressPoolSpec) validateReservations(path *field.Path, addresses []entry) field.ErrorList {
	var errs field.ErrorList
	holders := map[netip.Addr]string{}
	for i, r := range s.Reservations {
		holder := r.Namespace + "/" + r.Name
		for j, text := range r.Addresses {
			at := path.Index(i).Child("addresses").Index(j)
			a, err := text.Parse()
			switch other, taken := holders[a]; {
			case err != nil:
				errs = append(errs, field.Invalid(at, string(text), err.Error()))
				continue
			case taken:
				errs = append(errs, field.Invalid(at, string(text), "is reserved for "+other+" already"))
			case !insideOne(addresses, netipx.IPRangeFrom(a, a)):
				errs = append(errs, field.Invalid(at, string(text), "is not in addresses"))
			}
			holders[a] = holder
		}
	}
	return errs
}

// Validate checks the domain by itself, as the CRD's rules do. In addition it checks label selectors, and that a
// gateway is not a broadcast address. Each error names the field and the value.
func (d *L2Domain) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if d.Spec.PhysicalNetwork == "" {
		errs = append(errs, field.Required(spec.Child("physicalNetwork"), "the name in ovn-bridge-mappings"))
	}
	if v := d.Spec.VLAN; v < 0 || v > maxVLAN {
		errs = append(errs, field.Invalid(spec.Child("vlan"), v, "is not between 1 and 4094"))
	}
	errs = append(errs, validateSubnets(spec.Child("subnets"), d.Spec.Subnets)...)
	errs = append(errs, validateSelectors(spec.Child("ipAddressPoolSelectors"), d.Spec.IPAddressPoolSelectors)...)
	errs = append(errs, validateSelectors(spec.Child("nodeSelectors"), d.Spec.NodeSelectors)...)
	errs = append(errs, validateSelectors(spec.Child("serviceSelectors"), d.Spec.ServiceSelectors)...)
	for i := range d.Spec.Gateways.Preferred {
		at := spec.Child("gateways", "preferred").Index(i).Child("preference")
		errs = append(errs, validateSelector(at, &d.Spec.Gateways.Preferred[i].Preference)...)
	}
	if i := d.Spec.Failover.DetectInterval; i != nil && (i.Duration < minDetectInterval ||
		i.Duration > maxDetectInterval) {
		errs = append(errs, field.Invalid(spec.Child("failover", "detectInterval"), i.Duration.String(),
			"is not between 50ms and 10s"))
	}
	if i := d.Spec.AnnounceInterval; i != nil && (i.Duration < minAnnounceInterval || i.Duration > maxAnnounceInterval) {
		errs = append(errs, field.Invalid(spec.Child("announceInterval"), i.Duration.String(), "is not between 10s and 1h"))
	}
	return errs
}

func validateSubnets(path *field.Path, subnets []Subnet) field.ErrorList {
	var errs field.ErrorList
	if len(subnets) == 0 {
		errs = append(errs, field.Required(path, "an address of no subnet is announced nowhere"))
	}
	var seen []netip.Prefix
	for i, s := range subnets {
		at := path.Index(i).Child("cidr")
		prefix, err := netip.ParsePrefix(s.CIDR)
		switch {
		case err != nil || prefix.Addr().Is4In6():
			errs = append(errs, field.Invalid(at, s.CIDR, "is no CIDR"))
			continue
		case prefix != prefix.Masked():
			errs = append(errs, field.Invalid(at, s.CIDR, "has host bits set"))
			continue
		case !prefix.Addr().IsGlobalUnicast():
			errs = append(errs, field.Invalid(at, s.CIDR,
				"is no subnet of hosts: loopback, link-local, multicast or unspecified"))
		}
		for _, other := range seen {
			if prefix.Overlaps(other) {
				errs = append(errs, field.Invalid(at, s.CIDR, "overlaps "+other.String()))
			}
		}
		seen = append(seen, prefix)
		if wrong := wrongGateway(prefix, s.Gateway); wrong != "" {
			errs = append(errs, field.Invalid(path.Index(i).Child("gateway"), string(s.Gateway), wrong))
		}
	}
	return errs
}

// wrongGateway describes what is wrong with the next hop of a subnet. It returns an empty string if the next hop is
// valid or absent.
func wrongGateway(prefix netip.Prefix, text IPAddress) string {
	if text == "" {
		return ""
	}
	gateway, err := text.Parse()
	if err != nil {
		return err.Error()
	}
	small := prefix.Bits() >= prefix.Addr().BitLen()-1 // RFC 3021, RFC 6164: no special addresses.
	switch {
	case !prefix.Contains(gateway):
		if gateway.Is6() && prefix.Addr().Is6() && gateway.IsLinkLocalUnicast() {
			return ""
		}
		return "is not in " + prefix.String()
	case !small && gateway == prefix.Addr():
		return "is the network address of " + prefix.String()
	case !small && gateway.Is4() && gateway == netipx.PrefixLastIP(prefix):
		return "is the broadcast address of " + prefix.String()
	}
	return ""
}

// entry is one valid element of addresses or exclude.
type entry struct {
	path  *field.Path
	text  AddressRange
	addrs netipx.IPRange
}

// read parses the elements of a list and reports those that are invalid.
func read(errs *field.ErrorList, path *field.Path, texts []AddressRange) []entry {
	var out []entry
	for i, text := range texts {
		addrs, err := text.Parse()
		if err != nil {
			*errs = append(*errs, field.Invalid(path.Index(i), string(text), err.Error()))
			continue
		}
		out = append(out, entry{path.Index(i), text, addrs})
	}
	return out
}

func insideOne(entries []entry, r netipx.IPRange) bool {
	for _, e := range entries {
		if e.addrs.Contains(r.From()) && e.addrs.Contains(r.To()) {
			return true
		}
	}
	return false
}

func validateSelectors(path *field.Path, selectors []metav1.LabelSelector) field.ErrorList {
	var errs field.ErrorList
	for i := range selectors {
		errs = append(errs, validateSelector(path.Index(i), &selectors[i])...)
	}
	return errs
}

func validateSelector(path *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		value := selector.MatchLabels[key]
		one := metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		if _, err := metav1.LabelSelectorAsSelector(&one); err != nil {
			errs = append(errs, field.Invalid(path.Child("matchLabels"), key+"="+value, err.Error()))
		}
	}
	for i, e := range selector.MatchExpressions {
		one := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}
		if _, err := metav1.LabelSelectorAsSelector(&one); err != nil {
			errs = append(errs, field.Invalid(path.Child("matchExpressions").Index(i),
				fmt.Sprintf("%s %s %s", e.Key, e.Operator, e.Values), err.Error()))
		}
	}
	return errs
}
