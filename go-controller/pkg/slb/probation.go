// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// silenceTime is how long a new address waits for an answer from its segment before it is
	// announced (RetransTimer of RFC 4861, which duplicate address detection waits for).
	// A guard asks three times in it.
	silenceTime = time.Second
	// mostAsked bounds the addresses that one guard is asked about at a time, without those
	// that strangers have. Others wait.
	mostAsked = 500
)

// lateTime is how long after a question the answer to it is heard: as long as a report counts.
const lateTime = 40 * time.Second

// probation holds addresses that are new to their segment until a guard there has asked for
// them, and those that a stranger answers for until nobody does. Where no guard runs,
// nothing is held, and what is announced is never held again.
type probation struct {
	// epoch tells the questions of this process from those of others, seq those of this process from each other.
	epoch, seq uint64
	// guards are the nodes with one.
	guards map[string]*world.Node
	asked  map[netip.Addr]probe
	// silent: nothing was announced in the last pass, because layer 2 was switched off.
	silent bool
	// ignored are the reports that don't count, newlyIgnored those among them that the pass before did not have.
	ignored      map[ignoredReport]bool
	newlyIgnored []ignoredReport
}

// probe is an address that a guard is asked about, or was a short while ago.
type probe struct {
	guard, network string
	vlan           int
	// own is the MAC address of our own router for the address.
	own string
	// id is the question's; empty while the address waits for its turn.
	id        string
	contested bool
	// until is when silence is an answer; zero while it waits for its turn.
	until time.Time
	// announced: the address is not held any more, whatever is answered. A late answer is a warning.
	announced bool
	// forget is when a late answer doesn't count any more.
	forget time.Time
	// late is a late answer that stands, heard when a pass saw it last, reported whether the last pass did; zero for none.
	late     world.Conflict
	answered time.Time
	reported bool
}

// warns reports whether a late answer stands: it is reported, or was a moment ago.
func (is *probe) warns(now time.Time) bool {
	return is.announced && (is.reported || !is.answered.IsZero() && now.Before(is.answered.Add(silenceTime)))
}

// forgotten reports whether the question was so long ago that no late answer to it counts.
func (is *probe) forgotten(now time.Time) bool {
	return is.announced && !is.reported && !now.Before(is.forget)
}

// review decides which of the addresses given wait, and for what.
func (m *state) review(d *decision) map[netip.Addr]place.Hold {
	p := &m.probation
	before, silent := p.asked, p.silent
	p.silent = !d.world.Cluster.Switch.Mode.Layer2() || d.layout.Unserved != ""
	p.guards, p.asked = map[string]*world.Node{}, map[netip.Addr]probe{}
	for _, n := range d.world.Nodes {
		if n.Guarded {
			p.guards[n.Name] = n
		}
	}
	if len(p.guards) == 0 {
		return nil
	}
	var carried map[netip.Addr]bool
	if silent {
		before = nil
	} else {
		carried = m.carried(d.world)
	}
	holds := map[netip.Addr]place.Hold{}
	var order []netip.Addr
	for _, s := range d.allocation.InOrder() {
		for _, a := range d.allocation.Services[s.Key].VIPs() {
			last, was := before[a]
			if !silent && d.world.Announced[a] || last.announced || !was && carried[a] {
				if was {
					p.keep(d, a, last)
				}
				continue
			}
			is, hold := p.judge(d, a, last)
			if is.guard != "" {
				p.asked[a] = is
			}
			if hold.Reason != "" {
				holds[a] = hold
				order = append(order, a)
			}
		}
	}
	p.takeTurns(d.world.Now, order)
	return holds
}

// keep remembers the question about an address that is announced, for a late answer.
func (p *probation) keep(d *decision, a netip.Addr, last probe) {
	if !last.announced {
		last.announced, last.contested, last.forget = true, false, d.world.Now.Add(lateTime)
	}
	if last.id != "" && d.world.Now.Before(last.forget) {
		p.asked[a] = last
	}
}

// judge decides about one address that is not announced; last is what was asked about it before. Without a
// Reason it is not held.
func (p *probation) judge(d *decision, a netip.Addr, last probe) (probe, place.Hold) {
	is, ok := p.guardFor(d, a, last.guard)
	if !ok {
		return probe{}, place.Hold{} // no guard can be asked
	}
	if last.guard == is.guard {
		is.id, is.until = last.id, last.until
	}
	if c, contested := d.world.Conflicts[a]; contested && is.id != "" {
		is.contested, is.until = true, d.world.Now
		return is, place.Hold{Reason: place.ReasonAddressConflict, Message: ipam.Contested(c)}
	}
	if !is.until.IsZero() && !is.until.After(d.world.Now) {
		is.announced, is.forget = true, d.world.Now.Add(lateTime)
		return is, place.Hold{} // no other host has it
	}
	return is, place.Hold{Reason: place.ReasonProbing}
}

// takeTurns lets addresses wait no longer, in order, while their guards are not too busy.
func (p *probation) takeTurns(now time.Time, order []netip.Addr) {
	busy := map[string]int{}
	for _, is := range p.asked {
		if !is.announced && !is.contested && !is.until.IsZero() {
			busy[is.guard]++
		}
	}
	p.seq++
	for _, a := range order {
		if is := p.asked[a]; is.until.IsZero() && busy[is.guard] < mostAsked {
			busy[is.guard]++
			is.id, is.until = fmt.Sprintf("%x-%d", p.epoch, p.seq), now.Add(silenceTime)
			p.asked[a] = is
		}
	}
}

// carried are the addresses that may be announced: those that were when we came, as far as their statuses say so,
// and those of the last pass.
func (m *state) carried(w *world.Snapshot) map[netip.Addr]bool {
	all := make(map[netip.Addr]bool, len(w.Services))
	for _, s := range w.Services {
		if s.Contested {
			continue // some of its addresses are held; see Snapshot.Announced for the others
		}
		for _, a := range s.Assigned {
			all[a] = true
		}
	}
	for _, last := range m.planned {
		for _, v := range last.vips {
			all[v.Addr] = true
		}
	}
	return all
}

// guardFor returns whom to ask about an address: the guard that is being asked, or else the first
// in the order of its shard; false if there is none.
func (p *probation) guardFor(d *decision, a netip.Addr, last string) (probe, bool) {
	shard, ok := d.layout.ShardOf(d.allocation.PoolOf(a), a)
	if !ok {
		return probe{}, false
	}
	byName := func(d *place.Domain, name string) int { return cmp.Compare(d.Spec.Name, name) }
	at, _ := slices.BinarySearchFunc(d.layout.Domains, shard.Domain, byName)
	domain := d.layout.Domains[at]
	is := probe{network: domain.Spec.PhysicalNetwork, vlan: domain.Spec.VLAN, own: rows.PortMAC(d.world.Cluster.ID, shard)}
	for _, g := range domain.Shards[shard.Index].Gateways {
		if n := p.guards[g.Node]; n == nil || n.Faults[is.network] != "" {
			continue
		}
		if is.guard == "" || g.Node == last {
			is.guard = g.Node
		}
	}
	return is, is.guard != ""
}

// end is when the next silence is an answer; the zero time if none is waited for.
func (p *probation) end() time.Time {
	var first time.Time
	for _, is := range p.asked {
		switch {
		case is.announced && !is.reported && !is.answered.IsZero():
			first = earlier(first, is.answered.Add(silenceTime))
		case !is.announced && !is.contested:
			first = earlier(first, is.until)
		}
	}
	return first
}

// earlier returns the earlier one of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// probes are what each guard is asked at a time, in order.
func (p *probation) probes(now time.Time) map[string][]convert.ProbeRequest {
	out := map[string][]convert.ProbeRequest{}
	for _, a := range slices.SortedFunc(maps.Keys(p.asked), netip.Addr.Compare) {
		is := p.asked[a]
		if is.id == "" || is.announced && !is.warns(now) {
			continue
		}
		list := out[is.guard]
		at := slices.IndexFunc(list, func(q convert.ProbeRequest) bool {
			return q.ID == is.id && q.Own == is.own && q.Network == is.network && q.VLAN == is.vlan
		})
		if at < 0 {
			at = len(list)
			list = append(list, convert.ProbeRequest{ID: is.id, Own: is.own, Network: is.network, VLAN: is.vlan})
		}
		list[at].Addresses = append(list[at].Addresses, a)
		out[is.guard] = list
	}
	return out
}
