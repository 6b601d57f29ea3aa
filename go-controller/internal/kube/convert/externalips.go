// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// externalIPs returns the addresses in spec.externalIPs without duplicates.
func externalIPs(s *corev1.Service) []netip.Addr {
	var addrs []netip.Addr
	seen := make(map[netip.Addr]bool, len(s.Spec.ExternalIPs))
	for _, text := range s.Spec.ExternalIPs {
		a, err := netip.ParseAddr(text)
		if a = a.Unmap(); err == nil && !seen[a] {
			seen[a] = true
			addrs = append(addrs, a)
		}
	}
	return addrs
}
