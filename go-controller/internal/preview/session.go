// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// SessionChange is what changes in the sessions with a BGPPeer. The lists are names of nodes.
type SessionChange struct {
	Peer   string   `json:"peer"`
	Opened []string `json:"opened,omitempty"`
	Closed []string `json:"closed,omitempty"`
	// Reopened sessions have settings that need a new session. Kept ones still have the settings of before the last edit,
	// and stay open if this edit restores them.
	Reopened []string `json:"reopened,omitempty"`
	Kept     []string `json:"kept,omitempty"`
	// EndsBFD means that sessions are reopened because BFD ends: routers close them for that.
	EndsBFD bool `json:"endsBFD,omitempty"`
	// Adjusted sessions have other settings and stay open.
	Adjusted []string `json:"adjusted,omitempty"`
	// Rollout is how the nodes reopen their sessions, and how the edit is undone.
	Rollout string `json:"rollout,omitempty"`
	// The numbers of routes, over all nodes.
	Added     int `json:"routesAdded,omitempty"`
	Withdrawn int `json:"routesWithdrawn,omitempty"`
	Altered   int `json:"routesChanged,omitempty"`
}

func compareSessions(was, is *decision) []SessionChange {
	changes := map[string]*SessionChange{}
	of := func(peer string) *SessionChange {
		if changes[peer] == nil {
			changes[peer] = &SessionChange{Peer: peer}
		}
		return changes[peer]
	}
	nodes := map[string]bool{}
	for _, d := range []*decision{was, is} {
		for _, n := range d.World.Nodes {
			nodes[n.Name] = true
		}
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		old, now := was.sessions(node), is.sessions(node)
		for peer, session := range now {
			if is.editedByFRR[peer] && old[peer] != nil && old[peer].FRRK8s {
				of(peer).Reopened = append(of(peer).Reopened, node)
				compareRoutes(old[peer].Routes, session.Routes, of(peer))
				continue
			}
			of(peer).add(node, old[peer], session, was.World.Sessions[node][peer].Outdated,
				!was.bfdDown[nodePeer{node, peer}])
		}
		for peer, session := range old {
			if now[peer] == nil {
				of(peer).add(node, session, nil, false, false)
			}
		}
	}
	var list []SessionChange
	for _, c := range changes {
		if c.isEmpty() {
			continue
		}
		if is.byFRR(c.Peer) || was.byFRR(c.Peer) {
			if len(c.Reopened) > 0 {
				c.Rollout = rolloutOfFRR
			}
		} else if was.established(c) > 1 {
			c.Rollout = rollout()
		}
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b SessionChange) int { return cmp.Compare(a.Peer, b.Peer) })
	return list
}

// rolloutOfFRR is how sessions of frr-k8s, or sessions that become ones of it or of ours, are reopened.
const rolloutOfFRR = "frr-k8s applies this on all nodes at once, after 3 seconds, and routers lose the routes " +
	"meanwhile: edit the nodeSelectors first to do it for some nodes"

// byFRR reports whether frr-k8s has the sessions of a peer.
func (d *decision) byFRR(peer string) bool {
	return slices.ContainsFunc(d.World.Peers, func(p *world.Peer) bool { return p.Name == peer && p.FRRK8s })
}

// established returns how many of the sessions that an edit reopens are Established, or may be.
func (d *decision) established(c *SessionChange) int {
	n := 0
	for _, node := range c.Reopened {
		if s, reported := d.World.Sessions[node][c.Peer]; reported && (s.Established || s.Unknown) {
			n++
		}
	}
	return n
}

// whyNoSession returns why a node opens no session with any of these peers; empty if it opens one. Those of frr-k8s
// need no daemon.
func (d *decision) whyNoSession(node string, peers ...string) string {
	if slices.ContainsFunc(d.World.Peers, func(p *world.Peer) bool {
		return p.FRRK8s && slices.Contains(peers, p.Name) && slices.Contains(p.Nodes, node)
	}) {
		return ""
	}
	return d.noDaemon[node]
}

// sessions returns the sessions of a node by peer, without those that the node closes or does not open.
func (d *decision) sessions(node string) map[string]*bgp.Session {
	out := map[string]*bgp.Session{}
	for _, s := range d.BGP.For(node) {
		if !s.Leaving && d.whyNoSession(node, s.Peer) == "" {
			out[s.Peer] = &s
		}
	}
	return out
}

// add adds what changes between two versions of the session of a node. One of them may be nil, for no session. outdated
// means that the session has the settings of a version before both, and bfdUp that its BFD is up, if it has any.
func (c *SessionChange) add(node string, old, now *bgp.Session, outdated, bfdUp bool) {
	var before, after map[netip.Prefix]bgp.Attributes
	if old != nil {
		before = old.Routes
	}
	if now != nil {
		after = now.Routes
	}
	switch {
	case old == nil:
		c.Opened = append(c.Opened, node)
	case now == nil:
		c.Closed = append(c.Closed, node)
	case now.FRRK8s != old.FRRK8s:
		c.Reopened = append(c.Reopened, node)
	case bfdUp && bgp.EndsBFD(old.BFD, now.BFD):
		c.Reopened, c.EndsBFD = append(c.Reopened, node), c.EndsBFD || !now.FRRK8s
	case !now.Neighbor.SameSession(old.Neighbor) && outdated:
		c.Kept = append(c.Kept, node)
	case !now.Neighbor.SameSession(old.Neighbor):
		c.Reopened = append(c.Reopened, node)
	case now.Neighbor != old.Neighbor || !sameBFD(now.BFD, old.BFD):
		c.Adjusted = append(c.Adjusted, node)
	}
	compareRoutes(before, after, c)
}

func (c *SessionChange) isEmpty() bool {
	return len(c.Opened)+len(c.Closed)+len(c.Reopened)+len(c.Kept)+len(c.Adjusted)+c.Added+c.Withdrawn+c.Altered == 0
}

// rollout describes how nodes reopen Established sessions (v1alpha1.SessionTurnLease).
func rollout() string {
	limit := world.Count(int(v1alpha1.SessionTurnLimit/time.Minute), "minute")
	return fmt.Sprintf("Established sessions are reopened on one node after the other: a node waits until the session of "+
		"the node before it is Established again, at most %s. If it does not come back (kubectl slb bgp), undo the edit "+
		"within %[1]s: the node opens its session as before, and no other node closes one", limit)
}

func sameBFD(a, b *bgp.BFD) bool { return a == b || a != nil && b != nil && *a == *b }

func compareRoutes(old, now map[netip.Prefix]bgp.Attributes, c *SessionChange) {
	for prefix, attributes := range now {
		before, had := old[prefix]
		switch {
		case !had:
			c.Added++
		case !attributes.Equal(before):
			c.Altered++
		}
	}
	for prefix := range old {
		if _, has := now[prefix]; !has {
			c.Withdrawn++
		}
	}
}

// noDaemon returns why no BGP daemon opens sessions, by the names of the nodes without one. A daemon creates its
// BGPNodeStatus when it starts, also without a BGPPeer. One that was stopped is expected back for
// world.GracefulRestartTime. One whose report has expired counts as none: whoever drains the other nodes must not rely
// on routes that routers may have dropped.
func noDaemon(o *objects.Objects, sessions map[string]map[string]world.PeerSession, now time.Time) map[string]string {
	out := map[string]string{}
	for _, n := range o.Nodes {
		status := objects.Named(o.NodeStatuses, n.Name)
		switch {
		case len(o.NodeStatuses) == 0:
			out[n.Name] = bgp.NoReports
		case status == nil:
			out[n.Name] = bgp.NoReport(n.Name)
		case status.Status.StopTime != nil && !now.Before(status.Status.StopTime.Add(world.GracefulRestartTime)):
			out[n.Name] = bgp.Stopped(n.Name)
		default:
			for _, s := range sessions[n.Name] {
				if s.Unknown && !s.ByFRR {
					out[n.Name] = fmt.Sprintf("node %s: %s", n.Name, s.Problem)
				}
			}
		}
	}
	return out
}

// nodePeer is a session of a node with a BGPPeer.
type nodePeer struct{ node, peer string }

// bfdDown returns the sessions of which nodes report that BFD is not up: to end it closes nothing.
func bfdDown(o *objects.Objects) map[nodePeer]bool {
	down := map[nodePeer]bool{}
	for _, n := range o.NodeStatuses {
		for _, s := range n.Status.Sessions {
			down[nodePeer{n.Name, s.Peer}] = s.BFD == v1alpha1.BFDDown
		}
	}
	return down
}

// editedSecrets returns notes about the Secrets that an edit sets: what they contain is not read.
func editedSecrets(before, after *objects.Objects) []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(after.EditedSecrets)) {
		var referring, had []string // peers that refer to the Secret since the edit, and the others that have it
		for _, p := range after.Peers {
			old := objects.Named(before.Peers, p.Name)
			switch {
			case after.PasswordOf(p) != name:
			case old != nil && before.PasswordOf(old) != name:
				referring = append(referring, p.Name)
			default:
				had = append(had, p.Name)
			}
		}
		slices.Sort(referring)
		slices.Sort(had)
		about := "Secret " + name + ": "
		if len(referring) > 0 {
			notes = append(notes, about+"must be applied before BGPPeer "+world.Some(referring, maxGroupNames)+
				": all sessions of a BGPPeer close at once as long as its Secret does not exist")
		}
		if len(had) > 0 {
			notes = append(notes, about+"counts as an edit of BGPPeer "+world.Some(had, maxGroupNames)+", unless it has the "+
				"present password: passwords are not read")
		}
		if len(referring)+len(had) == 0 {
			notes = append(notes, about+"ignored, because no BGPPeer has it as spec.passwordSecret")
		}
	}
	return notes
}

// otherPasswords returns notes about sessions that open with a password since the edit, or without one: only the
// administrator knows whether the router has it.
func otherPasswords(before, after *objects.Objects) []string {
	has := func(p *v1alpha1.BGPPeer) bool { return p.Spec.Password != "" || p.Spec.PasswordSecret != nil }
	var notes []string
	for _, p := range after.Peers {
		old := objects.Named(before.Peers, p.Name)
		switch {
		case old == nil || has(old) == has(p):
		case has(p):
			notes = append(notes, "BGPPeer "+p.Name+": nodes open sessions with a password: the router needs the same password")
		default:
			notes = append(notes, "BGPPeer "+p.Name+": nodes open sessions without a password: the router must not have one")
		}
	}
	slices.Sort(notes)
	return notes
}

// withoutDaemon returns the problems of peers of which nodes without a BGP daemon must have a session since the edit.
func withoutDaemon(was, is *decision) []string {
	old := was.survey.SessionNodes()
	var list []string
	for peer, nodes := range is.survey.SessionNodes() {
		nodes = slices.DeleteFunc(nodes, func(n string) bool {
			return is.whyNoSession(n, peer) == "" || slices.Contains(old[peer], n)
		})
		if len(nodes) > 0 {
			list = append(list, fmt.Sprintf("BGPPeer %s: no session opens on %s: %s", peer, world.Some(nodes, maxGroupNames),
				is.noDaemon[nodes[0]]))
		}
	}
	return list
}

// otherASNs returns the problems of peers whose edit makes nodes refuse the AS number that the router has sent them:
// their sessions would not open. A peer with another address or interface may be another router.
func otherASNs(was, is *decision) []string {
	var list []string
	for _, p := range is.World.Peers {
		at := slices.IndexFunc(was.World.Peers, func(o *world.Peer) bool { return o.Name == p.Name })
		if at < 0 || world.Fatal(p.Findings) {
			continue
		}
		old := was.World.Peers[at]
		if old.Addr != p.Addr || old.Interface != p.Interface || old.Port != p.Port || sameASNs(old, p) {
			continue
		}
		nodes := map[uint32][]string{}
		for _, node := range p.Nodes {
			if asn := was.World.Sessions[node][p.Name].PeerASN; asn != 0 && !p.AcceptsASN(asn) {
				nodes[asn] = append(nodes[asn], node)
			}
		}
		for asn, names := range nodes {
			list = append(list, fmt.Sprintf("BGPPeer %s: %s, but the router has sent AS number %d to %s: sessions there open "+
				"only if the router changes, too", p.Name, wantedASN(p), asn, world.Some(names, maxGroupNames)))
		}
	}
	return list
}

// otherRouters returns notes about sessions that open with another router, or with another AS number of the nodes: only
// the administrator knows whether the router there accepts them.
func otherRouters(was, is *decision) []string {
	var notes []string
	for _, p := range is.World.Peers {
		at := slices.IndexFunc(was.World.Peers, func(o *world.Peer) bool { return o.Name == p.Name })
		if at < 0 || world.Fatal(p.Findings) || world.Fatal(was.World.Peers[at].Findings) {
			continue
		}
		old := was.World.Peers[at]
		if a, b := cmp.Or(old.LocalASN, old.MyASN), cmp.Or(p.LocalASN, p.MyASN); a != b {
			notes = append(notes, fmt.Sprintf("BGPPeer %s: nodes send AS number %d to the router, was %d: it refuses the "+
				"sessions unless it expects that", p.Name, b, a))
		}
		if old.NeighborID() != p.NeighborID() {
			notes = append(notes, fmt.Sprintf("BGPPeer %s: the sessions with %s end, and the router there loses their routes, "+
				"unless %s is the same router", p.Name, old.NeighborID(), p.NeighborID()))
		}
	}
	return notes
}

// sameASNs reports whether nodes accept the same AS numbers of two versions of a peer.
func sameASNs(a, b *world.Peer) bool {
	return a.MyASN == b.MyASN && a.LocalASN == b.LocalASN && a.PeerASN == b.PeerASN && a.Internal == b.Internal
}

// wantedASN describes the AS numbers that nodes accept of a peer.
func wantedASN(p *world.Peer) string {
	switch {
	case p.PeerASN != 0:
		return fmt.Sprintf("peerASN is %d", p.PeerASN)
	case p.Internal:
		return fmt.Sprintf("dynamicASN is internal, for AS number %d", cmp.Or(p.LocalASN, p.MyASN))
	}
	return fmt.Sprintf("dynamicASN is external, for AS numbers other than %d", cmp.Or(p.LocalASN, p.MyASN))
}
