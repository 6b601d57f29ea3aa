// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// announcement waits until Announced of the Service s-0, which has an endpoint, has a status, and its message a text.
// It calls do before each look.
func (r *running) announcement(status metav1.ConditionStatus, text string, do func(context.Context) error) {
	r.t.Helper()
	r.await(fmt.Sprintf("Service s-0 announced: %s", status), func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		s, err := r.Client.CoreV1().Services("default").Get(ctx, "s-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
		if c == nil || c.Status != status || !strings.Contains(c.Message, text) {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
}

// takenLater checks an address that another program takes after the node has confirmed it. An IPv6 address is the same
// one for the kernel, with other properties.
func takenLater(t *testing.T, r *running) {
	before := r.settled(2 * services)
	s, err := r.Client.CoreV1().Services("default").Get(t.Context(), "s-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addr, node := netip.Addr{}, ""
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a := netip.MustParseAddr(ingress.IP); a.Is6() {
			addr, node = a, before[a]
		}
	}
	prefix := addr.String() + "/128"
	r.announcement(metav1.ConditionFalse, "and not from here", func(ctx context.Context) error {
		// The agent may be renewing the address at the same time.
		_, err := r.IP(ctx, node, "addr", "replace", prefix, "dev", "eth1", "nodad", "valid_lft", "forever", "preferred_lft",
			"forever")
		return err
	})
	if _, err := r.IP(t.Context(), node, "addr", "del", prefix, "dev", "eth1"); err != nil {
		t.Fatal(err)
	}
	r.announcement(metav1.ConditionTrue, addr.String(), func(context.Context) error { return nil })
	r.settled(2 * services)
	r.unmoved(before)
}

// withoutIPv6 checks a node whose kernel removes its IPv6 addresses and ours, because the MTU falls below 1280.
func withoutIPv6(t *testing.T, r *running) {
	const node = "n3"
	before := r.settled(2 * services)
	own, err := r.IP(t.Context(), node, "-6", "-o", "addr", "show", "dev", "eth1", "scope", "global", "permanent")
	if err != nil {
		t.Fatal(err)
	}
	ip := func(args ...string) {
		t.Helper()
		if _, err := r.IP(t.Context(), node, args...); err != nil {
			t.Fatal(err)
		}
	}
	ip("link", "set", "eth1", "mtu", "1279")
	r.leave(node)
	for a, by := range r.settled(2 * services) {
		if before[a] != node && before[a] != by {
			t.Errorf("%s moved from %s to %s", a, before[a], by)
		}
	}
	ip("link", "set", "eth1", "mtu", "1500")
	ip("addr", "add", strings.Fields(own)[3], "dev", "eth1", "nodad")
	r.settled(2 * services)
}
