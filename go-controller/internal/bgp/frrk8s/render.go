// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
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
	// Conflicts are why nodes are left out, by node.
	Conflicts map[string]*Conflict
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
	r := &renderer{world: w, layout: l, nodes: map[string]*nodeState{}, plan: plan,
		hostnames: newHostnames(w.Nodes), desired: map[string]*bgp.PrefixSets{}}
	r.readForeign(peers)
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
	nodes  map[string]*nodeState
	plan   *Plan

	hostnames *hostnames
	// desired are the nodes that are to advertise prefixes, by neighbor (Peer.NeighborID).
	desired map[string]*bgp.PrefixSets
	// known are knownPrefixes, and pools the addresses of all pools, once they are used. foreign are the objects of others
	// by node, and latest what foreignPrefixes returned last.
	known   []netip.Prefix
	pools   *netipx.IPSet
	foreign map[string][]*world.FRRConfiguration
	latest  foreignPrefixes
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
	plan := &PeerPlan{Conflicts: map[string]*Conflict{}, Unselectable: map[string]string{}, Shared: map[string]int{},
		Preferences: map[netip.Prefix]string{}, Copied: copied(p, r.world.FRR.Selecting[p.Name])}
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
	leaving := map[string]bool{}
	for _, n := range r.layout.NodesOf(p) {
		is := r.nodes[n.Name]
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
		if is.frozen != nil {
			plan.Conflicts[n.Name] = is.frozen
			leftOut = append(leftOut, n)
			continue
		}
		c, differences := r.classOf(p, is)
		if conflict := is.merged.Add("BGPPeer "+p.Name, probe(c)); conflict != nil {
			plan.Conflicts[n.Name] = conflict
			leftOut = append(leftOut, n)
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
	r.withoutPreferences(p, plan, sets)
	if len(leftOut) > 0 { // They advertise what they had before, and that is not late.
		grouped.Groups = append(grouped.Groups, r.layout.Group(p, leftOut, unlimited).Groups...)
	}
	if r.desired[p.NeighborID()] == nil {
		r.desired[p.NeighborID()] = bgp.NewPrefixSets()
	}
	for _, g := range grouped.Groups {
		r.desired[p.NeighborID()].Add(g.Nodes, maps.Keys(g.Routes))
	}
	r.plan.Objects = append(r.plan.Objects, sets.objects()...)
}

// probe returns an object with the session of a class.
func probe(c *class) *frrapi.Spec {
	return &frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{c.router}, BFDProfiles: c.profiles}}
}

// withoutPreferences removes the local preference of prefixes to which others give another one on a node of the object:
// frr-k8s merges the routes then, and theirs counts there. Leaving the node out would withdraw the routes of all
// Services, and which prefixes others have may be the choice of a tenant.
func (r *renderer) withoutPreferences(p *world.Peer, plan *PeerPlan, s *sets) {
	for _, is := range s.cells {
		for _, name := range is.nodes {
			main := r.nodes[name].merged.routers[""]
			n := main.neighbors[idOf(p, r.nodes[name])]
			for text, was := range n.localPref {
				prefix, _ := parsePrefix(text)
				a, ours := is.routes[prefix]
				if !ours || a.LocalPref == nil || *a.LocalPref == was.value {
					continue
				}
				why := fmt.Sprintf("%s gives prefix %s local preference %d on node %s, so that of the advertisement, %d, is "+
					"not sent", was.of, prefix, was.value, name, *a.LocalPref)
				if before := plan.Preferences[prefix]; before == "" || why < before {
					plan.Preferences[prefix] = why
				}
				a.LocalPref = nil
				is.routes[prefix] = a
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
	session, profiles := sessionOf(p, n.merged)
	c := &class{router: frrapi.Router{ASN: p.MyASN, Neighbors: []frrapi.Neighbor{{Session: session}}}, profiles: profiles}
	if p.RouterID.IsValid() {
		c.router.ID = p.RouterID.String()
	}
	object, router, shared := findShared(p, n)
	differences := ""
	if shared != nil {
		c.shared = true
		repeated := frrapi.Neighbor{Session: shared.Session, Other: maps.Clone(shared.Other)}
		delete(repeated.Other, "toReceive")
		// If it is the peer's own BFD profile, the session keeps it when the objects of others go. Any other would need
		// its definition, too; the object that has it counts.
		if repeated.BFDProfile != session.BFDProfile {
			repeated.BFDProfile, c.profiles = "", nil
		}
		c.router.Neighbors[0] = repeated
		if c.router.ID == "" || router.ID != "" {
			c.router.ID = router.ID
		}
		fields := differ(&session, &shared.Session, r.world.FRR.Passwords)
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
func differ(ours, theirs *frrapi.Session, passwords map[string]string) []string {
	var fields []string
	a, b := &neighbor{Session: *ours}, &neighbor{Session: *theirs}
	a.family, _ = familyOf(ours)
	b.family, _ = familyOf(theirs)
	names := map[string]string{"asn": "peerASN", "sourceaddress": "sourceAddress", "port": "peerPort"}
	for _, f := range comparedFields() {
		if !f.secret && f.value(a) != f.value(b) {
			fields = append(fields, cmp.Or(names[f.name], f.name))
		}
	}
	password := func(s *frrapi.Session) string { return cmp.Or(s.Password, passwords[s.Secret.Name]) }
	if password(ours) != password(theirs) {
		fields = append(fields, "password")
	}
	if ours.BFDProfile != theirs.BFDProfile {
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
	case is.Conflicts[node] != nil:
		return v1alpha1.ReasonFRRConflict, is.Conflicts[node].String()
	case f.Refused[peer] != "":
		return v1alpha1.ReasonFRRRefused, f.Refused[peer]
	case is.Unselectable[node] != "":
		return v1alpha1.ReasonFRRConflict, is.Unselectable[node]
	}
	return "", ""
}
