// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// class are nodes on which a peer has the same session.
type class struct {
	router   frrapi.Router // with the neighbor, without prefixes
	profiles []frrapi.BFDProfile
	family   frrapi.Family
	// shared means that an object of others defines the session.
	shared bool
	nodes  []string
}

// session is what a session of a peer would be on nodes that have the same objects.
type session struct {
	class *class
	// key identifies the class, and differences are the fields of the peer that have no effect.
	key, differences string
	// next are the objects with the session, nil if they do not merge.
	next *Merged
	// leftOut means that nothing is written for the nodes: conflict or unread are why.
	leftOut                   bool
	conflict, unread, stalled string
}

// sessionOn returns the session of a peer on a node. results are those of nodes with the same objects.
func (r *renderer) sessionOn(node string, p *world.Peer, results map[*Merged]*session) *session {
	others := r.foreignOf(node)
	merged := cmp.Or(r.merged[node], others.merged)
	is := results[merged]
	if is == nil {
		is = &session{unread: others.unread}
		is.class, is.differences = r.classOf(p, merged, others)
		key, _ := json.Marshal(is.class.router) // the types of frrapi are all values that JSON holds
		is.key = string(key)
		var conflict *Conflict
		is.next, conflict = merged.with("BGPPeer "+p.Name, frrapi.Convert(probe(is.class)))
		if conflict = cmp.Or(others.frozen, conflict); conflict != nil {
			is.conflict = conflict.String()
		}
		if others.stalled != nil {
			is.stalled = others.stalled.String()
		}
		is.leftOut = is.conflict+is.unread != ""
		results[merged] = is
	}
	if is.next != nil {
		r.merged[node] = is.next
	}
	return is
}

// addTo adds what is to be known of the session on a node.
func (s *session) addTo(plan *PeerPlan, node string) {
	switch {
	case s.conflict != "":
		plan.Conflicts[node] = s.conflict
	case s.unread != "":
		plan.Unread[node] = s.unread
	case s.stalled != "":
		plan.Stalled[node] = s.stalled
	}
	if !s.leftOut && s.differences != "" {
		plan.Shared[s.differences]++
	}
}

// probe returns an object with the session of a class.
func probe(c *class) *frrapi.Spec {
	return &frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{c.router}, BFDProfiles: c.profiles}}
}

// classOf returns the class of nodes with these objects, and which fields of the peer have no effect because the
// session is shared.
func (r *renderer) classOf(p *world.Peer, merged *Merged, others *foreign) (*class, string) {
	session, profiles := sessionOf(p, merged)
	c := &class{router: frrapi.Router{ASN: p.MyASN, Neighbors: []frrapi.Neighbor{{Session: session}}}, profiles: profiles}
	if p.RouterID.IsValid() {
		c.router.ID = p.RouterID.String()
	}
	object, router, shared := others.findShared(p)
	differences := ""
	if shared != nil {
		c.shared = true
		repeated := frrapi.Neighbor{Session: shared.Session, Other: shared.Other}
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
	c.family, _ = c.router.Neighbors[0].Family()
	return c, differences
}

// differ returns the fields of a BGPPeer that a shared session has with other values.
func differ(ours, theirs *frrapi.Session, passwords map[string]string) []string {
	var fields []string
	a, b := &frrapi.ConvertedNeighbor{Session: *ours}, &frrapi.ConvertedNeighbor{Session: *theirs}
	a.Family, _ = ours.Family()
	b.Family, _ = theirs.Family()
	x, y := fieldsOf(a), fieldsOf(b)
	names := map[string]string{"asn": "peerASN", "sourceaddress": "sourceAddress", "port": "peerPort"}
	for _, f := range comparedFields() {
		if f.value(&x) != f.value(&y) {
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

// withoutPreferences removes the local preference of prefixes to which others give another one on a node of the object:
// frr-k8s merges the routes then, and theirs counts there. Leaving the node out would withdraw the routes of all
// Services, and which prefixes others have may be the choice of a tenant.
func (r *renderer) withoutPreferences(plan *PeerPlan, s *sets) {
	for key, is := range s.cells {
		id, compared := key.class.router.Neighbors[0].ID(), map[*foreign]bool{}
		for _, name := range is.nodes {
			others := r.foreignOf(name)
			if compared[others] {
				continue
			}
			compared[others] = true
			for prefix, was := range others.preferencesOf(id) {
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

// withoutUntouched returns objects without the nodes for which nothing is written, apart from those that are there
// already as they should be: FRR on such a node keeps what it has, and when frr-k8s applies objects again, it must find
// the routes.
func withoutUntouched(objects []Object, untouched map[string]bool, present *world.FRR) []Object {
	isUntouched := func(n string) bool { return untouched[n] }
	var out []Object
	for _, o := range objects {
		if !slices.ContainsFunc(o.Nodes, isUntouched) || isThere(&o, present) {
			out = append(out, o)
			continue
		}
		if o.Nodes = slices.DeleteFunc(slices.Clone(o.Nodes), isUntouched); len(o.Nodes) > 0 {
			o.Spec.NodeSelector = selectorOf(o.Nodes, o.labels)
			out = append(out, o)
		}
	}
	return out
}

// isThere reports whether an object is there as it should be.
func isThere(o *Object, present *world.FRR) bool {
	at, is := slices.BinarySearchFunc(present.Configurations, o.Name, func(c *world.FRRConfiguration, name string) int {
		return cmp.Compare(c.Name, name)
	})
	return is && present.Configurations[at].Peer == o.Peer && frrapi.Equal(&present.Configurations[at].Spec, &o.Spec)
}
