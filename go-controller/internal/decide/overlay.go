// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// overlay is what this process has decided and the statuses of objects do not show yet: a status is written after the
// decision, and not while the API server is away. Decisions read a snapshot with the overlay, and record in it what
// they change.
//
// What the overlay has counts until it is in the status. Leases, anchors, ordinals and the progress of moves are
// written by this process alone, so that a status that differs is an older one. The addresses of Services may be
// written by others: a status with addresses that this process did not write replaces the grant.
type overlay struct {
	// grants are addresses of Services, external those of spec.externalIPs that Services hold.
	grants, external map[world.Key]grant
	// leases are those of the pools with a ReuseDelay.
	leases map[string][]world.Lease
	// anchors and ordinals are nil before the first pass: those in the statuses of the domains count then.
	anchors  map[world.ShardID][]netip.Addr
	ordinals map[world.ShardID]int
	// moves are the requests to move shards, by domain.
	moves map[string]move
	// recoveries are the nodes of domains with preempt that had a fault or were excluded. members are the nodes that
	// could be gateways at some time, by domain.
	recoveries recoveries
	members    map[string]map[string]bool
	// staleGateways are the gateways that had stale flows which counted.
	staleGateways recoveries
}

// applyTo returns the snapshot with what its statuses do not show yet.
func (o *overlay) applyTo(w *world.Snapshot) *world.Snapshot {
	out := *w
	out.Pools = o.withLeases(w.Pools)
	out.Domains = o.withRecovering(o.withMoves(w), w.Now)
	out.Anchors, out.Ordinals = o.anchors, o.ordinals
	if o.anchors == nil {
		out.Anchors = anchorsShown(w.Domains)
	}
	if o.ordinals == nil {
		out.Ordinals = ordinalsShown(w.Domains)
	}
	out.Granted = make(map[world.Key][]netip.Addr, len(o.grants))
	if len(o.external) > 0 {
		out.HeldExternalIPs = make(map[world.Key][]netip.Addr, len(o.external))
	}
	for _, s := range w.Services {
		if g, ok := o.grants[s.Key]; ok && g.uid == s.UID && g.isCurrent(s.Assigned) &&
			(len(s.AssignedHosts) == 0 || slices.Equal(s.AssignedHosts, g.hosts)) {
			out.Granted[s.Key] = g.addrs
		}
		if g, ok := o.external[s.Key]; ok && g.uid == s.UID && g.isCurrent(s.HeldExternalIPs) {
			out.HeldExternalIPs[s.Key] = g.addrs
		}
	}
	return &out
}

// record records the addresses of an allocation that the statuses in its snapshot do not show, and all leases.
func (o *overlay) record(w *world.Snapshot, a *ipam.Allocation) {
	before := o.grants
	o.grants, o.external = map[world.Key]grant{}, map[world.Key]grant{}
	for _, s := range w.Services {
		is := a.Services[s.Key]
		if !is.Foreign && !slices.Equal(is.Addrs, s.Assigned) {
			g := grant{uid: s.UID, addrs: is.Addrs, replaced: s.Assigned, hosts: s.AssignedHosts, since: w.Now}
			if last, ok := before[s.Key]; ok {
				g.inherit(last, w.Unsettled[s.Key])
			} else {
				g.unsettled = w.Unsettled[s.Key]
			}
			o.grants[s.Key] = g
		}
		if own := is.HeldExternal; !slices.Equal(own, s.HeldExternalIPs) {
			o.external[s.Key] = grant{uid: s.UID, addrs: own, replaced: s.HeldExternalIPs}
		}
	}
	o.leases = map[string][]world.Lease{}
	for _, p := range w.Pools {
		if p.ReuseDelay > 0 {
			o.leases[p.Name] = a.Pools[p.Name].Leases
		}
	}
}

// recordAnchors records and returns the anchors of a topology.
func (o *overlay) recordAnchors(t *plan.Topology) map[world.ShardID][]netip.Addr {
	o.anchors = map[world.ShardID][]netip.Addr{}
	for _, domain := range t.Domains {
		for _, s := range domain.Shards {
			for _, anchor := range s.Anchors {
				o.anchors[s.ID] = append(o.anchors[s.ID], anchor.Addr())
			}
		}
	}
	return o.anchors
}

func anchorsShown(domains []*world.Domain) map[world.ShardID][]netip.Addr {
	shown := map[world.ShardID][]netip.Addr{}
	for _, d := range domains {
		for index, addrs := range d.Anchors {
			shown[world.ShardID{Domain: d.Name, Index: index}] = addrs
		}
	}
	return shown
}

// recordOrdinals records and returns the ordinals of a topology.
func (o *overlay) recordOrdinals(t *plan.Topology) map[world.ShardID]int {
	o.ordinals = map[world.ShardID]int{}
	for _, domain := range t.Domains {
		for _, s := range domain.Shards {
			if len(s.Anchors) > 0 {
				o.ordinals[s.ID] = s.Ordinal
			}
		}
	}
	return o.ordinals
}

func ordinalsShown(domains []*world.Domain) map[world.ShardID]int {
	shown := map[world.ShardID]int{}
	for _, d := range domains {
		for index, n := range d.Ordinals {
			shown[world.ShardID{Domain: d.Name, Index: index}] = n
		}
	}
	return shown
}

// grant records the addresses granted to a Service while its status showed different ones. It may be granted none.
type grant struct {
	uid   string
	addrs []netip.Addr
	// replaced are the addresses that the status showed, and hosts its host names.
	replaced []netip.Addr
	hosts    []string
	// late are addresses that were granted before, and that a write on its way may still show: the last maxLate.
	late [][]netip.Addr
	// unsettled are addresses that earlier decisions had written before there was a grant, and that may still be written:
	// another client cleared the status.
	unsettled []netip.Addr
	// since is the time of the first pass with the grant, by the clock of this process. It is zero if there was none yet,
	// after Amend.
	since time.Time
}

// isCurrent reports whether a grant is still being written, given the addresses in the status. If the status shows any
// other addresses, another client wrote them first, and they are the Service's addresses. Otherwise two controllers
// that run at the same time would overwrite each other indefinitely.
func (g *grant) isCurrent(shown []netip.Addr) bool {
	byOthers := func(a netip.Addr) bool { return !slices.Contains(g.unsettled, a) }
	return !slices.ContainsFunc(shown, byOthers) || slices.Equal(shown, g.addrs) || slices.Equal(shown, g.replaced) ||
		slices.ContainsFunc(g.late, func(addrs []netip.Addr) bool { return slices.Equal(shown, addrs) })
}

// maxLate is how many earlier grants are remembered. One write of a Service is on its way at a time.
const maxLate = 16

// inherit adds what is known of the grant before. unsettled are the addresses that may still be written.
func (g *grant) inherit(last grant, unsettled []netip.Addr) {
	if last.uid != g.uid {
		return
	}
	g.late, g.unsettled = last.late, last.unsettled
	if slices.Equal(last.addrs, g.addrs) {
		if !last.since.IsZero() {
			g.since = last.since
		}
		return
	}
	settled := func(a netip.Addr) bool { return !slices.Contains(unsettled, a) }
	if !slices.ContainsFunc(last.addrs, settled) {
		g.late = append(slices.Clone(g.late), last.addrs)
		g.late = g.late[max(0, len(g.late)-maxLate):]
	}
}
