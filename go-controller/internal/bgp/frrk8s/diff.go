// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Changes are the writes that make objects as desired, in this order.
type Changes struct {
	// Before are objects whose session fields contradict desired ones on all their nodes: no object with these is
	// admitted beside them.
	Before []string
	// Put are the objects to create or update: first those that lose what contradicts others, then those that only add.
	// An object that loses something is here without it only, and needs another round if more of it changes.
	Put []Object
	// Left are the desired objects that are not written as they should be: at first those that need another round. The
	// caller adds those that it does not write as they are here.
	Left *Left
	// loses are the names of objects in Put that take away what need not go first.
	loses map[string]bool
	// After are the objects that are no longer desired.
	After []string
}

// Diff returns the writes that are needed. Of the objects that are present, only ours are changed.
func Diff(desired []Object, present *world.FRR) Changes {
	out := Changes{Left: newLeft(desired), loses: map[string]bool{}}
	there := map[string]*world.FRRConfiguration{}
	for _, c := range present.Configurations {
		if c.Peer != "" {
			there[c.Name] = c
		}
	}
	want := map[string]bool{}
	order := map[string]int{}
	refused := newRefusals(desired, present.Passwords)
	for _, c := range present.Configurations {
		switch reduced, is := refused.without(c); {
		case c.Peer == "" || is == admitted:
		case is == refusedEverywhere:
			out.Before = append(out.Before, c.Name)
		default:
			out.Put, order[c.Name] = append(out.Put, reduced), reduces
		}
	}
	for _, o := range desired {
		want[o.Name] = true
		was := there[o.Name]
		if order[o.Name] == reduces {
			out.Left.Add(o.Name)
			continue
		}
		if was != nil && was.Peer == o.Peer && frrapi.Equal(&was.Spec, &o.Spec) {
			continue
		}
		out.Put, order[o.Name] = append(out.Put, o), adds
		if was != nil && removes(was, &o) {
			order[o.Name], out.loses[o.Name] = loses, true
		}
	}
	slices.SortStableFunc(out.Put, func(a, b Object) int { return cmp.Compare(order[a.Name], order[b.Name]) })
	for _, c := range present.Configurations {
		if c.Peer != "" && !want[c.Name] && !slices.Contains(out.Before, c.Name) {
			out.After = append(out.After, c.Name)
		}
	}
	return out
}

// The order of writes.
const (
	reduces = iota - 1
	adds
	loses
)

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
