// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Any Service may list addresses in spec.externalIPs, whoever has them. That wakes no decision, but the next one must
// know: a change of another Service does not amend the last.
func TestListedExternalIPsOfAllServicesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wakes := counted()
		lists := func(kind corev1.ServiceType, addrs ...string) *corev1.Service {
			s := serviceOf(kind)
			s.Name, s.Spec.ExternalIPs = string(kind), addrs
			return f.keepListing(s)
		}
		clusterIP := lists(corev1.ServiceTypeClusterIP, "10.0.0.1", "::ffff:10.0.0.2", "010.000.000.001",
			"10.000.0.07", "wrong")
		ours := lists(corev1.ServiceTypeLoadBalancer, "10.0.0.3", "10.0.0.4", "10.0.0.5")
		ours.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.4"}}
		ours.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionExternalIPs, Status: metav1.ConditionTrue,
			Message: "10.0.0.5"}}
		f.setService(nil, clusterIP)
		if c := f.Changes(); int(wakes.Load()) != 0 || !c.Others {
			t.Errorf("a ClusterIP Service: %d wakes, changes %+v", int(wakes.Load()), c)
		}
		f.setService(nil, ours)
		before := snapshot(f).Listed
		if !hasExactly(before, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.7") {
			t.Errorf("listed: %v", before)
		}
		f.setService(clusterIP, lists(corev1.ServiceTypeClusterIP, "10.0.0.7", "10.0.0.2", "10.0.0.1"))
		if f.Changes().Others {
			t.Error("another order is a change")
		}
		<-time.After(listedPause)
		f.setService(clusterIP, lists(corev1.ServiceTypeClusterIP, "10.0.0.6"))
		if l := snapshot(f).Listed; !hasExactly(l, "10.0.0.3", "10.0.0.6") || len(before) != 4 {
			t.Errorf("listed: %v, and before %v", l, before)
		}
		f.setService(clusterIP, nil)
		f.setService(ours, nil)
		<-time.After(listedPause)
		if l := snapshot(f).Listed; l != nil {
			t.Errorf("listed by no Service: %v", l)
		}
	})
}

func hasExactly(l world.Listed, addrs ...string) bool {
	return len(l) == len(addrs) && missing(l, addrs) < 0
}

// missing returns the index of the first address that is not listed, -1 if all are.
func missing(l world.Listed, addrs []string) int {
	return slices.IndexFunc(addrs, func(a string) bool { return !l.Has(netip.MustParseAddr(a)) })
}

// A tenant may list a hundred thousand addresses. No address is missed because of the others, and little is stored.
func TestLongListsOfExternalIPsAreBounded(t *testing.T) {
	const most = 2500
	for name, c := range map[string]struct {
		n        int
		addr     func(i int) string
		prefixes int
	}{
		"few":            {most, func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }, most},
		"adjacent":       {60_000, func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }, 235},
		"scattered":      {60_000, func(i int) string { return fmt.Sprintf("10.%d.%d.9", i>>8, i&255) }, 235},
		"scattered IPv6": {60_000, func(i int) string { return fmt.Sprintf("2001:%x::1", i) }, 1},
		"of both families": {60_000, func(i int) string {
			return []string{fmt.Sprintf("fd00::%x", i), fmt.Sprintf("10.0.%d.%d", i>>8, i&255)}[i%2]
		}, 236},
	} {
		f, _ := counted()
		s := serviceOf(corev1.ServiceTypeClusterIP)
		for i := range c.n {
			s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, c.addr(i))
		}
		kept := f.keepListing(s)
		again := f.keepListing(kept)
		f.setService(nil, again)
		l := snapshot(f).Listed
		if len(kept.Spec.ExternalIPs) != c.prefixes || len(l) != c.prefixes || !cmp.Equal(kept, again) {
			t.Errorf("%s: %d addresses are kept as %d, and listed as %d", name, c.n, len(kept.Spec.ExternalIPs), len(l))
		}
		if missed := missing(l, s.Spec.ExternalIPs); missed >= 0 {
			t.Errorf("%s: %s is not listed", name, s.Spec.ExternalIPs[missed])
		}
		if l.Has(netip.MustParseAddr("192.0.2.1")) {
			t.Errorf("%s: an address that is far from all is listed", name)
		}
	}
}

// Many Services of one namespace cost no more than a few. They hide no address that another of them lists, in whatever
// order they are read: it may be drawn last, and of one that a Service has it is known that it is listed itself.
func TestListsOfANamespaceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := serviceOf(corev1.ServiceTypeLoadBalancer)
		ours.Namespace, ours.Status.LoadBalancer.Ingress = "victim", []corev1.LoadBalancerIngress{{IP: "10.19.9.195"}}
		var all []*corev1.Service
		for i := range 20 {
			s := serviceOf(corev1.ServiceTypeClusterIP)
			s.Name = fmt.Sprint("web-", i)
			for j := range 2500 {
				s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, fmt.Sprintf("10.%d.%d.%d", i, j>>8, j&255))
			}
			all = append(all, s)
		}
		f, _ := counted()
		for _, s := range all {
			f.setService(nil, s)
		}
		f.setService(nil, ours)
		reversed, _ := counted()
		reversed.setService(nil, ours)
		for _, s := range slices.Backward(all) {
			reversed.setService(nil, s)
		}
		l := snapshot(f).Listed
		if len(l) > 2501 || missing(l, []string{"10.0.0.1", "10.3.9.195", "10.19.3.7"}) >= 0 ||
			!l.HasExactly(netip.MustParseAddr("10.19.9.195")) || l.HasExactly(netip.MustParseAddr("10.0.0.1")) ||
			l.Has(netip.MustParseAddr("10.20.0.1")) {
			t.Errorf("%d prefixes", len(l))
		}
		if again := snapshot(reversed).Listed; !maps.Equal(l, again) {
			t.Errorf("read in another order: %v", again)
		}
		for _, s := range all[1:] {
			f.setService(s, nil)
		}
		<-time.After(listedPause)
		if l := snapshot(f).Listed; len(l) != 2500 {
			t.Errorf("%d prefixes of one Service", len(l))
		}
		f.setService(all[0], nil)
		if !cmp.Equal(f.listed.lists, world.Lists{}, cmp.AllowUnexported(world.Lists{}), cmpopts.EquateEmpty()) {
			t.Errorf("left: %v", f.listed.lists)
		}
	})
}

// A tenant may change a list all the time. That makes at most one decision per second a full one, and only if a list
// has more than before.
func TestListsThatChangeAllTheTimeArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := counted()
		var last *corev1.Service
		full, read := 0, 0
		var before world.Listed
		lists := func(addr string) {
			s := serviceOf(corev1.ServiceTypeClusterIP)
			s.Spec.ExternalIPs = []string{"10.0.0.1", addr}
			f.setService(last, s)
			last = s
			if f.Changes().Others {
				full++
			}
			l := snapshot(f).Listed
			if !maps.Equal(l, before) {
				read++
			}
			before = l
		}
		for i := range 100 {
			lists(fmt.Sprint("10.0.1.", i))
			<-time.After(listedPause / 20)
		}
		if full != 5 || read != 5 {
			t.Errorf("%d full decisions, and lists were read %d times; want 5", full, read)
		}
		<-time.After(listedPause)
		lists("10.0.1.99")
		if !hasExactly(before, "10.0.0.1", "10.0.1.99") {
			t.Errorf("listed at last: %v", before)
		}
		<-time.After(listedPause)
		if lists("10.0.0.1"); full != 6 || !hasExactly(before, "10.0.0.1") {
			t.Errorf("%d full decisions with one for a list that has less than before: %v", full, before)
		}
	})
}
