// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
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
	// Unchanged is the number of the other Services, without those that the edit changes otherwise (Objects).
	Unchanged int             `json:"unchangedServices"`
	Shards    []ShardChange   `json:"shards,omitempty"`
	Sessions  []SessionChange `json:"sessions,omitempty"`
	// Notes are what is not known before the edit, what may be a mistake in it, and its objects that decide nothing.
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
	Service  string    `json:"service"`
	Effect   Effect    `json:"effect"`
	Messages []Message `json:"messages"`
	// Pending means that the edit creates the Service, and that it gets no address, or that nothing announces those it
	// gets, even once it has endpoints.
	Pending bool `json:"pending,omitempty"`
}

// Message is one change of a Service. In JSON, it is its text.
type Message struct {
	Text string
	// group is what the message says with several Services as the subject. It is empty for changes that matter, which are
	// always shown by name.
	group string
}

// MarshalText implements encoding.TextMarshaler.
func (m Message) MarshalText() ([]byte, error) { return []byte(m.Text), nil }

// ShardChange is a shard whose gateways change.
type ShardChange struct {
	// Shard is L2DOMAIN/INDEX. Addresses is the number of its addresses after the edit.
	Shard     string `json:"shard"`
	Addresses int    `json:"addresses"`
	// From and To are the active gateway before and after, empty for none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// OneOf are the nodes of which one becomes the active gateway, if it is not known which; To and After are empty then.
	OneOf []string `json:"oneOf,omitempty"`
	// Before and After are the gateways in order.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// Disrupts reports whether a Service, or the clients of an L2Domain, lose something.
func (c *Changes) Disrupts() bool {
	return slices.ContainsFunc(c.Services, func(s ServiceChange) bool { return s.Effect == Loses }) ||
		slices.ContainsFunc(c.Domains, func(d DomainChange) bool { return d.Effect == Loses })
}

// HasProblems reports whether an object has a problem after the edit that it did not have before, or a new Service gets
// no address that is announced.
func (c *Changes) HasProblems() bool {
	return len(c.Problems) > 0 || slices.ContainsFunc(c.Services, func(s ServiceChange) bool { return s.Pending })
}

// Moves returns what is lost or moves: without Services that stay on their gateways and keep their routes, and without
// shards whose other gateways change.
func (c *Changes) Moves() *Changes {
	moves := &Changes{Problems: c.Problems, Sessions: c.Sessions}
	for _, s := range c.Services {
		if slices.ContainsFunc(s.Messages, func(m Message) bool {
			return slices.Contains([]string{"", withOtherNodes, withoutRoutes}, m.group)
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
	// noDaemon is why no BGP daemon opens sessions, by the names of the nodes without one.
	noDaemon map[string]string
	// bfdDown are the sessions of which nodes report that BFD is not up.
	bfdDown map[nodePeer]bool
	// editedByFRR has the peers of frr-k8s whose Secret the edit sets.
	editedByFRR map[string]bool
	// undecided are the new L2Domains whose gateways are not known.
	undecided map[string]undecided
}

// decideOn decides about a cluster whose guards have probed all addresses, and in which OVN has the ports of L2Domains
// that are new or, since another version of the cluster, on another physical network.
func decideOn(o, since *objects.Objects, now time.Time) *decision {
	w := o.Snapshot(now)
	ports := map[string]map[string]world.Localnet{}
	for i, n := range w.Nodes {
		ports[n.Name] = n.Localnets
		settled := *n
		settled.Guarded = false
		settled.Localnets = withPorts(n.Localnets, o.Domains, since.Domains)
		w.Nodes[i] = &settled
	}
	var state decide.State
	d := state.Decide(w)
	edited := map[string]bool{}
	for _, p := range o.Peers {
		edited[p.Name] = p.Spec.Backend == v1alpha1.BackendFRRK8s && o.EditedSecrets[o.PasswordOf(p)]
	}
	out := &decision{Decision: d, survey: frrk8s.Survey(w, d.BGP), noDaemon: noDaemon(o, w.Sessions, now),
		editedByFRR: edited, bfdDown: bfdDown(o)}
	out.undecided = out.undecidedDomains(since, ports)
	return out
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
	c.Refused, c.Notes = append(c.Refused, e.Refused...), slices.Concat(c.Notes, e.Ignored, e.Notes)
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
	services, stays := slices.Clone(is.World.Services), map[world.Key]bool{}
	for _, s := range services {
		stays[s.Key] = true
	}
	for _, s := range was.World.Services {
		if !stays[s.Key] {
			services = append(services, s)
		}
	}
	slices.SortFunc(services, func(a, b *world.Service) int { return a.Key.Compare(b.Key) })
	unfollowed, edited := compareUnfollowed(before.Services, after.Services), map[string]bool{}
	for _, e := range unfollowed {
		edited[e.Object] = true
	}
	moved, ranges := map[attachmentChange]int{}, []string(nil)
	for _, s := range services {
		announced := was.announcements(old[s.Key])
		if !stays[s.Key] {
			why := "it is deleted"
			if after.Service(s.Key) != nil {
				why = "it is no longer a Service of type LoadBalancer with a class that ovnkube-slb serves"
			}
			if left := leaves(s, announced, why); len(left.Messages) > 0 {
				c.Services = append(c.Services, left)
			}
			continue
		}
		becomes := is.announcements(s)
		for a, b := range announced {
			if n := becomes[a]; b.shard != nil && n != nil && n.shard != nil && b.attachment != n.attachment {
				moved[newAttachmentChange(b.attachment, n.attachment)]++
			}
		}
		ranges = append(ranges, unfilteredRanges(was, is, old[s.Key], s, announced, becomes)...)
		change := compareService(was, is, s, announced, becomes)
		switch {
		case len(change.Messages) > 0:
			c.Services = append(c.Services, change)
		case !edited[serviceObject(s.Key.Namespace, s.Key.Name)]:
			c.Unchanged++
		}
	}
	c.Objects, c.Domains = compareObjects(before, after), compareDomains(moved)
	c.Objects = append(c.Objects, unfollowed...)
	c.Shards = compareShards(was, is)
	c.Sessions = compareSessions(was, is)
	c.Notes = slices.Concat(unreported(before, is), possibleMistakes(was, is), otherRouters(was, is),
		otherPasswords(before, after), editedSecrets(before, after), otherClasses(before.Services, after.Services, stays),
		ranges)
	if slices.ContainsFunc(unfollowed, func(e ObjectEdit) bool { return e.Action == Updated }) {
		c.Notes = append(c.Notes, "what these fields of a Service do to its endpoints and clients is not known before the "+
			"edit: kubectl slb explain SERVICE shows it afterwards")
	}
	printable.Clean(c)
	return c
}

// newProblems returns the problems of objects that the second decision has and the first one has not.
func newProblems(was, is *decision) []string {
	old := problems(was)
	list := slices.DeleteFunc(problems(is), func(p string) bool { return slices.Contains(old, p) })
	list = slices.Concat(list, otherASNs(was, is), withoutDaemon(was, is))
	slices.Sort(list)
	return list
}

func problems(d *decision) []string {
	var list []string
	for _, p := range d.World.Pools {
		for _, why := range slices.Concat(p.Problems, d.Allocation.Pools[p.Name].Problems) {
			list = append(list, "IPAddressPool "+p.Name+": "+why)
		}
		if use := d.Allocation.Pools[p.Name]; use.ClaimReason == ipam.ReasonNoClaims {
			list = append(list, "IPAddressPool "+p.Name+": "+use.ClaimMessage)
		}
		if why, _ := d.Layout.Idle(p.Name); why == place.ReasonNoDomain && !d.BGP.TakesPool(p.Name) {
			why := "no L2Domain and no BGPAdvertisement has it"
			if ad := d.BGP.IneffectiveOn(p.Name); ad != nil { // Its own problem is below.
				why = "no L2Domain has it, and BGPAdvertisement " + ad.Name + " has no effect"
			}
			list = append(list, "IPAddressPool "+p.Name+": its addresses are not announced: "+why)
		}
		if outside, _ := d.Layout.OutsideSubnets(p); outside != "" && !d.BGP.TakesPool(p.Name) {
			list = append(list, "IPAddressPool "+p.Name+": "+outside)
		}
	}
	for _, domain := range d.Layout.Domains {
		for _, why := range slices.Concat(domain.Spec.Problems, domain.Problems, domain.Warnings) {
			list = append(list, "L2Domain "+domain.Spec.Name+": "+why)
		}
		if why := cmp.Or(domain.DisabledReason, domain.Unserved, domain.NoGateway); why != "" {
			list = append(list, "L2Domain "+domain.Spec.Name+": "+why)
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
		if u, ok := is.undecided[id.Domain]; ok && c.To != "" {
			if _, before := was.undecided[id.Domain]; before {
				continue // Neither is known.
			}
			c.To, c.After, c.OneOf = "", nil, u.nodes
		}
		if len(c.OneOf) > 0 || c.From != c.To || !slices.Equal(c.Before, c.After) {
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
