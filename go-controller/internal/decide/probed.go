// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// This file is the part of probing that amends decisions.

// maxAmendedProbes limits the addresses that a guard is asked to probe when an amendment adds one. Each amendment has a
// probe request of its own, so their text is longer than that of the requests of a full decision.
const maxAmendedProbes = 100

// withholdNew withholds the addresses of a new Service until a guard has probed them, as withholdUnprobed would. It
// returns false if only a full decision can do that: if the address may have been announced or probed before, or waits
// for its turn.
func (p *probing) withholdNew(d *Decision, s *world.Service, addrs []netip.Addr) (map[netip.Addr]place.Withheld, bool) {
	if len(p.guards) == 0 || len(addrs) == 0 {
		return nil, true
	}
	if p.paused || s.SharingKey != "" {
		return nil, false
	}
	busy := map[string]int{}
	for _, r := range p.requests {
		if !r.announced {
			busy[r.guard]++
		}
	}
	withheld := map[netip.Addr]place.Withheld{}
	started := map[netip.Addr]probe{}
	var unserved []netip.Addr
	for _, a := range addrs {
		if _, was := p.requests[a]; was || d.World.Announced[a] {
			return nil, false
		}
		is, why := p.evaluate(d, a, probe{})
		if is.guard == "" {
			if isUnserved(d, a, true) {
				unserved = append(unserved, a)
			}
			continue
		}
		if busy[is.guard]++; busy[is.guard] > maxAmendedProbes {
			return nil, false
		}
		started[a], withheld[a] = is, why
	}
	for _, a := range unserved {
		p.requests[a] = probe{}
	}
	if len(started) == 0 {
		return nil, true
	}
	p.seq++
	for a, is := range started {
		p.requests[a] = p.started(is, d.World.Now)
	}
	p.withheld[s.Key] = s
	return withheld, true
}

// recordProbed records the completed probe requests of some guards. It returns the Services with addresses that these
// no longer withhold, oldest first.
func (p *probing) recordProbed(d *Decision, probed map[string][]string) []*world.Service {
	if d.World.Probed == nil {
		d.World.Probed = map[string][]string{}
	}
	for node, ids := range probed {
		d.World.Probed[node] = ids
	}
	var services []*world.Service
	for key, s := range p.withheld {
		if slices.ContainsFunc(d.Allocation.Services[key].VIPs(), func(a netip.Addr) bool {
			r, known := p.requests[a]
			return known && !r.announced && r.id != "" && slices.Contains(probed[r.guard], r.id)
		}) {
			services = append(services, s)
		}
	}
	return ipam.ByAge(services)
}

// withholdAgain decides again which addresses of a withheld Service are withheld.
func (p *probing) withholdAgain(d *Decision, s *world.Service) map[netip.Addr]place.Withheld {
	delete(p.withheld, s.Key)
	withheld := map[netip.Addr]place.Withheld{}
	for _, a := range d.Allocation.Services[s.Key].VIPs() {
		last, known := p.requests[a]
		if !known || last.announced {
			continue
		}
		is, why := p.evaluate(d, a, last)
		if is.guard == "" {
			delete(p.requests, a)
			continue
		}
		if p.requests[a] = is; why.Reason != "" {
			withheld[a] = why
		}
		if why.Reason == place.ReasonProbing {
			p.withheld[s.Key] = s
		}
	}
	return withheld
}

// hasWaiting reports whether an address waits for its turn to be probed.
func (p *probing) hasWaiting() bool {
	for _, r := range p.requests {
		if !r.announced && r.until.IsZero() {
			return true
		}
	}
	return false
}
