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
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Changes are the differences that an edit makes. Lists are sorted.
type Changes struct {
	// Refused are the errors for which the API server would refuse objects of the edit. The other changes are those of
	// the rest of the edit.
	Refused []string `json:"refused,omitempty"`
	// Problems are those that objects have after the edit and did not have before.
	Problems []string        `json:"problems,omitempty"`
	Objects  []ObjectEdit    `json:"objects,omitempty"`
	Domains  []DomainChange  `json:"domains,omitempty"`
	Services []ServiceChange `json:"services,omitempty"`
	// Unchanged is the number of the other Services.
	Unchanged int             `json:"unchangedServices"`
	Shards    []ShardChange   `json:"shards,omitempty"`
	Sessions  []SessionChange `json:"sessions,omitempty"`
	// Notes are the objects of the edit that decide nothing.
	Notes []string `json:"notes,omitempty"`
}

// Effect is what an edit does to a Service, or to the clients of an L2Domain.
type Effect string

const (
	// Loses means that the Service loses an address, or that an address is no longer announced. Clients of an L2Domain
	// lose the addresses that move away from them.
	Loses Effect = "loses"
	// Gains means that the Service gets an address, or that an address is announced that was not.
	Gains Effect = "gains"
	// Alters means that all addresses stay and are announced as before, but otherwise.
	Alters Effect = "changes"
)

// ServiceChange is what changes for a Service.
type ServiceChange struct {
	Service  string   `json:"service"`
	Effect   Effect   `json:"effect"`
	Messages []string `json:"messages"`
	// groups are what the messages say, with several Services as the subject. Messages of changes that matter, which
	// are always shown by name, have an empty one. effects are those of the messages.
	groups  []string
	effects []Effect
}

// ShardChange is a shard whose gateways change.
type ShardChange struct {
	// Shard is L2DOMAIN/INDEX. Addresses is the number of its addresses after the edit.
	Shard     string `json:"shard"`
	Addresses int    `json:"addresses"`
	// From and To are the active gateway before and after, empty for none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Before and After are the gateways in order.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// SessionChange is what changes in the sessions with a BGPPeer. The lists are names of nodes.
type SessionChange struct {
	Peer   string   `json:"peer"`
	Opened []string `json:"opened,omitempty"`
	Closed []string `json:"closed,omitempty"`
	// Reopened sessions have settings that need a new session. Kept ones still have the settings of before the last edit,
	// and stay open if this edit restores them.
	Reopened []string `json:"reopened,omitempty"`
	Kept     []string `json:"kept,omitempty"`
	// Adjusted sessions have other settings and stay open.
	Adjusted []string `json:"adjusted,omitempty"`
	// Rollout is how the nodes reopen their sessions, and how the edit is undone.
	Rollout string `json:"rollout,omitempty"`
	// The numbers of routes, over all nodes.
	Added     int `json:"routesAdded,omitempty"`
	Withdrawn int `json:"routesWithdrawn,omitempty"`
	Altered   int `json:"routesChanged,omitempty"`
}

// Disrupts reports whether a Service, or the clients of an L2Domain, lose something.
func (c *Changes) Disrupts() bool {
	return slices.ContainsFunc(c.Services, func(s ServiceChange) bool { return s.Effect == Loses }) ||
		slices.ContainsFunc(c.Domains, func(d DomainChange) bool { return d.Effect == Loses })
}

// Moves returns what is lost or moves: without Services that stay on their gateways and keep their routes, and without
// shards whose other gateways change.
func (c *Changes) Moves() *Changes {
	moves := &Changes{Problems: c.Problems, Sessions: c.Sessions}
	for _, s := range c.Services {
		if slices.ContainsFunc([]string{"", withOtherNodes, withoutRoutes}, func(group string) bool {
			return slices.Contains(s.groups, group)
		}) {
			moves.Services = append(moves.Services, s)
		}
	}
	for _, s := range c.Shards {
		if s.From != s.To {
			moves.Shards = append(moves.Shards, s)
		}
	}
	return moves
}

// Empty reports whether nothing changes.
func (c *Changes) Empty() bool {
	return len(c.Refused)+len(c.Problems)+len(c.Objects)+len(c.Domains)+len(c.Services)+len(c.Shards)+
		len(c.Sessions) == 0
}

// decision is a decision about a cluster.
type decision struct {
	*decide.Decision
	survey *bgp.Survey
}

// decideOn decides about a cluster whose guards have probed all addresses, and in which OVN has the ports of L2Domains
// that are new or, since another version of the cluster, on another physical network.
func decideOn(o, since *objects.Objects, now time.Time) *decision {
	w := o.Snapshot(now)
	for i, n := range w.Nodes {
		settled := *n
		settled.Guarded = false
		settled.Localnets = withPorts(n.Localnets, o.Domains, since.Domains)
		w.Nodes[i] = &settled
	}
	var state decide.State
	d := state.Decide(w)
	return &decision{d, d.BGP.Survey()}
}

// withPorts adds the localnet ports of L2Domains that no controller has processed since another version to those that a
// guard reports.
func withPorts(have map[string]world.Localnet, domains, since []*v1alpha1.L2Domain) map[string]world.Localnet {
	if have == nil {
		return nil
	}
	all := maps.Clone(have)
	for _, d := range domains {
		name, was := plan.LocalnetPort(d.Name), objects.Named(since, d.Name)
		if _, reported := all[name]; len(d.Status.Conditions) == 0 && !reported ||
			was != nil && was.Spec.PhysicalNetwork != d.Spec.PhysicalNetwork {
			all[name] = world.Localnet{}
		}
	}
	return all
}

// Add adds what became of the manifests of the edit.
func (c *Changes) Add(e *objects.Edited) {
	c.Refused, c.Notes = append(c.Refused, e.Refused...), append(c.Notes, e.Ignored...)
	printable.Clean(c)
}

// Compare returns what changes between two versions of a cluster.
func Compare(before, after *objects.Objects, now time.Time) *Changes {
	was, is := decideOn(before, before, now), decideOn(after, before, now)
	c := &Changes{Problems: newProblems(was, is)}
	old := map[world.Key]*world.Service{}
	for _, s := range was.World.Services {
		old[s.Key] = s
	}
	services := slices.SortedFunc(slices.Values(is.World.Services), func(a, b *world.Service) int {
		return a.Key.Compare(b.Key)
	})
	moved := map[movement]int{}
	for _, s := range services {
		before, after := was.announcements(old[s.Key]), is.announcements(s)
		for a, b := range before {
			if n := after[a]; b.shard != nil && n != nil && n.shard != nil && b.attachment != n.attachment {
				moved[movementOf(b.attachment, n.attachment)]++
			}
		}
		change := compareService(was, is, s, before, after)
		if len(change.Messages) == 0 {
			c.Unchanged++
			continue
		}
		c.Services = append(c.Services, change)
	}
	c.Objects, c.Domains = compareObjects(before, after), compareDomains(is, moved)
	c.Shards = compareShards(was, is)
	c.Sessions = compareSessions(was, is)
	printable.Clean(c)
	return c
}

// newProblems returns the problems of objects that only the second decision has.
func newProblems(was, is *decision) []string {
	old := problems(was)
	return slices.DeleteFunc(problems(is), func(p string) bool { return slices.Contains(old, p) })
}

func problems(d *decision) []string {
	var list []string
	for _, p := range d.World.Pools {
		for _, why := range slices.Concat(p.Problems, d.Allocation.Pools[p.Name].Problems) {
			list = append(list, "IPAddressPool "+p.Name+": "+why)
		}
		if why, _ := d.Layout.Idle(p.Name); why == place.ReasonNoDomain && !d.BGP.TakesPool(p.Name) {
			list = append(list, "IPAddressPool "+p.Name+": its addresses are not announced: no L2Domain and no "+
				"BGPAdvertisement has it")
		}
	}
	for _, domain := range d.Layout.Domains {
		for _, why := range slices.Concat(domain.Spec.Problems, domain.Problems, domain.Warnings) {
			list = append(list, "L2Domain "+domain.Spec.Name+": "+why)
		}
		if domain.NoGateway != "" {
			list = append(list, "L2Domain "+domain.Spec.Name+": "+domain.NoGateway)
		}
	}
	for _, p := range d.World.Peers {
		for _, f := range p.Findings {
			list = append(list, "BGPPeer "+p.Name+": "+f.Message)
		}
	}
	for _, a := range d.World.Advertisements {
		for _, f := range slices.Concat(a.Findings, d.BGP.Clashes()[a.Name]) {
			list = append(list, "BGPAdvertisement "+a.Name+": "+f.Message)
		}
	}
	for name, f := range d.BGP.Duplicates() {
		list = append(list, "BGPPeer "+name+": "+f.Message)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// active returns the node that answers for a shard after a decision has been applied: the first gateway, because the
// order has the current one first as long as it may stay.
func (d *decision) active(id world.ShardID) string {
	if s := d.shard(id); s != nil && len(s.Gateways) > 0 {
		return s.Gateways[0].Node
	}
	return ""
}

func (d *decision) shard(id world.ShardID) *place.Shard {
	for _, domain := range d.Layout.Domains {
		if domain.Spec.Name == id.Domain && id.Index < len(domain.Shards) {
			return &domain.Shards[id.Index]
		}
	}
	return nil
}

func compareShards(was, is *decision) []ShardChange {
	count := func(d *decision) map[world.ShardID]int {
		n := map[world.ShardID]int{}
		for _, placements := range d.Placements.Services {
			for _, p := range placements {
				if p.Reason == "" {
					n[p.Shard]++
				}
			}
		}
		return n
	}
	old, now := count(was), count(is)
	ids := map[world.ShardID]bool{}
	for _, m := range []map[world.ShardID]int{old, now} {
		for id := range m {
			ids[id] = true
		}
	}
	var changes []ShardChange
	for _, id := range slices.SortedFunc(maps.Keys(ids), world.ShardID.Compare) {
		c := ShardChange{Shard: id.Name(), Addresses: now[id], From: was.active(id), To: is.active(id),
			Before: was.gateways(id), After: is.gateways(id)}
		if c.From != c.To || !slices.Equal(c.Before, c.After) {
			changes = append(changes, c)
		}
	}
	return changes
}

func (d *decision) gateways(id world.ShardID) []string {
	var list []string
	if s := d.shard(id); s != nil {
		for _, g := range s.Gateways {
			list = append(list, g.Node)
		}
	}
	return list
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
			of(peer).add(node, old[peer], session, was.World.Sessions[node][peer].Outdated)
		}
		for peer, session := range old {
			if now[peer] == nil {
				of(peer).add(node, session, nil, false)
			}
		}
	}
	var list []SessionChange
	for _, c := range changes {
		if c.isEmpty() {
			continue
		}
		if was.established(c) > 1 {
			c.Rollout = rollout()
		}
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b SessionChange) int { return cmp.Compare(a.Peer, b.Peer) })
	return list
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

// sessions returns the sessions of a node by peer, without those that the node closes.
func (d *decision) sessions(node string) map[string]*bgp.Session {
	out := map[string]*bgp.Session{}
	for _, s := range d.BGP.For(node) {
		if !s.Leaving {
			out[s.Peer] = &s
		}
	}
	return out
}

// add adds what changes between two versions of the session of a node. One of them may be nil, for no session. outdated
// means that the session has the settings of a version before both.
func (c *SessionChange) add(node string, old, now *bgp.Session, outdated bool) {
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
