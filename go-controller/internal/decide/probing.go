// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// probeTimeout is how long a new address waits until a guard has probed it. A guard takes a second. One that hangs, or
	// can't send, must not keep addresses from Services.
	probeTimeout = 5 * time.Second
	// maxProbesPerGuard limits the addresses of one guard when a probe starts, and maxContestedPerGuard those of them
	// that another host answers for, so that the others make progress. Further addresses wait. Requests and replies are
	// in annotations of one Lease, all of which may have 256 KiB. maxLatePerGuard limits the contested ones that are
	// announced already, which may become late after others were started (world.MaxProbesPerGuard); further late replies
	// are ignored.
	maxProbesPerGuard    = 500
	maxContestedPerGuard = 400
	maxLatePerGuard      = 200
)

// lateConflictWindow is how long after a probe request a reply is accepted: as long as a report counts.
const lateConflictWindow = 40 * time.Second

// probing withholds addresses that are new to their segment until a guard on the segment has probed them. It withholds
// addresses that another host answers for until no host does. Without a guard, no address is withheld. An announced
// address is never withheld again.
type probing struct {
	// epoch distinguishes the probe requests of this process from those of other processes. seq distinguishes those of
	// this process from each other.
	epoch, seq uint64
	// guards are the nodes that run a guard.
	guards   map[string]*world.Node
	requests map[netip.Addr]probe
	// announced are the conflicts on announced addresses.
	announced map[netip.Addr]announcedConflict
	// withheld are the Services with an address that is withheld until it has been probed.
	withheld map[world.Key]*world.Service
	// carried are the addresses that have been announced, also while their L2Domain does not serve them: their statuses
	// may not show that.
	carried map[netip.Addr]bool
	// paused is set if the last pass announced nothing because layer 2 was disabled.
	paused bool
	// ignored are the reports that the last pass ignored. newlyIgnored are those that the pass before it did not have.
	ignored      map[IgnoredReport]bool
	newlyIgnored []IgnoredReport
	// overdue is set once an address is announced on which a conflict was reported before. The next pass accepts it.
	overdue bool
}

// probe is the state of an address that a guard is asked to probe, or was asked to probe recently.
type probe struct {
	guard, network string
	vlan           int
	// routerMAC is the MAC address of our own router for the address.
	routerMAC string
	// id is the id of the probe request. It is empty while the address waits for its turn.
	id        string
	contested bool
	// refuted is the reply because of which the address is withheld although it is not being probed now: too many others
	// are contested. It waits for its turn again, after the addresses that were not probed yet.
	refuted world.Conflict
	// suspect is set if the address, or after a restart another one of the Service, was contested before nothing
	// announced it, until it has been probed again or is found to be announced.
	suspect bool
	// unread is set if the address may be announced, which the databases, that could not be read yet, will show. Until
	// then nothing is written, and what another host answers is no reason to hold it.
	unread bool
	// until is the time after which the address is announced without a result. It is zero while the address waits for its
	// turn.
	until time.Time
	// announced is set once the address is no longer withheld, regardless of replies. A late reply causes a warning.
	announced bool
	// expiry is the time after which a late reply is ignored.
	expiry time.Time
	// late is the conflict of which late replies tell; zero if none counts.
	late announcedConflict
}

// isExpired reports whether the probe request is so old that late replies to it are ignored.
func (p *probe) isExpired(now time.Time) bool {
	return p.announced && !p.isReported() && !now.Before(p.expiry)
}

// withholdUnprobed decides which allocated addresses are withheld, and why.
func (st *State) withholdUnprobed(d *Decision) map[netip.Addr]place.Withheld {
	p := &st.probing
	before, silent := p.requests, p.paused
	p.paused = !d.World.Cluster.ModeSetting.Mode.Layer2() || d.Layout.UnsupportedReason != ""
	p.guards, p.requests, p.withheld = guarded(d.World.Nodes), map[netip.Addr]probe{}, map[world.Key]*world.Service{}
	if len(p.guards) == 0 {
		p.carried = nil
		return nil
	}
	var carried map[netip.Addr]bool
	if silent {
		before = nil
	} else {
		carried = st.mayBeAnnounced(d.World)
	}
	withheld := map[netip.Addr]place.Withheld{}
	var order []unprobed
	for _, s := range d.Allocation.InOrder() {
		for _, a := range d.Allocation.Services[s.Key].VIPs() {
			last, was := before[a]
			switch {
			case !silent && d.World.Announced[a] || last.announced:
				if was {
					p.keepAnnounced(d, a, last)
				}
				continue
			case isUnread(d, s, a, last, was || carried[a]):
				p.requests[a] = probe{unread: true, suspect: last.suspect || s.Contested}
				withheld[a] = place.Withheld{Reason: place.ReasonProbing}
				continue
			case isUnserved(d, a, was || !carried[a]):
				// Nothing announces it, and it is probed before anything does.
				p.requests[a] = probe{suspect: last.suspect || last.refuted != (world.Conflict{}) || !was && s.Contested}
				continue
			case !was && carried[a]:
				continue
			}
			is, why := p.evaluate(d, a, last)
			p.record(s, a, is, why)
			if _, again := withheld[a]; why.Reason != "" && !again {
				withheld[a] = why
				order = append(order, unprobed{a, s.Key.Namespace})
			}
		}
	}
	p.startProbes(d.World.Now, order)
	p.recordCarried(d, withheld)
	return withheld
}

// record records the probe of an address of a Service and whether it is withheld for that.
func (p *probing) record(s *world.Service, a netip.Addr, is probe, why place.Withheld) {
	if is.guard != "" {
		p.requests[a] = is
	}
	if why.Reason == place.ReasonProbing {
		p.withheld[s.Key] = s
	}
}

// isUnread reports whether the databases, which show whether an address of a Service is announced, have not been read.
// By its status, the Service had the address before this process started. known is set if this process knows more.
func isUnread(d *Decision, s *world.Service, a netip.Addr, last probe, known bool) bool {
	return d.World.Announced == nil && (last.unread || !known) &&
		(slices.Contains(s.Shown(), a) || slices.Contains(s.HeldExternalIPs, a))
}

// guarded returns the nodes with a guard, by name.
func guarded(nodes []*world.Node) map[string]*world.Node {
	guards := map[string]*world.Node{}
	for _, n := range nodes {
		if n.Guarded {
			guards[n.Name] = n
		}
	}
	return guards
}

// recordCarried records which addresses are announced, or were before nothing served them.
func (p *probing) recordCarried(d *Decision, withheld map[netip.Addr]place.Withheld) {
	p.carried = map[netip.Addr]bool{}
	for _, s := range d.Allocation.InOrder() {
		for _, a := range d.Allocation.Services[s.Key].VIPs() {
			is, asked := p.requests[a]
			if withheld[a].Reason == "" && (!asked || is.announced) {
				p.carried[a] = true
			}
		}
	}
}

// isUnserved reports whether no gateway announces an address because its pool is in no L2Domain, or, of one that was
// withheld or is new, because its L2Domain does not serve it. Of another one that is not known: this process may not
// have observed yet what serves it.
func isUnserved(d *Decision, a netip.Addr, withheldOrNew bool) bool {
	pool := d.Allocation.PoolOf(a)
	_, served := d.Layout.ShardOf(pool, a)
	return !served && (withheldOrNew || !d.Layout.HasDomain(pool, a))
}

// keepAnnounced retains the probe request for an announced address, so that late replies can be matched.
func (p *probing) keepAnnounced(d *Decision, a netip.Addr, last probe) {
	if !last.announced {
		last.announced, last.contested, last.expiry = true, false, d.World.Now.Add(lateConflictWindow)
	}
	if last.id != "" && !last.isExpired(d.World.Now) {
		p.requests[a] = last
	}
}

// evaluate decides whether one address that is not announced is withheld. last is its previous probe. The address is
// not withheld if the returned Withheld has no Reason.
func (p *probing) evaluate(d *Decision, a netip.Addr, last probe) (probe, place.Withheld) {
	is, ok := p.guardFor(d, a, last.guard)
	if !ok {
		return probe{}, place.Withheld{} // no guard can probe the address
	}
	if last.guard == is.guard {
		is.id, is.until, is.refuted = last.id, last.until, last.refuted
	}
	is.suspect = last.suspect
	if c := d.World.Conflicts[a]; c != (world.Conflict{}) && is.id != "" {
		is.suspect = false
		is.contested, is.until, is.refuted = true, d.World.Now, c
		return is, place.Withheld{Reason: place.ReasonAddressConflict, Message: ipam.ConflictMessage(c)}
	}
	probed := is.id != "" && slices.Contains(d.World.Probed[is.guard], is.id)
	if probed || !is.until.IsZero() && !is.until.After(d.World.Now) {
		is.announced, is.suspect, is.expiry = true, false, d.World.Now.Add(lateConflictWindow)
		p.overdue = p.overdue || isAnnouncedConflict(d.World, a)
		return is, place.Withheld{} // no other host has it, as far as the guard knows
	}
	if is.refuted != (world.Conflict{}) {
		return is, place.Withheld{Reason: place.ReasonAddressConflict, Message: ipam.ConflictMessage(is.refuted)}
	}
	return is, place.Withheld{Reason: place.ReasonProbing}
}

// unprobed is an address that is withheld, with the namespace of the first Service that has it.
type unprobed struct {
	netip.Addr
	namespace string
}

// guardNamespace identifies the addresses of a namespace that a guard probes.
type guardNamespace struct{ guard, namespace string }

// startProbes starts the probes of waiting addresses, up to maxProbesPerGuard for each guard. Those that were contested
// when they were probed last come after the others. Otherwise each namespace gets its turn, and within a namespace the
// order counts: a tenant with thousands of addresses must not keep those of others waiting.
func (p *probing) startProbes(now time.Time, order []unprobed) {
	contested, turns := p.lateByGuard(now), map[guardNamespace]int{}
	busy := maps.Clone(contested)
	for _, a := range order {
		a, of := a.Addr, a.namespace
		is := p.requests[a]
		switch {
		case is.contested && contested[is.guard] >= maxContestedPerGuard:
			is.id, is.until, is.contested = "", time.Time{}, false
			p.requests[a] = is
			continue
		case is.contested:
			contested[is.guard]++
		}
		if !is.until.IsZero() {
			busy[is.guard]++
			turns[guardNamespace{is.guard, of}]++
		}
	}
	p.seq++
	for _, again := range []bool{false, true} {
		for _, a := range p.waiting(order, again, turns) {
			is := p.requests[a]
			if busy[is.guard] >= maxProbesPerGuard {
				continue
			}
			busy[is.guard]++
			p.requests[a] = p.started(is, now)
		}
	}
}

// started returns a probe that belongs to the newest probe request.
func (p *probing) started(is probe, now time.Time) probe {
	is.id, is.until = fmt.Sprintf("%x-%d", p.epoch, p.seq), now.Add(probeTimeout)
	return is
}

// waiting returns the addresses that wait for their turn, those of each namespace one after the other. turns counts the
// addresses of a namespace that a guard probes already. With again, it returns those that were contested last.
func (p *probing) waiting(order []unprobed, again bool, turns map[guardNamespace]int) []netip.Addr {
	type turn struct {
		addr netip.Addr
		n    int
	}
	var list []turn
	for _, a := range order {
		is := p.requests[a.Addr]
		if !is.until.IsZero() || again != (is.refuted != (world.Conflict{})) {
			continue
		}
		key := guardNamespace{is.guard, a.namespace}
		list = append(list, turn{a.Addr, turns[key]})
		turns[key]++
	}
	slices.SortStableFunc(list, func(a, b turn) int { return cmp.Compare(a.n, b.n) })
	out := make([]netip.Addr, 0, len(list))
	for _, t := range list {
		out = append(out, t.addr)
	}
	return out
}

// mayBeAnnounced returns the addresses that may be announced: those that the statuses show, which may have been
// announced before this process started, those of the last pass, and those that were announced before nothing served
// them.
func (st *State) mayBeAnnounced(w *world.Snapshot) map[netip.Addr]bool {
	all := make(map[netip.Addr]bool, len(w.Services))
	for _, s := range w.Services {
		if s.Contested {
			continue // some of its addresses are withheld; Snapshot.Announced has the others
		}
		for _, a := range s.Assigned {
			all[a] = true
		}
	}
	for _, last := range st.inputs {
		for _, v := range last.vips {
			all[v.Addr] = true
		}
	}
	maps.Copy(all, st.probing.carried)
	return all
}

// guardFor returns a probe with the guard for an address: the guard that already probes it, or otherwise the first one
// in the order of the address's shard. It returns false if there is none.
func (p *probing) guardFor(d *Decision, a netip.Addr, last string) (probe, bool) {
	shard, ok := d.Layout.ShardOf(d.Allocation.PoolOf(a), a)
	if !ok {
		return probe{}, false
	}
	byName := func(d *place.Domain, name string) int { return cmp.Compare(d.Spec.Name, name) }
	at, _ := slices.BinarySearchFunc(d.Layout.Domains, shard.Domain, byName)
	domain := d.Layout.Domains[at]
	is := probe{network: domain.Spec.PhysicalNetwork, vlan: domain.Spec.VLAN,
		routerMAC: shard.SegmentMAC(d.World.Cluster.ID)}
	for _, g := range domain.Shards[shard.Index].Gateways {
		if n := p.guards[g.Node]; n == nil || n.Faults[is.network].Message != "" {
			continue
		}
		if is.guard == "" || g.Node == last {
			is.guard = g.Node
		}
	}
	return is, is.guard != ""
}

// end returns the time when the next waiting period for a reply, or the next conflict that is no longer reported,
// ends. It is the zero time if there is none.
func (p *probing) end() time.Time {
	var first time.Time
	for _, is := range p.requests {
		switch {
		case is.announced:
			first = world.Earliest(first, is.late.end)
		case !is.contested:
			first = world.Earliest(first, is.until)
		}
	}
	for _, is := range p.announced {
		first = world.Earliest(first, is.end)
	}
	return first
}

// probes returns the current probe requests of each guard, with addresses in order.
func (p *probing) probes(now time.Time) map[string][]world.ProbeRequest {
	out := map[string][]world.ProbeRequest{}
	for _, a := range slices.SortedFunc(maps.Keys(p.requests), netip.Addr.Compare) {
		is := p.requests[a]
		if is.id == "" || is.announced && !is.hasLateConflict(now) {
			continue
		}
		list := out[is.guard]
		at := slices.IndexFunc(list, func(q world.ProbeRequest) bool {
			return q.ID == is.id && q.Own == is.routerMAC && q.Network == is.network && q.VLAN == is.vlan
		})
		if at < 0 {
			at = len(list)
			list = append(list, world.ProbeRequest{ID: is.id, Own: is.routerMAC, Network: is.network, VLAN: is.vlan})
		}
		list[at].Addresses = append(list[at].Addresses, a)
		out[is.guard] = list
	}
	return out
}
