// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

const (
	// maxBucket is the number of prefixes above which the prefixes of the same nodes are divided among several objects: a
	// change then rewrites only one of them.
	maxBucket = 128
	// hostname is the label that selects nodes.
	hostname = "kubernetes.io/hostname"
	// maxPeerName is the part of a peer's name in names of objects.
	maxPeerName = 60
)

// set are the routes that the same nodes advertise in the same session.
type set struct {
	class  *class
	nodes  []string
	suffix string
	routes map[netip.Prefix]bgp.Attributes
}

// sets collects the objects of a peer.
type sets struct {
	peer    string
	leaving map[string]bool
	byName  map[string]*set
}

func newSets(peer string, leaving map[string]bool) *sets {
	return &sets{peer: peer, leaving: leaving, byName: map[string]*set{}}
}

// session adds the object that keeps the session of a class, also while there are no routes.
func (s *sets) session(c *class) { s.at(c, c.nodes, "-session") }

// routes adds the routes of a group, divided by the sessions of its nodes, and by whether they leave.
func (s *sets) routes(g bgp.Group, classOf map[string]*class, conflicts map[string]*Conflict) {
	type part struct {
		class   *class
		leaving bool
	}
	parts := map[part][]string{}
	for _, n := range g.Nodes {
		if conflicts[n] == nil {
			p := part{classOf[n], s.leaving[n]}
			parts[p] = append(parts[p], n)
		}
	}
	for p, nodes := range parts {
		suffix := ""
		if p.leaving {
			suffix = "-leaving"
		}
		into := s.at(p.class, nodes, suffix)
		for prefix, a := range g.Routes {
			if !p.class.family.has(prefix) {
				continue
			}
			if p.leaving && !slices.Contains(a.Communities, gracefulShutdown) {
				a.Communities = append(slices.Clone(a.Communities), gracefulShutdown)
			}
			into.routes[prefix] = a
		}
	}
}

// at returns the set of some nodes, which are all of one class.
func (s *sets) at(c *class, nodes []string, suffix string) *set {
	sum := sha256.Sum256([]byte(s.peer + "\n" + strings.Join(nodes, "\n")))
	name := "slb-" + shortened(s.peer, maxPeerName) + "-" + hex.EncodeToString(sum[:5]) + suffix
	if s.byName[name] == nil {
		s.byName[name] = &set{class: c, nodes: nodes, suffix: suffix, routes: map[netip.Prefix]bgp.Attributes{}}
	}
	return s.byName[name]
}

// shortened returns a name of at most most characters, which is unique for the name.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:most-9], "-.") + "-" + hex.EncodeToString(sum[:4])
}

// objects returns the objects. labels are the hostnames of nodes.
func (s *sets) objects(labels map[string]string) []Object {
	var out []Object
	for name, is := range s.byName {
		buckets := 1
		for len(is.routes) > maxBucket*buckets {
			buckets *= 2
		}
		in := make([]map[netip.Prefix]bgp.Attributes, buckets)
		for prefix, a := range is.routes {
			h := fnv.New32a()
			h.Write([]byte(prefix.String()))
			i := h.Sum32() % uint32(buckets)
			if in[i] == nil {
				in[i] = map[netip.Prefix]bgp.Attributes{}
			}
			in[i][prefix] = a
		}
		for i, routes := range in {
			if len(routes) == 0 && is.suffix != "-session" {
				continue
			}
			o := Object{Name: name, Peer: s.peer, Nodes: is.nodes, Spec: specOf(is.class, routes)}
			if i > 0 {
				o.Name = fmt.Sprintf("%s-%d", name, i)
			}
			o.Spec.NodeSelector = selectorOf(is.nodes, labels)
			out = append(out, o)
		}
	}
	return out
}

func selectorOf(nodes []string, labels map[string]string) frrapi.Selector {
	values := make([]string, 0, len(nodes))
	for _, n := range nodes {
		values = append(values, labels[n])
	}
	slices.Sort(values)
	return frrapi.Selector{MatchExpressions: []frrapi.Requirement{{Key: hostname, Operator: "In",
		Values: slices.Compact(values)}}}
}

// specOf returns the spec of an object with a session and routes.
func specOf(c *class, routes map[netip.Prefix]bgp.Attributes) frrapi.Spec {
	r := c.router
	n := r.Neighbors[0]
	n.Advertise.Allowed.Mode = frrapi.AllowFiltered
	prefixes := slices.SortedFunc(maps.Keys(routes), netip.Prefix.Compare)
	preferences, communities := map[uint32][]string{}, map[string][]string{}
	for _, p := range prefixes {
		text, a := p.String(), routes[p]
		r.Prefixes = append(r.Prefixes, text)
		if a.LocalPref != nil {
			preferences[*a.LocalPref] = append(preferences[*a.LocalPref], text)
		}
		for _, v := range a.Communities {
			name := fmt.Sprintf("%d:%d", v>>16, v&0xFFFF)
			communities[name] = append(communities[name], text)
		}
		for _, v := range a.LargeCommunities {
			name := fmt.Sprintf("large:%d:%d:%d", v.Global, v.Local1, v.Local2)
			communities[name] = append(communities[name], text)
		}
	}
	n.Advertise.Allowed.Prefixes = r.Prefixes
	for _, v := range slices.Sorted(maps.Keys(preferences)) {
		n.Advertise.LocalPref = append(n.Advertise.LocalPref, frrapi.LocalPrefPrefixes{LocalPref: v,
			Prefixes: preferences[v]})
	}
	for _, v := range slices.Sorted(maps.Keys(communities)) {
		n.Advertise.Community = append(n.Advertise.Community, frrapi.CommunityPrefixes{Community: v,
			Prefixes: communities[v]})
	}
	r.Neighbors = []frrapi.Neighbor{n}
	return frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{r}, BFDProfiles: c.profiles}}
}
