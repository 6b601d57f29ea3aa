// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// MaxRoutes is the maximum number of prefixes of a peer. frr-reload.py removes 1,000 one by one in 70 s, in which other
// changes wait, and an FRRNodeState has to hold the text of FRR's configuration, 170 bytes per prefix.
const MaxRoutes = 1000

// MaxLocalRoutes is the maximum number of prefixes x nodes of a peer, of prefixes whose nodes depend on endpoints: each
// node has objects with its own. A decision takes 0.3 s and 0.2 GB for them, and others wait for it.
const MaxLocalRoutes = 100_000

// gracefulShutdown is a well-known community (RFC 8326 section 5).
const gracefulShutdown = 65535 << 16

// Object is a desired FRRConfiguration.
type Object struct {
	Name, Peer string
	// Nodes are the names of the nodes that it is for, sorted.
	Nodes []string
	Spec  frrapi.Spec
	// labels are the hostnames of nodes.
	labels map[string]string
}

// Plan are the desired objects.
type Plan struct {
	// Objects are sorted by name.
	Objects []Object
	Peers   map[string]*PeerPlan
	// Due is when nodes that drain withdraw their routes, or a withdrawal becomes overdue, zero if none will.
	Due time.Time
	// late are the nodes that advertise prefixes of a peer and should not, and overdue those that had the time to end it.
	late, overdue map[string]map[netip.Prefix][]string
}

// PeerPlan is what is to be known of the objects of a peer.
type PeerPlan struct {
	// Conflicts and Unread are why nodes are left out, by node: objects contradict each other, or are not all read. What
	// is there for such a node stays as long as it need not be changed.
	Conflicts, Unread map[string]string
	// Stalled are why frr-k8s does not apply the objects on nodes that they are for, by node.
	Stalled map[string]string
	// Unselectable are why no object is for nodes because of their label kubernetes.io/hostname, by node.
	Unselectable map[string]string
	// Shared describes the fields of the peer that have no effect because an object of others defines the session, with
	// the number of such nodes.
	Shared map[string]int
	// Preferences are why local preferences of prefixes are not sent.
	Preferences map[netip.Prefix]string
	// Copied is what follows from the RouteAdvertisements that select the objects, empty if there are none.
	Copied string
	// Prefixes is the number of prefixes, and Dropped are those beyond MaxRoutes or MaxLocalRoutes.
	Prefixes int
	Dropped  map[netip.Prefix]bool
}

// Render computes the objects of all peers whose sessions frr-k8s has, and what FRR has not withdrawn of all peers. It
// returns none unless all objects of frr-k8s are known.
func Render(w *world.Snapshot, l *bgp.Layout, state *State) *Plan {
	plan := &Plan{Peers: map[string]*PeerPlan{}}
	if !w.FRR.Available() {
		return plan
	}
	peers := l.FRRPeers()
	r := &renderer{world: w, layout: l, merged: map[string]*Merged{}, plan: plan,
		hostnames: newHostnames(w.Nodes), desired: map[string]*bgp.PrefixSets{}}
	plan.Due = state.drains.update(w, l.Off() != "")
	for _, p := range peers {
		r.peer(p, &state.drains)
	}
	plan.late = r.findLate()
	state.updateOverdue(plan, w.Now)
	slices.SortFunc(plan.Objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return plan
}

// Survey returns a survey that knows why routes are not on nodes, for a process that writes nothing.
func Survey(w *world.Snapshot, l *bgp.Layout) *bgp.Survey {
	return l.SurveyFRR(Render(w, l, &State{}))
}

type renderer struct {
	world  *world.Snapshot
	layout *bgp.Layout
	plan   *Plan
	// merged are the objects of others and the sessions of ours, by node that has sessions of ours.
	merged map[string]*Merged

	hostnames *hostnames
	// desired are the nodes that are to advertise prefixes, by neighbor (Peer.NeighborID).
	desired map[string]*bgp.PrefixSets
	// known are knownPrefixes, and pools the addresses of all pools, once they are used. foreign are the objects of others
	// by node, once they are used, noForeign those of a node without any, and latest what foreignPrefixes returned last.
	known     []netip.Prefix
	pools     *netipx.IPSet
	foreign   map[string]*foreign
	noForeign *foreign
	latest    foreignPrefixes
}

// peer adds the objects of a peer.
func (r *renderer) peer(p *world.Peer, drains *Drains) {
	plan := &PeerPlan{Conflicts: map[string]string{}, Unread: map[string]string{}, Stalled: map[string]string{},
		Unselectable: map[string]string{}, Shared: map[string]int{}, Preferences: map[netip.Prefix]string{},
		Copied: copied(p, r.world.FRR.Selecting[p.Name])}
	r.plan.Peers[p.Name] = plan
	selected := map[string]bool{} // the nodes in objects that are there
	for _, c := range r.world.FRR.Configurations {
		if c.Peer == p.Name {
			for _, n := range c.Nodes {
				selected[n] = true
			}
		}
	}
	classes, classOf := map[string]*class{}, map[string]*class{}
	var nodes, leftOut []*world.Node
	leaving, untouched := map[string]bool{}, map[string]bool{}
	results := map[*Merged]*session{}
	for _, n := range r.layout.NodesOf(p) {
		if drains.isDraining(n.Name) {
			if leaving[n.Name] = true; !selected[n.Name] || drains.withdrawn(n.Name, r.world.Now) {
				continue
			}
		}
		if why := r.hostnames.problem(n); why != "" {
			plan.Unselectable[n.Name] = why
			leftOut = append(leftOut, n)
			continue
		}
		is := r.sessionOn(n.Name, p, results)
		if is.addTo(plan, n.Name); is.leftOut {
			leftOut = append(leftOut, n)
		}
		if is.next == nil {
			continue
		}
		untouched[n.Name] = is.leftOut
		if classes[is.key] == nil {
			classes[is.key] = is.class
		}
		classOf[n.Name] = classes[is.key]
		classOf[n.Name].nodes = append(classOf[n.Name].nodes, n.Name)
		nodes = append(nodes, n)
	}
	unlimited := bgp.Limits{Prefixes: math.MaxInt, Local: math.MaxInt}
	grouped := r.layout.Group(p, nodes, bgp.Limits{Prefixes: MaxRoutes, Local: MaxLocalRoutes})
	plan.Prefixes, plan.Dropped = grouped.Prefixes, grouped.Dropped
	sets := newSets(p.Name, r.hostnames, leaving, len(r.world.Nodes), r.world.FRR.Configurations)
	for _, key := range slices.Sorted(maps.Keys(classes)) {
		if c := classes[key]; !c.shared {
			sets.session(c)
		}
	}
	for _, g := range grouped.Groups {
		sets.routes(g, classOf)
	}
	r.withoutPreferences(plan, sets)
	if len(leftOut) > 0 { // They advertise what they had before, and that is not late.
		grouped.Groups = append(grouped.Groups, r.layout.Group(p, leftOut, unlimited).Groups...)
	}
	if r.desired[p.NeighborID()] == nil {
		r.desired[p.NeighborID()] = bgp.NewPrefixSets()
	}
	for _, g := range grouped.Groups {
		r.desired[p.NeighborID()].Add(g.Nodes, maps.Keys(g.Routes))
	}
	r.plan.Objects = append(r.plan.Objects, withoutUntouched(sets.objects(), untouched, r.world.FRR)...)
}

// Dropped reports whether a prefix is beyond the limit of a peer.
func (p *Plan) Dropped(peer string, prefix netip.Prefix) bool {
	is := p.Peers[peer]
	return is != nil && is.Dropped[prefix]
}

// NotSent returns why the local preference of a prefix is not sent to a peer, empty if it is.
func (p *Plan) NotSent(peer string, prefix netip.Prefix) string {
	return p.Of(peer).Preferences[prefix]
}

// Why returns why nothing, or not the newest, is written for a peer on a node, as far as it is known.
func (p *Plan) Why(f *world.FRR, node, peer string) (reason, message string) {
	is := p.Peers[peer]
	switch {
	case is == nil || f == nil:
		return "", ""
	case is.Conflicts[node]+is.Unread[node] != "":
		return v1alpha1.ReasonFRRConflict, is.Conflicts[node] + is.Unread[node]
	case f.Refused[peer] != "":
		return v1alpha1.ReasonFRRRefused, f.Refused[peer]
	case is.Unselectable[node] != "":
		return v1alpha1.ReasonFRRConflict, is.Unselectable[node]
	case is.Stalled[node] != "":
		return v1alpha1.ReasonFRRConflict, "frr-k8s applies no FRRConfiguration there: " + is.Stalled[node]
	}
	return "", ""
}
