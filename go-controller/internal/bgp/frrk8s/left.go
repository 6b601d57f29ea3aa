// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// left are the desired objects that are not written as they should be, by the sessions that they are for.
type left struct {
	desired map[string]*Object
	by      map[nodeNeighbor][]*Object
}

func newLeft(desired []Object) *left {
	l := &left{desired: make(map[string]*Object, len(desired)), by: map[nodeNeighbor][]*Object{}}
	for i := range desired {
		l.desired[desired[i].Name] = &desired[i]
	}
	return l
}

// Add adds the desired object of a name, if there is one.
func (l *left) Add(name string) {
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

// successorsOf returns those of them that are to have what an object has now, in one of its sessions: a prefix or, of
// an object without prefixes, the session. Without that object, it would be withdrawn.
func (l *left) successorsOf(c *world.FRRConfiguration) []*Object {
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

func prefixesIn(spec *frrapi.Spec) map[string]bool {
	out := map[string]bool{}
	for _, r := range spec.BGP.Routers {
		for _, p := range r.Prefixes {
			out[p] = true
		}
	}
	return out
}
