// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"cmp"
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

// probation holds addresses that are new to their segment until a guard there has asked for
// them, and those that a stranger answers for until nobody does. Where no guard runs,
// nothing is held.
type probation struct {
	// guards are the nodes with one.
	guards map[string]*world.Node
	asked  map[netip.Addr]asked
	// silent: nothing was announced in the last pass, because layer 2 was switched off.
	silent bool
}

// asked is an address that a guard is asked about.
type asked struct {
	guard, network string
	vlan           int
	contested      bool
	// until is when silence is an answer; zero while it waits for its turn.
	until time.Time
}

// withoutOurs returns the snapshot without the conflicts that our own gateways are taken for:
// one may still answer for the Service that had the address before.
func withoutOurs(w *world.Snapshot, l *place.Layout) *world.Snapshot {
	if len(w.Conflicts) == 0 {
		return w
	}
	ours := map[string]bool{}
	for _, d := range l.Domains {
		for _, shard := range d.Shards {
			ours[rows.PortMAC(w.Cluster.ID, shard.ID)] = true
		}
	}
	out := *w
	out.Conflicts = maps.Clone(w.Conflicts)
	maps.DeleteFunc(out.Conflicts, func(_ netip.Addr, c world.Conflict) bool { return ours[c.MAC] })
	return &out
}

// review decides which of the addresses given wait, and for what.
func (m *memory) review(d *decision) map[netip.Addr]place.Hold {
	p := &m.probation
	before, silent := p.asked, p.silent
	p.silent = !d.world.Cluster.Switch.Mode.Layer2()
	p.guards, p.asked = map[string]*world.Node{}, map[netip.Addr]asked{}
	for _, n := range d.world.Nodes {
		if n.Guarded {
			p.guards[n.Name] = n
		}
	}
	if len(p.guards) == 0 {
		return nil
	}
	carried := map[netip.Addr]struct{}{}
	if !silent {
		carried = m.carried(d.world)
	}
	holds := map[netip.Addr]place.Hold{}
	var order []netip.Addr
	for _, s := range d.allocation.InOrder() {
		for _, a := range d.allocation.Services[s.Key].VIPs() {
			last, was := before[a]
			if _, known := carried[a]; known && !was {
				last.until = d.world.Now
			}
			is, hold := p.judge(d, a, last)
			if hold.Reason == "" {
				continue
			}
			holds[a] = hold
			if is.guard != "" {
				p.asked[a] = is
				order = append(order, a)
			}
		}
	}
	p.takeTurns(d.world.Now, order)
	return holds
}

// judge decides about one address; last is what was asked about it before. Without a Reason
// it is not held.
func (p *probation) judge(d *decision, a netip.Addr, last asked) (asked, place.Hold) {
	is, ok := p.whom(d, a, last.guard)
	if c, contested := d.world.Conflicts[a]; contested {
		is.contested, is.until = true, d.world.Now
		return is, place.Hold{Reason: place.ReasonAddressConflict, Message: ipam.Contested(c)}
	}
	if last.guard == "" || is.guard == last.guard {
		is.until = last.until
	}
	if !ok || !is.until.IsZero() && !is.until.After(d.world.Now) {
		return asked{}, place.Hold{} // nobody can be asked, or nobody has it
	}
	return is, place.Hold{Reason: place.ReasonProbing}
}

// takeTurns lets addresses wait no longer, in order, while their guards are not too busy.
func (p *probation) takeTurns(now time.Time, order []netip.Addr) {
	busy := map[string]int{}
	for _, is := range p.asked {
		if !is.contested && !is.until.IsZero() {
			busy[is.guard]++
		}
	}
	for _, a := range order {
		if is := p.asked[a]; is.until.IsZero() && busy[is.guard] < mostAsked {
			busy[is.guard]++
			is.until = now.Add(silenceTime)
			p.asked[a] = is
		}
	}
}

// carried are the addresses that are known to be announced, or may be: those that were when
// we came, and those of the last pass.
func (m *memory) carried(w *world.Snapshot) map[netip.Addr]struct{} {
	all := make(map[netip.Addr]struct{}, len(w.Services))
	for _, s := range w.Services {
		for _, a := range s.Assigned {
			all[a] = struct{}{}
		}
	}
	for _, last := range m.made {
		for _, v := range last.vips {
			all[v.Addr] = struct{}{}
		}
	}
	return all
}

// whom returns whom to ask about an address: the guard that is being asked, or else the first
// in the order of its shard; false if there is none.
func (p *probation) whom(d *decision, a netip.Addr, last string) (asked, bool) {
	shard, ok := d.layout.ShardOf(d.allocation.PoolOf(a), a)
	if !ok {
		return asked{}, false
	}
	at, _ := slices.BinarySearchFunc(d.layout.Domains, shard.Domain, func(d *place.Domain, name string) int { return cmp.Compare(d.Spec.Name, name) })
	domain := d.layout.Domains[at]
	is := asked{network: domain.Spec.PhysicalNetwork, vlan: domain.Spec.VLAN}
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
		if !is.contested {
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

// questions are what each guard is asked, in order.
func (p *probation) questions() map[string][]convert.Question {
	out := map[string][]convert.Question{}
	for _, a := range slices.SortedFunc(maps.Keys(p.asked), netip.Addr.Compare) {
		is := p.asked[a]
		if is.until.IsZero() {
			continue
		}
		list := out[is.guard]
		at := slices.IndexFunc(list, func(q convert.Question) bool { return q.Network == is.network && q.VLAN == is.vlan })
		if at < 0 {
			at = len(list)
			list = append(list, convert.Question{Network: is.network, VLAN: is.vlan})
		}
		list[at].Addresses = append(list[at].Addresses, a)
		out[is.guard] = list
	}
	return out
}
