// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Left are the desired objects that are not written as they should be, by the sessions that they are for.
type Left struct {
	desired map[string]*Object
	by      map[nodeNeighbor][]*Object
}

func newLeft(desired []Object) *Left {
	l := &Left{desired: make(map[string]*Object, len(desired)), by: map[nodeNeighbor][]*Object{}}
	for i := range desired {
		l.desired[desired[i].Name] = &desired[i]
	}
	return l
}

// Add adds the desired object of a name, if there is one.
func (l *Left) Add(name string) {
	o := l.desired[name]
	if o == nil {
		return
	}
	delete(l.desired, name)
	for id := range sessionsIn(&o.Spec) {
		for _, n := range o.Nodes {
			l.by[nodeNeighbor{n, id}] = append(l.by[nodeNeighbor{n, id}], o)
		}
	}
}

// needing returns those of them that are to have what an object has now, in one of its sessions: a prefix or, of an
// object without prefixes, the session. Without that object, it would be withdrawn.
func (l *Left) needing(c *world.FRRConfiguration) []*Object {
	if len(l.by) == 0 {
		return nil
	}
	var out []*Object
	has, seen := prefixesIn(&c.Spec), map[*Object]bool{}
	for id := range sessionsIn(&c.Spec) {
		for _, n := range c.Nodes {
			for _, o := range l.by[nodeNeighbor{n, id}] {
				if seen[o] || o.Name == c.Name {
					continue
				}
				seen[o] = true
				if slices.ContainsFunc(o.Spec.BGP.Routers, func(r frrapi.Router) bool {
					return len(has) == 0 && len(r.Prefixes) == 0 ||
						slices.ContainsFunc(r.Prefixes, func(p string) bool { return has[p] })
				}) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// Step is what is to become of an object now.
type Step int

// The steps.
const (
	Write  Step = iota // as it is desired
	Reduce             // to what it is to have, or others need that are left
	Delete
	Keep
)

// Next returns what is to become of an object in Put, or in After (o is nil), that is there or nil, and what to write.
// What it has stays as long as another one that is to have it is left.
func (c *Changes) Next(o *Object, is *world.FRRConfiguration) (Step, Object) {
	if o != nil && !c.loses[o.Name] {
		return Write, *o
	}
	needing := c.Left.needing(is)
	switch {
	case len(needing) == 0 && o == nil:
		return Delete, Object{}
	case len(needing) == 0:
		return Write, *o
	case o != nil:
		needing = append(needing, o)
	}
	nodes, values, prefixes := map[string]bool{}, map[string]bool{}, prefixesIn(&is.Spec)
	for _, by := range needing {
		for _, n := range by.Nodes {
			nodes[n], values[by.labels[n]] = true, true
		}
		for p := range prefixesIn(&by.Spec) {
			delete(prefixes, p)
		}
	}
	labels := needing[0].labels
	gone := slices.DeleteFunc(slices.Clone(is.Nodes), func(n string) bool { return nodes[n] || values[labels[n]] })
	if len(gone)+len(prefixes) == 0 {
		return Keep, Object{}
	}
	reduced, some := without(is, gone, prefixes, labels)
	if !some {
		return Keep, Object{}
	}
	return Reduce, reduced
}

func prefixesIn(spec *frrapi.Spec) map[string]bool {
	out := map[string]bool{}
	for _, r := range spec.BGP.Routers {
		for _, p := range r.Prefixes {
			out[p] = true
		}
	}
	return out
}
