// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Changes are the writes that make objects as desired.
type Changes struct {
	// Yields are objects that no desired ones are admitted beside, because of their session fields or local preferences.
	// Each is written just before the first of these, so that few routes are absent at a time.
	Yields []Yield
	// Put are the objects to create or update: first those that only add, then those that lose something.
	Put []Object
	// After are the objects that are no longer desired.
	After []string
	// there are the objects of ours that are there.
	there map[string]*world.FRRConfiguration
	// left are the desired objects that are not written as they should be.
	left *left
	// admission knows what is not admitted beside what.
	admission *admission
	// loses are the names of objects in Put that take away what need not go first.
	loses map[string]bool
}

// Yield is an object that others cannot be admitted beside.
type Yield struct {
	Name string
	// To is what stays of it until the next round, nil if nothing does.
	To *Object
}

// Diff returns the writes that are needed. Of the objects that are present, only ours are changed.
func Diff(desired []Object, present *world.FRR) Changes {
	out := Changes{left: newLeft(desired), loses: map[string]bool{}, there: map[string]*world.FRRConfiguration{}}
	yields := map[string]*Yield{}
	out.admission = newAdmission(desired, present.Passwords)
	for _, c := range present.Configurations {
		if c.Peer == "" {
			continue
		}
		out.there[c.Name] = c
		switch reduced, is := out.admission.without(c); is {
		case admitted:
		case refusedEverywhere:
			out.Yields = append(out.Yields, Yield{Name: c.Name})
		case refusedInPart:
			out.Yields = append(out.Yields, Yield{c.Name, &reduced})
		}
	}
	for i := range out.Yields {
		yields[out.Yields[i].Name] = &out.Yields[i]
	}
	want := map[string]bool{}
	var losing []Object
	for _, o := range desired {
		want[o.Name] = true
		was, yield := out.there[o.Name], yields[o.Name]
		switch {
		case yield != nil && yield.To != nil: // the rest is for the next round
			out.left.Add(o.Name)
		case yield != nil || was == nil:
			out.Put = append(out.Put, o)
		case was.Peer == o.Peer && frrapi.Equal(&was.Spec, &o.Spec):
		case removes(was, &o):
			losing, out.loses[o.Name] = append(losing, o), true
		default:
			out.Put = append(out.Put, o)
		}
	}
	out.Put = append(out.Put, losing...)
	for _, c := range present.Configurations {
		if c.Peer != "" && !want[c.Name] && (yields[c.Name] == nil || yields[c.Name].To != nil) {
			out.After = append(out.After, c.Name)
		}
	}
	return out
}

// nodeNeighbor is a neighbor on a node.
type nodeNeighbor struct{ node, id string }

// sessionsOf returns the desired sessions, by node and neighbor.
func sessionsOf(objects []Object) map[nodeNeighbor]*frrapi.Spec {
	out := map[nodeNeighbor]*frrapi.Spec{}
	for i := range objects {
		for id, session := range sessionsIn(&objects[i].Spec) {
			for _, n := range objects[i].Nodes {
				out[nodeNeighbor{n, id}] = session
			}
		}
	}
	return out
}

// sessionsIn returns an object for each neighbor, with what all objects must agree on.
func sessionsIn(spec *frrapi.Spec) map[string]*frrapi.Spec {
	out := map[string]*frrapi.Spec{}
	for _, r := range spec.BGP.Routers {
		for _, n := range r.Neighbors {
			n.Advertise = frrapi.Advertise{}
			one := r
			one.Neighbors, one.Prefixes, one.Imports = []frrapi.Neighbor{n}, nil, nil
			out[n.ID()] = &frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{one}, BFDProfiles: spec.BGP.BFDProfiles}}
		}
	}
	return out
}

// removes reports whether an update takes prefixes or nodes away.
func removes(was *world.FRRConfiguration, is *Object) bool {
	for _, n := range was.Nodes {
		if _, stays := slices.BinarySearch(is.Nodes, n); !stays {
			return true
		}
	}
	prefixes := prefixesIn(&is.Spec)
	for _, r := range was.Spec.BGP.Routers {
		if slices.ContainsFunc(r.Prefixes, func(p string) bool { return !prefixes[p] }) {
			return true
		}
	}
	return false
}
