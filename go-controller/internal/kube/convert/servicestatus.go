// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Assigned returns the addresses in the status of a Service, in their order.
func Assigned(s *corev1.Service) []netip.Addr {
	var addrs []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(ingress.IP); err == nil {
			addrs = append(addrs, a.Unmap())
		}
	}
	return addrs
}

// AssignedHosts returns the host names in the status of a Service that stand there without an address, in their order.
func AssignedHosts(s *corev1.Service) []string {
	var hosts []string
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if ingress.Hostname != "" && ingress.IP == "" {
			hosts = append(hosts, ingress.Hostname)
		}
	}
	return hosts
}

// contested reports whether the status shows that an address is withheld because another host answers for it, or that
// one was before nothing announced it, or before it became unknown whether anything does: then Announced has another
// reason, and only Allocated that one.
func contested(s *corev1.Service) bool {
	conflicts := func(c *metav1.Condition) bool { return c != nil && c.Reason == v1alpha1.ReasonAddressConflict }
	announced := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
	return announced != nil && announced.Status != metav1.ConditionTrue && (conflicts(announced) ||
		conflicts(meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated)))
}

// Given returns the addresses that we allocated according to the status of a Service. A user who may write Services but
// not their status cannot forge them.
func Given(s *corev1.Service) []netip.Addr {
	addrs, _ := listed(s, v1alpha1.ConditionAllocated)
	return addrs
}

// fromPool returns those of the addresses that we allocated that come from a pool according to the status.
func fromPool(s *corev1.Service, pool string) []netip.Addr {
	var from []netip.Addr
	addrs, pools := listed(s, v1alpha1.ConditionAllocated)
	for i, a := range addrs {
		if pools[i] == pool {
			from = append(from, a)
		}
	}
	return from
}

// HeldExternalIPs returns the addresses of spec.externalIPs that a Service holds according to its status.
func HeldExternalIPs(s *corev1.Service) []netip.Addr {
	addrs, _ := listed(s, v1alpha1.ConditionExternalIPs)
	return addrs
}

// listed returns the addresses, separated by ", ", at the beginning of the message of a condition that is True, and for
// each the name of its pool, which may follow it or, if it is that of all, the last one; otherwise it is empty.
func listed(s *corev1.Service, condition string) (addrs []netip.Addr, pools []string) {
	c := meta.FindStatusCondition(s.Status.Conditions, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil, nil
	}
	for rest, more := c.Message, true; more; {
		word, after := untilAny(rest, ",; ")
		a, err := netip.ParseAddr(word)
		if err != nil {
			break
		}
		pool := ""
		if named, ok := strings.CutPrefix(after, FromPool); ok {
			pool, after = untilAny(named, ",; ")
		}
		addrs, pools = append(addrs, a.Unmap()), append(pools, pool)
		rest, more = strings.CutPrefix(after, ", ")
	}
	if n := len(pools) - 1; n > 0 && strings.Join(pools[:n], "") == "" {
		for i := range pools {
			pools[i] = pools[n]
		}
	}
	return addrs, pools
}

// FromPool precedes the name of the pool behind an address, or behind several addresses of one pool, in the message of
// ConditionAllocated.
const FromPool = " from pool "

// untilAny divides a text before the first of some characters.
func untilAny(text, characters string) (before, after string) {
	if at := strings.IndexAny(text, characters); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}
