// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// site has the objects of an API server with frr-k8s' webhook.
type site struct {
	world   *world.Snapshot
	objects map[string]*world.FRRConfiguration
	// wrote is called after each write. away is called before each, and reports whether it is refused. refused are
	// the writes that it refused in the last round.
	wrote   func()
	away    func(name string) bool
	refused int
	created []string
	updated []string
	deleted []string
}

func newSite(w *world.Snapshot, others ...*world.FRRConfiguration) *site {
	s := &site{world: w, objects: map[string]*world.FRRConfiguration{}, wrote: func() {},
		away: func(string) bool { return false }}
	for _, c := range others {
		s.objects[c.Name] = c
	}
	return s
}

// round does what the writer does in one round. It returns whether there was nothing to do.
func (s *site) round() bool {
	s.world.FRR = &world.FRR{Namespace: "frr", Passwords: map[string]string{"tor": "secret"}}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		c := s.objects[name]
		if c.Peer == "" {
			c.Foreign = frrapi.ConvertForeign(&c.Spec)
		}
		s.world.FRR.Configurations = append(s.world.FRR.Configurations, c)
	}
	c := frrk8s.Diff(render(s.world).Objects, s.world.FRR)
	s.refused, s.created, s.updated, s.deleted = 0, nil, nil, nil
	c.Apply(s)
	return len(c.Yields)+len(c.Put)+len(c.After) == 0
}

// Answers implements frrk8s.Writer.
func (s *site) Answers(name string) error {
	if s.away(name) {
		return errAway
	}
	return nil
}

var errAway, errRefused = errors.New("the webhook is away"), errors.New("refused")

// Delete implements frrk8s.Writer.
func (s *site) Delete(name string) error {
	delete(s.objects, name)
	s.deleted = append(s.deleted, name)
	s.wrote()
	return nil
}

// Put implements frrk8s.Writer.
func (s *site) Put(o frrk8s.Object) error {
	switch {
	case s.away(o.Name):
		return errAway
	case !s.put(&o):
		return errRefused
	}
	s.wrote()
	return nil
}

// asRead returns a spec as the webhook reads it, without Secrets.
func asRead(spec frrapi.Spec) *frrapi.Spec {
	spec.BGP.Routers = slices.Clone(spec.BGP.Routers)
	for i := range spec.BGP.Routers {
		r := &spec.BGP.Routers[i]
		r.Neighbors = slices.Clone(r.Neighbors)
		for j := range r.Neighbors {
			r.Neighbors[j].Secret = frrapi.SecretRef{}
		}
	}
	return &spec
}

// put creates or updates an object, and returns true, unless frr-k8s would not merge the objects of one of its nodes.
func (s *site) put(o *frrk8s.Object) bool {
	was := s.objects[o.Name]
	s.objects[o.Name] = &world.FRRConfiguration{Name: o.Name, Peer: o.Peer, Nodes: o.Nodes, Spec: o.Spec}
	for _, n := range o.Nodes {
		merged := frrk8s.NewMerged(nil)
		for _, c := range s.objects {
			if slices.Contains(c.Nodes, n) && merged.Add(c.Name, asRead(c.Spec)) != nil {
				s.refused++
				if s.objects[o.Name] = was; was == nil {
					delete(s.objects, o.Name)
				}
				return false
			}
		}
	}
	if was == nil {
		s.created = append(s.created, o.Name)
	} else {
		s.updated = append(s.updated, o.Name)
	}
	return true
}

// settle does rounds until there is nothing to do. It returns the number of refused writes.
func (s *site) settle(t *testing.T) (refused int) {
	t.Helper()
	for range 10 {
		if s.round() {
			return refused
		}
		refused += s.refused
	}
	t.Fatalf("not settled after 10 rounds: created %v, updated %v, deleted %v", s.created, s.updated, s.deleted)
	return refused
}

// advertises reports whether an object has a prefix for a node.
func (s *site) advertises(node string, prefix netip.Addr) bool {
	text := netip.PrefixFrom(prefix, prefix.BitLen()).String()
	for _, c := range s.objects {
		if slices.Contains(c.Nodes, node) && slices.Contains(c.Spec.BGP.Routers[0].Prefixes, text) {
			return true
		}
	}
	return false
}

// endpointsOn gives a Service endpoints on some nodes, and externalTrafficPolicy Local.
func endpointsOn(s *world.Service, nodes ...int) {
	slice := &world.Slice{Family: world.IPv4, Ports: []world.Port{{Port: 80, Protocol: world.TCP}}}
	for _, n := range nodes {
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, byte(n), 2}),
			Node: nodeName(n), Ready: true, Serving: true})
	}
	s.LocalPolicy, s.Slices = true, []*world.Slice{slice}
}

func nodeName(n int) string { return fmt.Sprintf("n%04d", n) }

// One node that appears or vanishes changes objects of its bucket only, in place.
func TestOneNodeChangesItsBucket(t *testing.T) {
	const nodes = 300
	s := newSite(many(300, nodes))
	s.settle(t)
	s.world.Nodes[0].NetworkUnavailable = true
	s.round()
	of := map[string]bool{}
	for _, name := range s.updated {
		for _, n := range s.objects[name].Nodes {
			of[n] = true
		}
	}
	if len(s.created)+len(s.deleted) > 0 || len(s.updated) == 0 || len(s.updated) > 6 || len(of) > 64 {
		t.Errorf("created %v, updated %v with %d nodes, deleted %v", s.created, s.updated, len(of), s.deleted)
	}
}

// An endpoint that vanishes changes the objects of its node only, whatever sets of nodes a tenant has.
func TestOneEndpointChangesItsNode(t *testing.T) {
	const nodes = 50
	s := newSite(many(200, nodes))
	r := rand.New(rand.NewPCG(1, 2))
	on := make([][]int, len(s.world.Services))
	for i, service := range s.world.Services {
		for n := range nodes {
			if n == 0 || r.IntN(2) == 0 {
				on[i] = append(on[i], n)
			}
		}
		endpointsOn(service, on[i]...)
	}
	s.settle(t)
	if len(s.objects) > 2*nodes+1 {
		t.Errorf("%d objects for %d nodes", len(s.objects), nodes)
	}
	for i, service := range s.world.Services[:100] {
		endpointsOn(service, on[i][1:]...)
	}
	s.settle(t)
	for i, service := range s.world.Services {
		endpointsOn(service, on[i]...)
	}
	s.round()
	for _, name := range s.updated {
		if got := s.objects[name].Nodes; !slices.Equal(got, []string{nodeName(0)}) {
			t.Errorf("%s for %v is updated", name, got)
		}
	}
	if len(s.created)+len(s.deleted) > 0 || len(s.updated) == 0 {
		t.Errorf("created %v, updated %v, deleted %v", s.created, s.updated, s.deleted)
	}
}

// The number of objects of the same nodes stays at a border: a prefix more or less there is one update.
func TestBucketsStayAtABorder(t *testing.T) {
	s := newSite(many(129, 3))
	s.settle(t)
	newest := s.world.Services[128]
	for _, services := range [][]*world.Service{s.world.Services[:128], append(s.world.Services[:128:128], newest)} {
		s.world.Services = services
		if s.round(); len(s.updated) != 1 || len(s.created)+len(s.deleted) > 0 {
			t.Errorf("created %v, updated %v, deleted %v", s.created, s.updated, s.deleted)
		}
	}
}

// A session that changes on one node takes this node out of objects, and no routes from others.
func TestSessionOfOneNodeChanges(t *testing.T) {
	session := frrapi.Session{ASN: 64513, Address: "10.50.0.1", EBGPMultiHop: true}
	fabric := &world.FRRConfiguration{Name: "fabric", Spec: frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{{
		ASN: 64512, Neighbors: []frrapi.Neighbor{{Session: session}}}}}}}
	s := newSite(many(200, 5), fabric)
	s.settle(t)
	fabric.Nodes = []string{nodeName(0)}
	lost := 0
	s.wrote = func() {
		for n := 1; n < 5; n++ {
			if !s.advertises(nodeName(n), s.world.Services[0].Assigned[0]) {
				lost++
			}
		}
	}
	if refused := s.settle(t); refused > 0 || lost > 0 || !s.advertises(nodeName(0), s.world.Services[0].Assigned[0]) {
		t.Errorf("%d writes refused, routes of other nodes absent after %d writes", refused, lost)
	}
}

// A password moves into a Secret and back. The webhook, which reads no Secrets, takes that for another password.
func TestPasswordMovesIntoASecret(t *testing.T) {
	s := newSite(many(200, 3))
	peer := s.world.Peers[0]
	for _, secret := range []string{"", "tor", ""} {
		peer.Password, peer.PasswordSecret = "secret", secret
		if secret != "" {
			peer.Password = ""
		}
		if refused := s.settle(t); refused > 0 {
			t.Errorf("%d writes refused, password in Secret %q", refused, secret)
		}
	}
}

// edit makes a random edit of a Service.
func edit(r *rand.Rand, service *world.Service, nodes int) {
	switch r.IntN(3) {
	case 0:
		endpointsOn(service, r.IntN(nodes), r.IntN(nodes))
	case 1:
		service.LocalPolicy = !service.LocalPolicy
	case 2:
		service.Labels = map[string]string{"x": []string{"a", "b"}[r.IntN(2)]}
	}
}

// Whatever a tenant edits at once, also two prefixes that exchange objects and local preferences, no write is refused,
// and no route of another tenant is absent after any write.
func TestEditsAreNeverRefused(t *testing.T) {
	const nodes = 4
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := many(6, nodes)
		for i, label := range []string{"a", "b"} {
			ad, preference := *w.Advertisements[0], uint32(100+i)
			ad.Name, ad.LocalPref = label, &preference
			ad.Services = []world.Selector{{{Key: "x", Values: []string{label}}}}
			w.Advertisements = append(w.Advertisements, &ad)
		}
		w.Advertisements = w.Advertisements[1:]
		for i, service := range w.Services {
			service.Labels = map[string]string{"x": "a"}
			if i%2 == 0 {
				endpointsOn(service, i%nodes)
			}
		}
		s := newSite(w)
		s.settle(t)
		lost := 0
		s.wrote = func() {
			for n := range nodes {
				if !s.advertises(nodeName(n), w.Services[5].Assigned[0]) {
					lost++
				}
			}
			if !s.advertises(nodeName(0), w.Services[4].Assigned[0]) {
				lost++
			}
		}
		for range 8 {
			for range 1 + r.IntN(4) {
				edit(r, w.Services[r.IntN(4)], nodes) // 4 and 5 are of another tenant
			}
			if refused := s.settle(t); refused > 0 || lost > 0 {
				t.Fatalf("seed %d: %d writes refused, a route of another tenant absent after %d writes", seed, refused, lost)
			}
		}
	}
}
