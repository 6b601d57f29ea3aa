// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Writer writes objects of ours to an API server.
type Writer interface {
	// Answers returns an error if what admits objects, frr-k8s' webhook, does not answer. name is one that is there.
	// Deletions do not ask it, and routes would be absent until their successors are admitted.
	Answers(name string) error
	// Put creates or updates an object.
	Put(o Object) error
	Delete(name string) error
}

// application is what has been done of changes.
type application struct {
	*Changes
	to Writer
	// yields are the objects that yield, by node and neighbor, and named are these by name.
	yields map[nodeNeighbor][]*Yield
	named  map[string][]*Yield
	gone   map[*Yield]bool
	// stuck are the peers of which a write failed where another object had yielded: no more of theirs yield.
	stuck map[string]bool
	put   map[string]bool
	done  bool
}

// Apply makes the changes. It returns false if some failed or have to wait: no route is taken away as long as the
// object that is to have it instead is not written. Where an object must yield first, others of its nodes follow at
// once, and if these cannot be written, the peer's objects for other nodes stay.
func (c *Changes) Apply(to Writer) bool {
	a := &application{Changes: c, to: to, yields: map[nodeNeighbor][]*Yield{},
		named: map[string][]*Yield{}, gone: map[*Yield]bool{}, stuck: map[string]bool{}, put: map[string]bool{}, done: true}
	for i := range c.Yields {
		y := &c.Yields[i]
		a.named[y.Name] = []*Yield{y}
		for id := range sessionsIn(&c.there[y.Name].Spec) {
			for _, n := range c.there[y.Name].Nodes {
				a.yields[nodeNeighbor{n, id}] = append(a.yields[nodeNeighbor{n, id}], y)
			}
		}
	}
	// Objects that need no other one to yield come first: an object that yields because of one node may have their
	// prefixes for other nodes.
	adds := c.Put[:len(c.Put)-len(c.loses)]
	var yielding []Object
	for _, o := range adds {
		if len(a.yieldsBefore(&o)) > 0 {
			yielding = append(yielding, o)
			continue
		}
		a.write(write, o.Name, o)
	}
	for _, o := range yielding {
		a.replace(&o)
	}
	a.writeReduced(c.Put[len(adds):])
	for i := range c.Yields {
		a.yield([]*Yield{&c.Yields[i]}, c.there[c.Yields[i].Name].Peer)
	}
	for _, name := range c.After {
		switch is, next := c.next(nil, c.there[name]); {
		case is == remove:
			a.done = to.Delete(name) == nil && a.done
		case !a.put[name]:
			a.write(is, name, next)
		}
	}
	return a.done
}

// replace writes an object after those that have to yield to it.
func (a *application) replace(o *Object) {
	first := a.yieldsBefore(o)
	if !a.yield(first, o.Peer) {
		a.wait(o.Name)
		return
	}
	is, next := a.next(o, a.there[o.Name])
	if !a.write(is, o.Name, next) && len(first) > 0 {
		a.stuck[o.Peer] = true
	}
}

// writeReduced writes objects that lose something. Some of them get something else, and come before those that lose it.
// If objects only exchange what they have, those of one node come first: the routes of few nodes are absent then.
func (a *application) writeReduced(objects []Object) {
	pending := newLeft(objects)
	for i := range objects {
		pending.Add(objects[i].Name)
	}
	written := map[string]bool{}
	for len(objects) > 0 {
		var later []Object
		for _, o := range objects {
			if slices.ContainsFunc(pending.successorsOf(a.there[o.Name]), func(by *Object) bool { return !written[by.Name] }) {
				later = append(later, o)
				continue
			}
			written[o.Name] = true
			a.replace(&o)
		}
		if len(later) == len(objects) {
			slices.SortStableFunc(later, func(o, p Object) int { return len(o.Nodes) - len(p.Nodes) })
			now := 1
			for now < len(later) && len(later[now].Nodes) == 1 {
				now++
			}
			for _, o := range later[:now] {
				written[o.Name] = true
				a.replace(&o)
			}
			later = later[now:]
		}
		objects = later
	}
}

// yieldsBefore returns the objects that have to yield before one is written: those that it is not admitted beside.
func (a *application) yieldsBefore(o *Object) []*Yield {
	var out []*Yield
	if len(a.yields) == 0 {
		return nil
	}
	seen := map[*Yield]bool{}
	add := func(yields []*Yield) {
		for _, y := range yields {
			if a.gone[y] || seen[y] {
				continue
			}
			seen[y] = true
			if y.Name == o.Name || !a.admission.admits(o, a.there[y.Name]) {
				out = append(out, y)
			}
		}
	}
	add(a.named[o.Name]) // it would be taken away later
	for id := range sessionsIn(&o.Spec) {
		for _, n := range o.Nodes {
			add(a.yields[nodeNeighbor{n, id}])
		}
	}
	return out
}

// yield makes objects yield to one of a peer, and reports whether all did.
func (a *application) yield(yields []*Yield, peer string) bool {
	for i, y := range yields {
		switch {
		case a.gone[y]:
			continue
		case a.stuck[peer] || i == 0 && a.to.Answers(y.Name) != nil:
			a.stuck[peer], a.done = true, false
			return false
		}
		var err error
		if y.To == nil {
			err = a.to.Delete(y.Name)
		} else {
			err = a.to.Put(*y.To)
			a.put[y.Name] = true
		}
		if err != nil {
			a.stuck[peer], a.done = true, false
			return false
		}
		a.gone[y] = true
	}
	return true
}

// write writes an object as a step says, and reports whether that did not fail.
func (a *application) write(is step, name string, o Object) bool {
	var err error
	if is != keep {
		err = a.to.Put(o)
		a.put[name] = true
	}
	if is != write || err != nil {
		a.wait(name)
	}
	return err == nil
}

// wait notes that an object is not written as it should be.
func (a *application) wait(name string) {
	a.left.Add(name)
	a.done = false
}

// step is what is to become of an object now.
type step int

// The steps.
const (
	write  step = iota // as it is desired
	reduce             // to what it is to have, or others need that are left
	remove
	keep
)

// next returns what is to become of an object in Put, or in After (o is nil), that is there or nil, and what to write.
// What it has stays as long as another one that is to have it is left.
func (c *Changes) next(o *Object, is *world.FRRConfiguration) (step, Object) {
	if o != nil && !c.loses[o.Name] {
		return write, *o
	}
	needing := c.left.successorsOf(is)
	switch {
	case len(needing) == 0 && o == nil:
		return remove, Object{}
	case len(needing) == 0:
		return write, *o
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
		return keep, Object{}
	}
	reduced, some := without(is, gone, prefixes, labels)
	if !some {
		return keep, Object{}
	}
	return reduce, reduced
}
