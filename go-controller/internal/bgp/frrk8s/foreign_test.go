// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// others returns an object of others for some nodes, with one neighbor in VRF red.
func others(name string, change func(*frrapi.Router), nodes ...int) *world.FRRConfiguration {
	r := frrapi.Router{ASN: 65000, VRF: "red", Neighbors: []frrapi.Neighbor{{Session: frrapi.Session{ASN: 65001,
		Address: "10.9.9.9"}}}}
	change(&r)
	c := &world.FRRConfiguration{Name: name, Spec: frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{r}}}}
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, nodeName(n))
	}
	return c
}

// tooMuch makes an object of others one that is not read.
func tooMuch(r *frrapi.Router) {
	for i := range frrapi.MaxAdvertised + 1 {
		r.Prefixes = append(r.Prefixes, fmt.Sprintf("172.16.%d.%d/32", i>>8, i&255))
	}
}

// checkReported checks that a peer reports a text about its nodes.
func (s *site) checkReported(t *testing.T, want string) {
	t.Helper()
	plan := render(s.world)
	if got := plan.LeftOut("tor"); !strings.Contains(got, want) {
		t.Errorf("reported: %q, want %q", got, want)
	}
	reason, message := plan.Why(s.world.FRR, nodeName(0), "tor")
	if reason != v1alpha1.ReasonFRRConflict || message == "" {
		t.Errorf("%s is left out because of %s: %s", nodeName(0), reason, message)
	}
}

// frr-k8s applies nothing while a Secret of others is missing, and what objects say at the moment when it is there. Its
// webhook reads no Secrets. So objects for such a node are kept, and written.
func TestMissingSecretOfOthersKeepsNoRoute(t *testing.T) {
	w := many(3, 2)
	s := newSite(w)
	s.settle(t)
	s.objects["other"] = others("other", func(r *frrapi.Router) {
		r.Neighbors[0].Secret.Name = "later"
	}, 0, 1)
	if !s.round() {
		t.Errorf("updated %v, deleted %v because of an object in another VRF", s.updated, s.deleted)
	}
	s.checkReported(t, "frr-k8s applies no FRRConfiguration on n0000, n0001: node n0000: FRRConfiguration other, "+
		"spec.bgp.routers.neighbors.passwordSecret: neighbor 10.9.9.9: Secret later does not exist")
	w.Services = append(w.Services, many(4, 2).Services[3])
	if refused := s.settle(t); refused > 0 || !s.advertises(nodeName(0), w.Services[3].Assigned[0]) {
		t.Errorf("%d writes refused", refused)
	}
}

// A shared session whose Secret is missing is repeated as before.
func TestMissingSecretOfASharedSession(t *testing.T) {
	s := newSite(many(3, 2), others("fabric", func(r *frrapi.Router) {
		r.ASN, r.VRF = 64512, ""
		r.Neighbors[0].Session = frrapi.Session{ASN: 64513, Address: "10.50.0.1", Secret: frrapi.SecretRef{Name: "later"}}
	}, 0))
	if refused := s.settle(t); refused > 0 {
		t.Errorf("%d writes refused", refused)
	}
	if !s.advertises(nodeName(0), s.world.Services[0].Assigned[0]) {
		t.Error("nothing is written for the node with the shared session")
	}
	s.checkReported(t, "FRRConfiguration fabric")
}

// contradicting returns objects of others that frr-k8s does not merge on a node.
func contradicting() []*world.FRRConfiguration {
	return []*world.FRRConfiguration{others("x", func(*frrapi.Router) {}, 0),
		others("y", func(r *frrapi.Router) { r.ASN++ }, 0)}
}

// unreadable returns an object of others for a node that is not read.
func unreadable() []*world.FRRConfiguration {
	return []*world.FRRConfiguration{others("x", tooMuch, 0)}
}

// What is there for a node stays as long as it need not be changed: FRR keeps its routes, and finds them in objects
// when frr-k8s applies some again. A change is written without the node, so that it is not refused for others.
func TestObjectsStayForNodesThatAreLeftOut(t *testing.T) {
	for what, foreign := range map[string]func() []*world.FRRConfiguration{
		"nothing is written for n0000, which frr-k8s would refuse: node n0000: FRRConfiguration x and " +
			"FRRConfiguration y, spec.bgp.routers.asn: 65000 and 65001": contradicting,
		"nothing is written for n0000, whose FRRConfigurations are not all read: node n0000: FRRConfiguration x has more " +
			"than is read: 8001 prefixes, at most 8000 are read": unreadable,
	} {
		w := many(300, 2)
		s := newSite(w)
		s.settle(t)
		for _, c := range foreign() {
			s.objects[c.Name] = c
		}
		if !s.round() {
			t.Errorf("updated %v, deleted %v", s.updated, s.deleted)
		}
		s.checkReported(t, what)
		kept := 0
		w.Services = append(w.Services, many(301, 2).Services[300])
		refused := s.settle(t)
		for _, service := range w.Services {
			if !s.advertises(nodeName(1), service.Assigned[0]) {
				t.Errorf("%s is not on the other node", service.Key)
			}
			if s.advertises(nodeName(0), service.Assigned[0]) {
				kept++
			}
		}
		if refused > 0 || kept < 100 || kept == len(w.Services) {
			t.Errorf("%d writes refused, %d routes kept", refused, kept)
		}
		for _, c := range foreign() {
			delete(s.objects, c.Name)
		}
		s.settle(t)
		if newest := w.Services[300].Assigned[0]; !s.advertises(nodeName(0), newest) {
			t.Errorf("%s is not on the node after the end", newest)
		}
	}
}

// A node whose objects are not all read may have prefixes of theirs: it is not said that it should withdraw them.
func TestPrefixesAreNotOverdueBesideAnUnreadObject(t *testing.T) {
	w, l := reporting(2)
	w.Nodes[0].NetworkUnavailable = true
	prefix := netip.PrefixFrom(w.Services[0].Assigned[0], 32)
	if nodes := frrk8s.Render(w, l, &frrk8s.State{}).Overdue("tor", prefix); !slices.Equal(nodes, []string{nodeName(0)}) {
		t.Errorf("overdue on %v", nodes)
	}
	c := unreadable()[0]
	c.Foreign = frrapi.ConvertForeign(&c.Spec)
	w.FRR.Configurations = append(w.FRR.Configurations, c)
	if nodes := frrk8s.Render(w, l, &frrk8s.State{}).Overdue("tor", prefix); len(nodes) > 0 {
		t.Errorf("overdue on %v", nodes)
	}
}

// All objects of a node together are limited, too.
func TestObjectsOfANodeAreLimited(t *testing.T) {
	w := many(3, 2)
	s := newSite(w)
	s.settle(t)
	for i := range 12 {
		name := fmt.Sprint("x", i)
		s.objects[name] = others(name, func(r *frrapi.Router) {
			r.VRF = name
			for n := range 1000 {
				r.Prefixes = append(r.Prefixes, fmt.Sprintf("172.16.%d.%d/32", n>>8, n&255))
			}
			to := &r.Neighbors[0].Advertise
			to.Allowed.Mode, to.LocalPref = frrapi.AllowAll, []frrapi.LocalPrefPrefixes{{Prefixes: r.Prefixes, LocalPref: 7}}
		}, 0)
	}
	s.round()
	s.checkReported(t, "nothing is written for n0000, whose FRRConfigurations are not all read: node n0000: the "+
		"FRRConfigurations for the node, up to x8, have more than is read")
}

// However many objects give a neighbor local preferences, each contradiction is found.
func TestLocalPreferencesOfManyObjects(t *testing.T) {
	const objects, prefixes = 30, 40
	object := func(i int, value uint32) *frrapi.Spec {
		return &others("", func(r *frrapi.Router) {
			for n := range prefixes {
				r.Prefixes = append(r.Prefixes, fmt.Sprintf("172.16.%d.%d/32", i*n%7, n))
			}
			to := &r.Neighbors[0].Advertise
			to.Allowed.Mode, to.LocalPref = frrapi.AllowAll, []frrapi.LocalPrefPrefixes{{Prefixes: r.Prefixes, LocalPref: value}}
		}).Spec
	}
	merged := frrk8s.NewMerged(nil)
	for i := range objects {
		if c := merged.Add(fmt.Sprint("o", i), object(i, 7)); c != nil {
			t.Fatal(c)
		}
	}
	for i := range objects {
		if c := merged.Add("last", object(i, 8)); c == nil || !strings.HasPrefix(c.With, "o") {
			t.Errorf("another value than in object %d: %v", i, c)
		}
	}
	if c := merged.Add("last", object(0, 7)); c != nil {
		t.Errorf("after refusals: %s", c)
	}
}

// A Secret with an empty password is no password, as for frr-k8s.
func TestEmptyPasswordInASecretIsNone(t *testing.T) {
	merged := frrk8s.NewMerged(map[string]string{"empty": ""})
	with := others("", func(r *frrapi.Router) { r.Neighbors[0].Secret.Name = "empty" })
	without := others("", func(*frrapi.Router) {})
	for _, c := range []*world.FRRConfiguration{with, without} {
		if conflict := merged.Add("other", &c.Spec); conflict != nil {
			t.Error(conflict)
		}
	}
	if missing := merged.Missing(); missing != nil {
		t.Error(missing)
	}
}
