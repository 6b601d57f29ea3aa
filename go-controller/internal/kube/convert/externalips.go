// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// ListExternalIPs returns the message of the condition ExternalIPs that lists the addresses, which the conversion of a
// Service reads.
func ListExternalIPs(addrs []netip.Addr) string {
	texts := make([]string, len(addrs))
	for i, a := range addrs {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

// maxExternalIPs is the maximum number of addresses of spec.externalIPs. A Service with more of them has too many
// addresses in any case (plan.MaxAddresses), and each pass examines each of them.
const maxExternalIPs = 2500

// maxExternalIPsText is the maximum length of the addresses of spec.externalIPs as the message of a condition
// (metav1.Condition). The next leader and the nodes read the addresses that belong to a Service from its condition
// ExternalIPs: one that is not in it would not be advertised by BGP, and could go to another Service.
const maxExternalIPsText = 32768

// ParseExternalIP returns an address of spec.externalIPs, invalid if the text is none. It reads what OVN-Kubernetes
// reads: API servers before 1.36 admit leading zeros, which net/netip refuses.
func ParseExternalIP(text string) netip.Addr {
	a, _ := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return a.Unmap()
}

// externalIPs returns the addresses in spec.externalIPs without duplicates.
func externalIPs(s *corev1.Service) []netip.Addr {
	var addrs []netip.Addr
	seen := make(map[netip.Addr]bool, len(s.Spec.ExternalIPs))
	for _, text := range s.Spec.ExternalIPs {
		if a := ParseExternalIP(text); a.IsValid() && !seen[a] {
			seen[a] = true
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// ListedExternalIPs returns the addresses that a Service lists in spec.externalIPs and does not have, as prefixes of
// world.Listed. ours is the conversion of the Service, nil if it is not ours and has no addresses.
func ListedExternalIPs(s *corev1.Service, ours *world.Service) []netip.Prefix {
	if len(s.Spec.ExternalIPs) == 0 {
		return nil
	}
	var own []netip.Addr
	if ours != nil {
		own = slices.Concat(ours.Assigned, ours.Given, ours.HeldExternalIPs)
	}
	has, list := world.AddrSet(own), make([]netip.Prefix, 0, len(s.Spec.ExternalIPs))
	for _, text := range s.Spec.ExternalIPs {
		if a := ParseExternalIP(text); a.IsValid() {
			if !has(a) {
				list = append(list, netip.PrefixFrom(a, a.BitLen()))
			}
		} else if p, err := netip.ParsePrefix(text); err == nil { // of KeepExternalIPs
			list = append(list, p)
		}
	}
	return world.CoverListed(list)
}

// KeepExternalIPs returns what is kept of the spec.externalIPs of a Service that is not ours: what ListedExternalIPs
// reads from there.
func KeepExternalIPs(s *corev1.Service) []string {
	var texts []string
	for _, p := range ListedExternalIPs(s, nil) {
		if p.IsSingleIP() {
			texts = append(texts, p.Addr().String())
		} else {
			texts = append(texts, p.String())
		}
	}
	return texts
}
