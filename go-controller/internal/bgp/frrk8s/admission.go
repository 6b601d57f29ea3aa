// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// admission is what frr-k8s admits: it knows which of the objects that are there are not admitted beside the desired
// ones.
type admission struct {
	passwords map[string]string
	sessions  map[nodeNeighbor]*frrapi.Spec
	// preferring are the desired objects with local preferences, by node: a prefix may be in an object of each node, so
	// that comparing all objects with a prefix would be quadratic in the nodes.
	preferring map[string][]*preferring
	labels     map[string]string
}

type neighborPrefix struct{ id, prefix string }

// preferring is a desired object with its local preferences.
type preferring struct {
	name        string
	preferences map[neighborPrefix]uint32
}

func newAdmission(desired []Object, passwords map[string]string) *admission {
	r := &admission{passwords: passwords, sessions: sessionsOf(desired),
		preferring: map[string][]*preferring{}}
	for i := range desired {
		o := &desired[i]
		r.labels = o.labels
		is := &preferring{o.Name, preferencesIn(&o.Spec)}
		if len(is.preferences) == 0 {
			continue
		}
		for _, n := range o.Nodes {
			r.preferring[n] = append(r.preferring[n], is)
		}
	}
	return r
}

// verdict is what has to become of an object before others are written.
type verdict int

const (
	admitted verdict = iota
	refusedInPart
	refusedEverywhere
)

// without returns an object without the nodes on which its session contradicts a desired one, and without the prefixes
// to which another desired object gives another local preference on one of its nodes.
func (r *admission) without(c *world.FRRConfiguration) (Object, verdict) {
	nodes, prefixes := r.refusedNodes(c), r.refusedPrefixes(c)
	if len(nodes) == 0 && len(prefixes) == 0 {
		return Object{}, admitted
	}
	out, some := without(c, nodes, prefixes, r.labels)
	if !some {
		return Object{}, refusedEverywhere
	}
	return out, refusedInPart
}

// without returns an object without some nodes and prefixes, and false if no node is left or its selector is not one
// of ours.
func without(c *world.FRRConfiguration, nodes []string, prefixes map[string]bool,
	labels map[string]string) (Object, bool) {
	out := Object{Name: c.Name, Peer: c.Peer, Spec: c.Spec}
	if len(nodes) > 0 {
		s := c.Spec.NodeSelector
		if len(s.MatchLabels) > 0 || len(s.MatchExpressions) != 1 || s.MatchExpressions[0].Key != hostname ||
			s.MatchExpressions[0].Operator != "In" {
			return Object{}, false
		}
		values := map[string]bool{}
		for _, n := range nodes {
			values[labels[n]] = true
		}
		is := s.MatchExpressions[0]
		is.Values = slices.DeleteFunc(slices.Clone(is.Values), func(v string) bool { return values[v] })
		if len(is.Values) == 0 {
			return Object{}, false
		}
		out.Spec.NodeSelector.MatchExpressions = []frrapi.Requirement{is}
	}
	for _, n := range c.Nodes {
		if !slices.Contains(nodes, n) {
			out.Nodes = append(out.Nodes, n)
		}
	}
	out.Spec.BGP.Routers = slices.Clone(c.Spec.BGP.Routers)
	for i := range out.Spec.BGP.Routers {
		withoutPrefixes(&out.Spec.BGP.Routers[i], prefixes)
	}
	return out, true
}

// refusedNodes returns the nodes on which frr-k8s would refuse the session of an object beside the desired one. Other
// differences, as between an unset timer and one with FRR's default, are edited in place.
func (r *admission) refusedNodes(c *world.FRRConfiguration) []string {
	var out []string
	for id, session := range sessionsIn(&c.Spec) {
		refused := map[*frrapi.Spec]bool{}
		for _, n := range c.Nodes {
			want := r.sessions[nodeNeighbor{n, id}]
			if want == nil {
				continue
			}
			is, known := refused[want]
			if !known {
				is = r.contradict(want, session)
				refused[want] = is
			}
			if is {
				out = append(out, n)
			}
		}
	}
	return out
}

// contradict reports whether frr-k8s would refuse one of two sessions with the same neighbor of a node.
func (r *admission) contradict(a, b *frrapi.Spec) bool {
	merged := NewMerged(r.passwords)
	return !frrapi.Equal(a, b) && (merged.Add("", a) != nil || merged.Add("", b) != nil || password(a) != password(b))
}

// admits reports whether a desired object is admitted beside one that is there for some of its nodes.
func (r *admission) admits(o *Object, beside *world.FRRConfiguration) bool {
	sessions := sessionsIn(&o.Spec)
	for id, session := range sessionsIn(&beside.Spec) {
		if want := sessions[id]; want != nil && r.contradict(want, session) {
			return false
		}
	}
	has := preferencesIn(&beside.Spec)
	for key, want := range preferencesIn(&o.Spec) {
		if value, also := has[key]; also && want != value {
			return false
		}
	}
	return true
}

// password returns the password in the only neighbor of an object. The webhook compares these, and takes a password in
// a Secret, which it does not read, for none.
func password(spec *frrapi.Spec) string { return spec.BGP.Routers[0].Neighbors[0].Password }

// refusedPrefixes returns the prefixes to which another object is to give another local preference.
func (r *admission) refusedPrefixes(c *world.FRRConfiguration) map[string]bool {
	out, compared := map[string]bool{}, map[*preferring]bool{}
	has := preferencesIn(&c.Spec)
	if len(has) == 0 {
		return out
	}
	for _, n := range c.Nodes {
		for _, o := range r.preferring[n] {
			if o.name == c.Name || compared[o] {
				continue
			}
			compared[o] = true
			for key, value := range has {
				if want, also := o.preferences[key]; also && want != value {
					out[key.prefix] = true
				}
			}
		}
	}
	return out
}

// preferencesIn returns the local preferences in an object.
func preferencesIn(spec *frrapi.Spec) map[neighborPrefix]uint32 {
	out := map[neighborPrefix]uint32{}
	for _, router := range spec.BGP.Routers {
		for _, n := range router.Neighbors {
			for _, l := range n.Advertise.LocalPref {
				for _, p := range l.Prefixes {
					out[neighborPrefix{n.ID(), p}] = l.LocalPref
				}
			}
		}
	}
	return out
}

// withoutPrefixes removes prefixes from a router, which it does not share with others.
func withoutPrefixes(r *frrapi.Router, prefixes map[string]bool) {
	left := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(p string) bool { return prefixes[p] })
	}
	r.Prefixes, r.Neighbors = left(r.Prefixes), slices.Clone(r.Neighbors)
	for i := range r.Neighbors {
		to := &r.Neighbors[i].Advertise
		to.Allowed.Prefixes = left(to.Allowed.Prefixes)
		preferences, communities := to.LocalPref, to.Community
		to.LocalPref, to.Community = nil, nil
		for _, l := range preferences {
			if l.Prefixes = left(l.Prefixes); len(l.Prefixes) > 0 {
				to.LocalPref = append(to.LocalPref, l)
			}
		}
		for _, l := range communities {
			if l.Prefixes = left(l.Prefixes); len(l.Prefixes) > 0 {
				to.Community = append(to.Community, l)
			}
		}
	}
}
