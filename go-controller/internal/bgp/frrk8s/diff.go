// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Changes are the writes that make objects as desired, in this order.
type Changes struct {
	// Before are objects whose session fields contradict desired ones: no object with these is admitted beside them.
	Before []string
	// Put are the objects to create or update. Those that only add come first.
	Put []Object
	// After are the objects that are no longer desired.
	After []string
}

// Diff returns the writes that are needed. present are all objects of frr-k8s; only ours are changed.
func Diff(desired []Object, present []*world.FRRConfiguration) Changes {
	var out Changes
	there := map[string]*world.FRRConfiguration{}
	for _, c := range present {
		if c.Peer != "" {
			there[c.Name] = c
		}
	}
	want := map[string]bool{}
	sessions := sessionsOf(desired)
	removing := map[string]bool{}
	for _, o := range desired {
		want[o.Name] = true
		was := there[o.Name]
		if was != nil && was.Peer == o.Peer && frrapi.Equal(&was.Spec, &o.Spec) {
			continue
		}
		out.Put = append(out.Put, o)
		removing[o.Name] = was != nil && removes(&was.Spec, &o.Spec)
	}
	slices.SortStableFunc(out.Put, func(a, b Object) int {
		number := func(removes bool) int {
			if removes {
				return 1
			}
			return 0
		}
		return cmp.Compare(number(removing[a.Name]), number(removing[b.Name]))
	})
	for _, c := range present {
		switch {
		case c.Peer == "":
		case contradicts(c, sessions):
			out.Before = append(out.Before, c.Name)
		case !want[c.Name]:
			out.After = append(out.After, c.Name)
		}
	}
	return out
}

// nodeNeighbor is a neighbor on a node.
type nodeNeighbor struct{ node, id string }

// sessionsOf returns the session fields in objects, as JSON, by node and neighbor.
func sessionsOf(objects []Object) map[nodeNeighbor]string {
	out := map[nodeNeighbor]string{}
	for i := range objects {
		for id, session := range sessionFields(&objects[i].Spec) {
			for _, n := range objects[i].Nodes {
				out[nodeNeighbor{n, id}] = session
			}
		}
	}
	return out
}

// sessionFields returns the fields of each neighbor in which all objects must agree, as JSON.
func sessionFields(spec *frrapi.Spec) map[string]string {
	out := map[string]string{}
	for _, r := range spec.BGP.Routers {
		for _, n := range r.Neighbors {
			n.Advertise = frrapi.Advertise{}
			data, _ := json.Marshal([]any{r.ASN, r.ID, n, spec.BGP.BFDProfiles}) // all values that JSON holds
			out[n.ID()] = string(data)
		}
	}
	return out
}

// contradicts reports whether an object has other session fields than desired on any of its nodes.
func contradicts(c *world.FRRConfiguration, desired map[nodeNeighbor]string) bool {
	for id, session := range sessionFields(&c.Spec) {
		for _, n := range c.Nodes {
			if want, ok := desired[nodeNeighbor{n, id}]; ok && want != session {
				return true
			}
		}
	}
	return false
}

// removes reports whether an update takes prefixes away.
func removes(was, is *frrapi.Spec) bool {
	prefixes := map[string]bool{}
	for _, r := range is.BGP.Routers {
		for _, p := range r.Prefixes {
			prefixes[p] = true
		}
	}
	for _, r := range was.BGP.Routers {
		if slices.ContainsFunc(r.Prefixes, func(p string) bool { return !prefixes[p] }) {
			return true
		}
	}
	return false
}
