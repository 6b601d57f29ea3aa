// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// MaxRoutes is the maximum number of prefixes of a peer. frr-reload.py takes about 20 s to load 1,000, removes them one
// by one in 100 s, and an FRRNodeState has to hold the text of FRR's configuration, 170 bytes per prefix.
const MaxRoutes = 1000

// gracefulShutdown is a well-known community (RFC 8326 section 5).
const gracefulShutdown = 65535 << 16

// Object is a desired FRRConfiguration.
type Object struct {
	Name, Peer string
	// Nodes are the names of the nodes that it is for, sorted.
	Nodes []string
	Spec  frrapi.Spec
}

// Plan are the desired objects.
type Plan struct {
	// Objects are sorted by name.
	Objects []Object
	Peers   map[string]*PeerPlan
	// Due is when nodes that drain withdraw their routes, zero if none will.
	Due time.Time
}

// PeerPlan is what is to be known of the objects of a peer.
type PeerPlan struct {
	// Conflicts are why nodes are left out, by node.
	Conflicts map[string]*Conflict
	// Unlabelled are the nodes that no object can select: without the label kubernetes.io/hostname.
	Unlabelled []string
	// Shared describes the fields of the peer that have no effect because an object of others defines the session, with
	// the number of such nodes.
	Shared map[string]int
	// Prefixes is the number of prefixes, and Dropped are those beyond MaxRoutes.
	Prefixes int
	Dropped  map[netip.Prefix]bool
}

// Render computes the objects of all peers whose sessions frr-k8s has. It returns none unless all objects of frr-k8s
// are known.
func Render(w *world.Snapshot, l *bgp.Layout, drains *Drains) *Plan {
	plan := &Plan{Peers: map[string]*PeerPlan{}}
	peers := l.FRRPeers()
	if !w.FRR.Available() || len(peers) == 0 {
		return plan
	}
	r := &renderer{world: w, layout: l, nodes: map[string]*nodeState{}, plan: plan,
		hostnames: make(map[string]string, len(w.Nodes))}
	r.readForeign(peers)
	plan.Due = drains.note(w, l.Off() != "")
	for _, n := range w.Nodes {
		r.hostnames[n.Name] = n.Hostname
	}
	for _, p := range peers {
		r.peer(p, drains)
	}
	slices.SortFunc(plan.Objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return plan
}

// Survey returns a survey that knows why routes are not on nodes, for a process that writes nothing.
func Survey(w *world.Snapshot, l *bgp.Layout) *bgp.Survey {
	return l.SurveyFRR(Render(w, l, &Drains{}))
}

type renderer struct {
	world  *world.Snapshot
	layout *bgp.Layout
	nodes  map[string]*nodeState
	plan   *Plan
	// hostnames are the labels by which objects select nodes, by name of the node.
	hostnames map[string]string
}

// nodeState is what the objects for a node have so far.
type nodeState struct {
	merged *Merged
	// foreign are the objects of others for the node, sorted by name. frozen is why frr-k8s does not merge these.
	foreign []*world.FRRConfiguration
	frozen  *Conflict
}

// readForeign merges the objects of others on the nodes of the peers.
func (r *renderer) readForeign(peers []*world.Peer) {
	for _, p := range peers {
		for _, n := range p.Nodes {
			if r.nodes[n] == nil {
				r.nodes[n] = &nodeState{merged: NewMerged(r.world.FRR.Passwords)}
			}
		}
	}
	for _, c := range r.world.FRR.Configurations {
		if c.Invalid != "" { // frr-k8s then converts nothing, on no node.
			for _, n := range r.nodes {
				n.frozen = &Conflict{Object: objectName(c.Name), Field: "spec.nodeSelector", Message: c.Invalid}
			}
		}
		if c.Peer != "" {
			continue
		}
		for _, name := range c.Nodes {
			if n := r.nodes[name]; n != nil {
				n.foreign = append(n.foreign, c)
				if n.frozen == nil {
					n.frozen = n.merged.Add(objectName(c.Name), &c.Spec)
				}
			}
		}
	}
}

func objectName(name string) string { return "FRRConfiguration " + name }

// class are nodes on which a peer has the same session.
type class struct {
	router   frrapi.Router // with the neighbor, without prefixes
	profiles []frrapi.BFDProfile
	family   family
	// shared means that an object of others defines the session.
	shared bool
	nodes  []string
}

// peer adds the objects of a peer.
func (r *renderer) peer(p *world.Peer, drains *Drains) {
	plan := &PeerPlan{Conflicts: map[string]*Conflict{}, Shared: map[string]int{}}
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
	var nodes []*world.Node
	leaving := map[string]bool{}
	for _, n := range r.layout.NodesOf(p) {
		is := r.nodes[n.Name]
		if drains.drains(n.Name) {
			if leaving[n.Name] = true; !selected[n.Name] || drains.withdrawn(n.Name, r.world.Now) {
				continue
			}
		}
		if n.Hostname == "" {
			plan.Unlabelled = append(plan.Unlabelled, n.Name)
			continue
		}
		if is.frozen != nil {
			plan.Conflicts[n.Name] = is.frozen
			continue
		}
		c, differences := r.classOf(p, is)
		if conflict := is.merged.Add("BGPPeer "+p.Name, probe(c)); conflict != nil {
			plan.Conflicts[n.Name] = conflict
			continue
		}
		if differences != "" {
			plan.Shared[differences]++
		}
		key, _ := json.Marshal(c.router) // the types of frrapi are all values that JSON holds
		if classes[string(key)] == nil {
			classes[string(key)] = c
		}
		classOf[n.Name] = classes[string(key)]
		classOf[n.Name].nodes = append(classOf[n.Name].nodes, n.Name)
		nodes = append(nodes, n)
	}
	grouped := r.layout.Group(p, nodes, MaxRoutes)
	plan.Prefixes, plan.Dropped = grouped.Prefixes, grouped.Dropped
	r.withoutContradiction(p, plan, grouped.Groups)
	sets := newSets(p.Name, leaving)
	for _, key := range slices.Sorted(maps.Keys(classes)) {
		if c := classes[key]; !c.shared {
			sets.session(c)
		}
	}
	for _, g := range grouped.Groups {
		sets.routes(g, classOf, plan.Conflicts)
	}
	r.plan.Objects = append(r.plan.Objects, sets.objects(r.hostnames)...)
}

// probe returns an object with the session of a class.
func probe(c *class) *frrapi.Spec {
	return &frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{c.router}, BFDProfiles: c.profiles}}
}

// withoutContradiction records the nodes on which others give a prefix of the peer another local preference.
func (r *renderer) withoutContradiction(p *world.Peer, plan *PeerPlan, groups []bgp.Group) {
	for _, g := range groups {
		for _, name := range g.Nodes {
			main := r.nodes[name].merged.routers[""]
			if main == nil {
				continue
			}
			n := main.neighbors[idOf(p, r.nodes[name])]
			if n == nil || len(n.localPref) == 0 {
				continue
			}
			for prefix, a := range g.Routes {
				if was, ok := n.localPref[prefix.String()]; ok && a.LocalPref != nil && was.value != *a.LocalPref {
					plan.Conflicts[name] = &Conflict{Object: "BGPPeer " + p.Name, With: was.of,
						Field: "spec.bgp.routers.neighbors.toAdvertise.withLocalPref",
						Message: fmt.Sprintf("neighbor %s, prefix %s: %d and %d", n.ID(), prefix, was.value,
							*a.LocalPref)}
				}
			}
		}
	}
}

// findShared returns the neighbor of the default VRF that an object of others defines, and its router.
func findShared(p *world.Peer, n *nodeState) (*world.FRRConfiguration, *frrapi.Router, *frrapi.Neighbor) {
	for _, c := range n.foreign {
		for i := range c.Spec.BGP.Routers {
			o := &c.Spec.BGP.Routers[i]
			for j := range o.Neighbors {
				if o.VRF == "" && same(&o.Neighbors[j].Session, p) {
					return c, o, &o.Neighbors[j]
				}
			}
		}
	}
	return nil, nil, nil
}

// same reports whether a neighbor is a peer, whatever the notation of its address is.
func same(s *frrapi.Session, p *world.Peer) bool {
	if p.Interface != "" || s.Interface != "" {
		return p.Interface == s.Interface
	}
	a, err := netip.ParseAddr(s.Address)
	return err == nil && a.Unmap() == p.Addr
}

// idOf returns how the objects for a node identify a peer.
func idOf(p *world.Peer, n *nodeState) string {
	if _, _, shared := findShared(p, n); shared != nil {
		return shared.ID()
	}
	return p.NeighborID()
}

// classOf returns the class of a node, and which fields of the peer have no effect because the session is shared.
func (r *renderer) classOf(p *world.Peer, n *nodeState) (*class, string) {
	session, profiles := sessionOf(p)
	c := &class{router: frrapi.Router{ASN: p.MyASN, Neighbors: []frrapi.Neighbor{{Session: session}}}, profiles: profiles}
	if p.RouterID.IsValid() {
		c.router.ID = p.RouterID.String()
	}
	object, router, shared := findShared(p, n)
	differences := ""
	if shared != nil {
		c.shared, c.profiles = true, nil
		repeated := frrapi.Neighbor{Session: shared.Session, Other: maps.Clone(shared.Other)}
		delete(repeated.Other, "toReceive")
		repeated.BFDProfile = "" // it would need the profile; the object that has it counts
		c.router.Neighbors[0] = repeated
		if c.router.ID == "" || router.ID != "" {
			c.router.ID = router.ID
		}
		fields := differ(&session, &shared.Session)
		if p.RouterID.IsValid() && router.ID != "" && router.ID != p.RouterID.String() {
			fields = append(fields, "routerID")
		}
		if len(fields) > 0 {
			differences = fmt.Sprintf("%s has the session, and says otherwise of %s", objectName(object.Name),
				strings.Join(fields, ", "))
		}
	}
	c.family, _ = familyOf(&c.router.Neighbors[0].Session)
	return c, differences
}

// differ returns the fields of a BGPPeer that a shared session has with other values.
func differ(ours, theirs *frrapi.Session) []string {
	var fields []string
	a, b := &neighbor{Session: *ours}, &neighbor{Session: *theirs}
	a.family, _ = familyOf(ours)
	b.family, _ = familyOf(theirs)
	names := map[string]string{"asn": "peerASN", "sourceaddress": "sourceAddress", "port": "peerPort"}
	for _, f := range compared() {
		if !f.secret && f.value(a) != f.value(b) {
			fields = append(fields, cmp.Or(names[f.name], f.name))
		}
	}
	if ours.Password != theirs.Password || ours.Secret.Name != theirs.Secret.Name {
		fields = append(fields, "password")
	}
	if ours.BFDProfile != "" || theirs.BFDProfile != "" {
		fields = append(fields, "bfdProfile")
	}
	if ours.GracefulRestart != theirs.GracefulRestart {
		fields = append(fields, "enableGracefulRestart")
	}
	return fields
}

// Dropped reports whether a prefix is beyond the limit of a peer.
func (p *Plan) Dropped(peer string, prefix netip.Prefix) bool {
	is := p.Peers[peer]
	return is != nil && is.Dropped[prefix]
}

// Why returns why nothing, or not the newest, is written for a peer on a node, as far as it is known.
func (p *Plan) Why(f *world.FRR, node, peer string) (reason, message string) {
	is := p.Peers[peer]
	switch {
	case is == nil || f == nil:
		return "", ""
	case is.Conflicts[node] != nil:
		return v1alpha1.ReasonFRRConflict, is.Conflicts[node].String()
	case f.Refused[peer] != "":
		return v1alpha1.ReasonFRRRefused, f.Refused[peer]
	case slices.Contains(is.Unlabelled, node):
		return v1alpha1.ReasonFRRConflict, unlabelled
	}
	return "", ""
}

// unlabelled is why no object selects a node.
const unlabelled = "the node has no label " + hostname + ", so no FRRConfiguration can select it"
