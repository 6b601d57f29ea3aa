// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// speaker is a node with its sessions, by peer, and the lists of addresses that it advertises.
type speaker struct {
	name     string
	sessions map[string]bool // whether established
	lists    []*item
	routes   int
}

// routing returns the figure of BGP: addresses that the same nodes advertise, the nodes, of which those with equal
// sessions and addresses share a box, and the peers. Sessions that are unknown, by node, do not count as established.
func routing(o *objects.Objects, routes []explain.Route, unknown map[string]string) figure {
	f := figure{title: "BGP"}
	speakers := map[string]*speaker{}
	for _, n := range o.NodeStatuses {
		s := &speaker{name: n.Name, sessions: map[string]bool{}}
		for i := range n.Status.Sessions {
			s.sessions[n.Status.Sessions[i].Peer] = n.Status.Sessions[i].State == v1alpha1.BGPEstablished &&
				n.Status.StopTime == nil && unknown[n.Name] == ""
		}
		speakers[n.Name] = s
	}
	byNodes := map[string][]explain.Route{}
	for _, r := range routes {
		key := strings.Join(r.Nodes, " ")
		byNodes[key] = append(byNodes[key], r)
	}
	for _, key := range slices.Sorted(maps.Keys(byNodes)) {
		same := byNodes[key]
		var addresses []served
		for _, r := range same {
			addresses = append(addresses, served{r.Address, r.Service})
		}
		list := &item{lines: sorted(addresses)}
		f.lists = append(f.lists, list)
		for _, name := range same[0].Nodes {
			if s := speakers[name]; s != nil {
				s.lists, s.routes = append(s.lists, list), s.routes+len(same)
			}
		}
	}
	peers := peerBoxes(o, speakers)
	for _, group := range grouped(speakers) {
		f.middle = append(f.middle, nodeBox(group, peers))
	}
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		f.right = append(f.right, peers[name])
	}
	return f
}

// peerBoxes returns the boxes of the peers, by name.
func peerBoxes(o *objects.Objects, speakers map[string]*speaker) map[string]*item {
	established, sessions := map[string]int{}, map[string]int{}
	for _, s := range speakers {
		for peer, up := range s.sessions {
			sessions[peer]++
			if up {
				established[peer]++
			}
		}
	}
	peers := map[string]*item{}
	for _, p := range o.Peers {
		where := string(p.Spec.PeerAddress)
		if where == "" {
			where = p.Spec.Interface
		}
		peers[p.Name] = box(active, fmt.Sprintf("%s  %s", p.Name, where), "")
	}
	for peer := range sessions {
		if peers[peer] == nil {
			peers[peer] = box(active, peer, "")
		}
	}
	for name, b := range peers {
		b.lines[1] = fmt.Sprintf("%d of %s established", established[name], world.Count(sessions[name], "session"))
		if established[name] < sessions[name] || sessions[name] == 0 {
			b.class = broken
		}
	}
	return peers
}

// grouped returns the nodes in groups with equal sessions and addresses, by the name of their first node.
func grouped(speakers map[string]*speaker) (groups [][]*speaker) {
	index := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(speakers)) {
		s := speakers[name]
		key := fmt.Sprintf("%v %v", s.sessions, s.lists)
		i, found := index[key]
		if !found {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// nodeBox returns the box of nodes with equal sessions and addresses, and adds the lines from it to its peers.
func nodeBox(group []*speaker, peers map[string]*item) *item {
	const most = 3
	var names []string
	for _, s := range group {
		names = append(names, s.name)
	}
	first := group[0]
	verb := "advertise "
	if len(group) == 1 {
		verb = "advertises "
	}
	b := box(active, strings.Join(names[:min(most, len(names))], ", "), verb+world.Count(first.routes, "address"))
	if more := len(names) - most; more > 0 {
		b.lines[0] += fmt.Sprintf(" and %d more", more)
	}
	for _, list := range first.lists {
		b.left = append(b.left, edge{list, has})
	}
	anyUp := false
	for _, peer := range slices.Sorted(maps.Keys(first.sessions)) {
		class := down
		switch up := first.sessions[peer]; {
		case up && first.routes > 0:
			class = carries
		case up:
			class = has
		}
		anyUp = anyUp || class != down
		peers[peer].left = append(peers[peer].left, edge{b, class})
	}
	switch {
	case !anyUp:
		b.class = broken
	case first.routes == 0:
		b.class = standby
	}
	return b
}

// hasBGP reports whether a cluster has anything of BGP.
func hasBGP(o *objects.Objects) bool {
	return len(o.Peers) > 0 || slices.ContainsFunc(o.NodeStatuses, func(n *v1alpha1.BGPNodeStatus) bool {
		return len(n.Status.Sessions) > 0
	})
}
