// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// maxBucket is the number of prefixes above which the prefixes of an object are divided among several, and maxNodes
	// the number of nodes above which the nodes of a cluster are.
	maxBucket, maxNodes = 128, 64
	// maxName is the part of the name of a peer or node in names of objects.
	maxName = 60
)

// cell identifies what an object has, before its prefixes are divided: those of a group for a bucket of nodes, or those
// of a node that depend on endpoints. It does not depend on which nodes and prefixes these are at the moment, so that a
// change of them is an update, and one of a node affects no objects but those of its bucket.
type cell struct {
	class   *class
	place   string
	key     string
	leaving bool
}

// sessionKey is the key of the object that keeps a session, also while there are no routes.
const sessionKey = "session"

// content is what a cell has.
type content struct {
	nodes  []string
	routes map[netip.Prefix]bgp.Attributes
}

// sets collects the objects of a peer.
type sets struct {
	peer      string
	hostnames *hostnames
	leaving   map[string]bool
	cells     map[cell]*content
	// buckets is the number of buckets of nodes. divided are the numbers of objects among which the prefixes of cells are
	// divided at present, by name of the cell.
	buckets int
	divided map[string][]int
}

// newSets returns a peer without objects in a cluster with a number of nodes. present are all objects that are there.
func newSets(peer string, h *hostnames, leaving map[string]bool, nodes int, present []*world.FRRConfiguration) *sets {
	s := &sets{peer: peer, hostnames: h, leaving: leaving, cells: map[cell]*content{}, divided: map[string][]int{}}
	var buckets []int
	for _, c := range present {
		if c.Peer != peer {
			continue
		}
		var i, n int
		if at := strings.LastIndexByte(c.Name, '-'); at > 0 { // Whoever writes FRRConfigurations can use our label.
			if _, err := fmt.Sscanf(c.Name[at+1:], "%dof%d", &i, &n); err == nil {
				s.divided[c.Name[:at]] = append(s.divided[c.Name[:at]], n)
			}
		}
		if rest, ok := strings.CutPrefix(c.Name, s.prefix()); ok {
			if _, err := fmt.Sscanf(rest, "n%dof%d-", &i, &n); err == nil {
				buckets = append(buckets, n)
			}
		}
	}
	s.buckets = parts(nodes, maxNodes, buckets)
	return s
}

func (s *sets) prefix() string { return "slb-" + shortened(s.peer, maxName) + "-" }

// parts returns among how many parts a number of things is divided, a power of two: at most so many are in each on
// average. The number that is present stays until they are too many, or a quarter.
func parts(number, most int, present []int) int {
	slices.Sort(present)
	for _, n := range slices.Backward(present) {
		if n > 0 && n&(n-1) == 0 && number <= most*n && (n == 1 || number > most*n/4) {
			return n
		}
	}
	n := 1
	for number > most*n {
		n *= 2
	}
	return n
}

// bucketOf returns the part of something.
func bucketOf(text string, parts int) int {
	h := fnv.New32a()
	h.Write([]byte(text))
	return int(h.Sum32() % uint32(parts))
}

// session adds the objects that keep the session of a class.
func (s *sets) session(c *class) {
	for _, n := range c.nodes {
		s.at(c, n, sessionKey, false)
	}
}

// routes adds the routes of a group, divided by the sessions of its nodes, and by whether they leave.
func (s *sets) routes(g bgp.Group, classOf map[string]*class) {
	added := map[*content]bool{}
	for _, n := range g.Nodes {
		class, leaving := classOf[n], s.leaving[n]
		into := s.at(class, n, g.Key, leaving)
		if added[into] {
			continue
		}
		added[into] = true
		for prefix, a := range g.Routes {
			if !class.family.Has(prefix) {
				continue
			}
			if leaving && !slices.Contains(a.Communities, gracefulShutdown) {
				a.Communities = append(slices.Clone(a.Communities), gracefulShutdown)
			}
			into.routes[prefix] = a
		}
	}
}

// at adds a node to the cell for a key, and returns its content.
func (s *sets) at(c *class, node, key string, leaving bool) *content {
	id := cell{class: c, key: key, leaving: leaving}
	if key == "" || s.hostnames.sharesLabel(node) {
		id.place = "on-" + node
	} else {
		id.place = fmt.Sprintf("n%dof%d", bucketOf(node, s.buckets), s.buckets)
	}
	is := s.cells[id]
	if is == nil {
		is = &content{routes: map[netip.Prefix]bgp.Attributes{}}
		s.cells[id] = is
	}
	if at, there := slices.BinarySearch(is.nodes, node); !there {
		is.nodes = slices.Insert(is.nodes, at, node)
	}
	return is
}

// name returns the name of a cell.
func (s *sets) name(c cell) string {
	session := ""
	if c.class.shared { // it differs from node to node, and from that of the BGPPeer
		text, _ := json.Marshal(c.class.router)
		session = string(text)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{s.peer, c.place, c.key, session}, "\n")))
	name := s.prefix() + shortened(c.place, maxName) + "-" + hex.EncodeToString(sum[:8])
	if c.leaving {
		name += "-leaving"
	}
	return name
}

// shortened returns a name of at most most characters, which is unique for the name.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:most-17], "-.") + "-" + hex.EncodeToString(sum[:8])
}

// objects returns the objects.
func (s *sets) objects() []Object {
	var out []Object
	for id, is := range s.cells {
		name := s.name(id)
		count := parts(len(is.routes), maxBucket, s.divided[name])
		in := make([]map[netip.Prefix]bgp.Attributes, count)
		for prefix, a := range is.routes {
			i := bucketOf(prefix.String(), count)
			if in[i] == nil {
				in[i] = map[netip.Prefix]bgp.Attributes{}
			}
			in[i][prefix] = a
		}
		for i, routes := range in {
			o := Object{Name: fmt.Sprintf("%s-%dof%d", name, i, count), Peer: s.peer, Nodes: is.nodes,
				Spec: specOf(id.class, routes), labels: s.hostnames.labels}
			if id.key == sessionKey {
				o.Name = name + "-session"
			} else if len(routes) == 0 {
				continue
			}
			o.Spec.NodeSelector = selectorOf(is.nodes, s.hostnames.labels)
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
