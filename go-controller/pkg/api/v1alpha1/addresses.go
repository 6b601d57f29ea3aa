// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"
)

// AddressRange is a set of contiguous addresses of one family, written as a CIDR without host bits (10.50.0.0/24), a
// range (10.50.0.100-10.50.0.199) or a single address (fd00:50::1).
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=81
// +kubebuilder:validation:XValidation:rule="(isCIDR(self) && !(self.contains(':') && self.contains('.'))) || (self.split('-').size() <= 2 && self.split('-').all(p, isIP(p.trim()) && !(p.contains(':') && p.contains('.'))))",messageExpression="self + ' is no CIDR, range or address'"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self) == cidr(self).masked()",messageExpression="self + ' has host bits set: begin with the first address of the network, or leave out the length for one address'"
// +kubebuilder:validation:XValidation:rule="self.split('-').size() != 2 || !self.split('-').all(p, isIP(p.trim())) || ip(self.split('-')[0].trim()).family() == ip(self.split('-')[1].trim()).family()",messageExpression="self + ' mixes IPv4 and IPv6'"
// +kubebuilder:validation:XValidation:rule="isCIDR(self) ? cidr(self).masked().ip().isGlobalUnicast() : self.split('-').all(p, !isIP(p.trim()) || ip(p.trim()).isGlobalUnicast())",messageExpression="self + ' has addresses that no Service can have: loopback, link-local, multicast, broadcast or unspecified'"
type AddressRange string

// IPAddress is one IPv4 or IPv6 address without a zone.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=39
// +kubebuilder:validation:XValidation:rule="isIP(self) && !(self.contains(':') && self.contains('.'))",messageExpression="self + ' is no IPv4 or IPv6 address'"
type IPAddress string

// Parse returns the addresses from first to last. The error contains the value and describes the problem in the words
// of the CRD's rules.
func (r AddressRange) Parse() (netipx.IPRange, error) {
	text := string(r)
	if strings.Contains(text, "/") {
		return parsePrefix(text)
	}
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, errFirst := parseAddr(strings.TrimSpace(from))
	last, errLast := parseAddr(strings.TrimSpace(to))
	switch {
	case errFirst != nil || errLast != nil:
		return netipx.IPRange{}, fmt.Errorf("%s is no CIDR, range or address", text)
	case first.Is4() != last.Is4():
		return netipx.IPRange{}, fmt.Errorf("%s mixes IPv4 and IPv6", text)
	case last.Less(first):
		return netipx.IPRange{}, fmt.Errorf("%s ends before it begins", text)
	}
	return checkUnicast(text, netipx.IPRangeFrom(first, last))
}

// Parse returns the address. The error contains the value.
func (a IPAddress) Parse() (netip.Addr, error) {
	addr, err := parseAddr(string(a))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s is no IPv4 or IPv6 address", string(a))
	}
	return addr, nil
}

func parsePrefix(text string) (netipx.IPRange, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Addr().Is6() && strings.Contains(text, ".") {
		return netipx.IPRange{}, fmt.Errorf("%s is no CIDR, range or address", text)
	}
	if prefix != prefix.Masked() {
		return netipx.IPRange{}, fmt.Errorf("%s has host bits set: begin with the first address of the network, "+
			"or leave out the length for one address", text)
	}
	return checkUnicast(text, netipx.RangeOfPrefix(prefix))
}

// parseAddr rejects zones, and IPv6 addresses with a dotted part (IPv4-mapped or not), as the CRD's rules do.
func parseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, err
	}
	if addr.Zone() != "" || addr.Is6() && strings.Contains(text, ".") {
		return netip.Addr{}, fmt.Errorf("%s has a zone or a dotted part", text)
	}
	return addr, nil
}

func checkUnicast(text string, r netipx.IPRange) (netipx.IPRange, error) {
	for _, end := range []netip.Addr{r.From(), r.To()} {
		if !end.IsGlobalUnicast() {
			return netipx.IPRange{}, fmt.Errorf("%s has addresses that no Service can have: %s is not unicast", text, end)
		}
	}
	return r, nil
}
