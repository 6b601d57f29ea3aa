// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"maps"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// served is what the endpoints of one family of a Service have in common for all its addresses, of which there may be
// thousands. It depends on nothing else but the names of the Nodes. There may be a hundred thousand endpoints as well.
type served struct {
	service *world.Service
	// any is set if there are endpoints that receive traffic. nodes are their Nodes; nil if they are not known yet.
	any   bool
	nodes *nodeList
	// on reports whether there are some on node, the last one that was asked for while nodes were not known.
	node string
	on   bool
}

type servedID struct {
	key    world.Key
	family world.Family
}

// nodeList are the sorted names of Nodes. Equal lists of a Layout have one number.
type nodeList struct {
	names  []string
	key    string
	number int
}

// KeepFrom takes over what a former layout has read from the endpoints of Services that are still the same, and its
// last survey. It takes over nothing if there are other Nodes.
func (l *Layout) KeepFrom(former *Layout) {
	if former == nil ||
		!maps.EqualFunc(l.nodes, former.nodes, func(_, _ *world.Node) bool { return true }) {
		return
	}
	l.numbered, l.surveyed = former.numbered, former.surveyed
	for _, s := range l.world.Services {
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			id := servedID{s.Key, f}
			is := former.kept[id]
			if is == nil || is.service != s {
				continue
			}
			l.kept[id] = is
			if is.nodes != nil {
				l.lists[is.nodes.key] = is.nodes
			}
		}
	}
}

// served returns what is known of a Service.
func (l *Layout) served(s *world.Service, f world.Family) *served {
	id := servedID{s.Key, f}
	is := l.kept[id]
	if is == nil || is.service != s {
		is = &served{service: s}
		for range plan.UsableEndpoints(s, f) {
			is.any = true
			break
		}
		l.kept[id] = is
	}
	return is
}

// serves reports whether a node, or any node if the name is empty, has endpoints that receive the traffic of a family.
func (l *Layout) serves(s *world.Service, f world.Family, node string) bool {
	is := l.served(s, f)
	switch {
	case node == "":
		return is.any
	case is.nodes != nil:
		return containsName(is.nodes.names, node)
	case is.node != node: // only its own node matters to a daemon, which needs no list
		is.node, is.on = node, false
		for e := range plan.UsableEndpoints(s, f) {
			if e.Node == node {
				is.on = true
				break
			}
		}
	}
	return is.on
}

// endpointNodes returns the Nodes with endpoints that receive traffic. Tenants may write any names into EndpointSlices:
// only those of Nodes count.
func (l *Layout) endpointNodes(s *world.Service, f world.Family) *nodeList {
	is := l.served(s, f)
	if is.nodes != nil {
		return is.nodes
	}
	found, last := map[string]bool{}, ""
	for e := range plan.UsableEndpoints(s, f) {
		if e.Node == last {
			continue
		}
		if last = e.Node; l.nodes[last] != nil {
			found[last] = true
		}
	}
	names := slices.Sorted(maps.Keys(found))
	key := strings.Join(names, "/")
	if is.nodes = l.lists[key]; is.nodes == nil {
		is.nodes = &nodeList{names, key, l.numbered}
		l.lists[key] = is.nodes
		l.numbered++
	}
	return is.nodes
}
