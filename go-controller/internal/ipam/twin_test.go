// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// twin is the allocator as one would write it for a pool of a dozen addresses: it lists
// them all, again and again. It says nothing but addresses, pools and whether a Service
// waits.
type twin struct {
	w       *world.Snapshot
	shardOf func(string, netip.Addr) (world.ShardID, bool)
	holder  map[netip.Addr]world.Key
}

type twinOutcome struct {
	addrs []netip.Addr
	pool  string
}

func older(a, b *world.Pool) bool {
	return a.Created.Before(b.Created) || a.Created.Equal(b.Created) && a.Name < b.Name
}

// inPool returns the oldest pool that has the address in its ranges.
func (t *twin) inPool(a netip.Addr) *world.Pool {
	var best *world.Pool
	for _, p := range t.w.Pools {
		for _, r := range p.Ranges {
			if r.Contains(a) && (best == nil || older(p, best)) {
				best = p
			}
		}
	}
	return best
}

func (t *twin) blocked(a netip.Addr) bool {
	for _, n := range t.w.Nodes {
		if slices.Contains(n.Addrs, a) {
			return true
		}
	}
	for _, p := range slices.Concat(t.w.Cluster.PodNets, t.w.Cluster.ServiceNets) {
		if p.Contains(a) {
			return true
		}
	}
	for _, d := range t.w.Domains {
		for _, s := range d.Subnets {
			hosts := s.Prefix.Addr().BitLen() - s.Prefix.Bits()
			last := a.Is4() && a == netipx.PrefixLastIP(s.Prefix)
			if a == s.Gateway || hosts > 1 && (a == s.Prefix.Addr() || last) {
				return true
			}
		}
	}
	return false
}

// stock lists what a pool may give of a family, in order.
func (t *twin) stock(p *world.Pool, f world.Family) []netip.Addr {
	var list []netip.Addr
	for _, r := range p.Ranges {
		if world.FamilyOf(r.From()) != f {
			continue
		}
		for a := r.From(); a.IsValid() && !r.To().Less(a); a = a.Next() {
			excluded := slices.ContainsFunc(p.Exclude, func(r netipx.IPRange) bool { return r.Contains(a) })
			ends := a.String()
			bad := p.AvoidBuggyIPs && f == world.IPv4 && (strings.HasSuffix(ends, ".0") || strings.HasSuffix(ends, ".255"))
			if t.inPool(a) == p && !excluded && !bad && !t.blocked(a) && t.waitsFor(a) == (world.Key{}) && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// waitsFor returns whom the pool of an address keeps it for: the first one, if several.
func (t *twin) waitsFor(a netip.Addr) world.Key {
	if p := t.inPool(a); p != nil {
		for _, r := range p.Reservations {
			if slices.Contains(r.Addrs, a) {
				return r.Service
			}
		}
	}
	return world.Key{}
}

// unreserved is the same world with pools that keep nothing.
func (t *twin) unreserved() *twin {
	w := *t.w
	w.Pools = nil
	for _, p := range t.w.Pools {
		plain := *p
		plain.Reservations = nil
		w.Pools = append(w.Pools, &plain)
	}
	return &twin{w: &w}
}

// givable reports whether the pool of an address would give it to the Service, were it free.
func (t *twin) givable(s *world.Service, a netip.Addr) bool {
	p, whom := t.inPool(a), t.waitsFor(a)
	switch {
	case !gives(p):
		return false
	case whom == (world.Key{}):
		return admits(p, s) && slices.Contains(t.stock(p, world.FamilyOf(a)), a)
	}
	u := t.unreserved()
	return whom == s.Key && slices.Contains(u.stock(u.inPool(a), world.FamilyOf(a)), a)
}

// waiting returns the address that waits for a Service.
func (t *twin) waiting(s *world.Service, f world.Family) netip.Addr {
	for _, p := range slices.SortedFunc(slices.Values(t.w.Pools), inTurn) {
		for _, r := range p.Reservations {
			for _, a := range r.Addrs {
				if world.FamilyOf(a) == f && t.inPool(a) == p && t.waitsFor(a) == s.Key && (s.RequestedPool == "" || s.RequestedPool == p.Name) {
					return a
				}
			}
		}
	}
	return netip.Addr{}
}

func (t *twin) free(p *world.Pool, f world.Family) []netip.Addr {
	return slices.DeleteFunc(t.stock(p, f), func(a netip.Addr) bool { _, taken := t.holder[a]; return taken })
}

// best is the free address, of the first sixteen, whose shard has the fewest.
func (t *twin) best(p *world.Pool, f world.Family) netip.Addr {
	load := map[world.ShardID]int{}
	for a := range t.holder {
		name := ""
		if p := t.inPool(a); p != nil {
			name = p.Name
		}
		if id, ok := t.shardOf(name, a); ok {
			load[id]++
		}
	}
	of := func(a netip.Addr) int {
		id, ok := t.shardOf(p.Name, a)
		if !ok {
			return 0
		}
		return load[id]
	}
	free := t.free(p, f)
	free = free[:min(16, len(free))]
	return slices.MinFunc(free, func(a, b netip.Addr) int { return of(a) - of(b) })
}

func wants(s *world.Service) []world.Family {
	if s.FamilyPolicy == world.SingleStack {
		return s.Families[:1]
	}
	return s.Families
}

func (t *twin) allocate(held map[world.Key][]netip.Addr) map[world.Key]twinOutcome {
	t.holder = map[netip.Addr]world.Key{}
	has := map[world.Key]map[world.Family]netip.Addr{}
	services := ipam.ByAge(t.w.Services)
	for _, s := range services {
		addrs := held[s.Key]
		if len(addrs) == 0 {
			addrs = s.Assigned
		}
		has[s.Key] = map[world.Family]netip.Addr{}
		for _, a := range addrs {
			f := world.FamilyOf(a)
			_, taken := t.holder[a]
			if slices.Contains(wants(s), f) && !has[s.Key][f].IsValid() && !taken {
				t.holder[a] = s.Key
				has[s.Key][f] = a
			}
		}
	}
	for _, s := range services {
		for _, a := range s.Assigned {
			if _, taken := t.holder[a]; !taken {
				t.holder[a] = s.Key
			}
		}
	}
	out := map[world.Key]twinOutcome{}
	for _, s := range services {
		gets := t.serve(s, has[s.Key])
		var o twinOutcome
		for _, f := range wants(s) {
			if a, ok := gets[f]; ok {
				if p := t.inPool(a); p != nil && o.addrs == nil {
					o.pool = p.Name
				}
				o.addrs = append(o.addrs, a)
				t.holder[a] = s.Key
			}
		}
		out[s.Key] = o
	}
	return out
}

func (t *twin) serve(s *world.Service, has map[world.Family]netip.Addr) map[world.Family]netip.Addr {
	asked, ok := t.request(s, has)
	if !ok || len(s.Problems) > 0 {
		return has
	}
	gets := map[world.Family]netip.Addr{}
	var missing []world.Family
	for _, f := range wants(s) {
		a, have := has[f]
		if have {
			gets[f] = a
		}
		switch {
		case asked[f].IsValid():
			gets[f] = asked[f]
		case !have, t.elsewhere(s, a):
			missing = append(missing, f)
		}
	}
	pools := t.pools(s, gets)
	chosen := map[world.Family]*world.Pool{}
	for _, f := range missing {
		for _, p := range pools {
			more := 1
			for _, other := range chosen {
				if other == p {
					more++
				}
			}
			if len(t.free(p, f)) > 0 && t.affords(p, s, has, gets, more) {
				chosen[f] = p
				break
			}
		}
	}
	for _, p := range slices.Backward(pools) {
		lacks := slices.ContainsFunc(missing, func(f world.Family) bool { return len(t.free(p, f)) == 0 })
		if !lacks && t.affords(p, s, has, gets, len(missing)) {
			for _, f := range missing {
				chosen[f] = p
			}
		}
	}
	if s.FamilyPolicy == world.RequireDualStack && len(has) == 0 && len(chosen) < len(missing) {
		return nil
	}
	for _, f := range missing {
		if p := chosen[f]; p != nil {
			gets[f] = t.best(p, f)
			t.holder[gets[f]] = s.Key
		}
	}
	return gets
}

// affords reports whether a Service that had some addresses and gets others may have more
// of the pool.
func (t *twin) affords(p *world.Pool, s *world.Service, had, gets map[world.Family]netip.Addr, more int) bool {
	spent := 0
	for a, k := range t.holder {
		if t.inPool(a) == p && k.Namespace == s.Key.Namespace {
			spent++
		}
	}
	for _, f := range wants(s) {
		if had[f] != gets[f] && t.inPool(had[f]) == p {
			more--
		}
		if had[f] != gets[f] && t.inPool(gets[f]) == p {
			more++
		}
	}
	return p.Quota == 0 || more <= 0 || spent+more <= p.Quota
}

func (t *twin) elsewhere(s *world.Service, a netip.Addr) bool {
	if s.RequestedPool == "" || t.inPool(a) == nil {
		return false
	}
	p := t.named(s.RequestedPool)
	return p == nil || !slices.ContainsFunc(p.Ranges, func(r netipx.IPRange) bool { return r.Contains(a) })
}

func (t *twin) named(name string) *world.Pool {
	for _, p := range t.w.Pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// admits reads the fields one by one.
func admits(p *world.Pool, s *world.Service) bool {
	a := p.Admission
	if a == nil {
		return true
	}
	if !a.AnyNamespace && !slices.Contains(a.Namespaces, s.Key.Namespace) {
		return false
	}
	for _, selector := range a.Services {
		all := true
		for _, r := range selector {
			value, has := s.Labels[r.Key]
			switch {
			case len(r.Values) == 0:
				all = all && has != r.Not
			case r.Not:
				all = all && (!has || !slices.Contains(r.Values, value))
			default:
				all = all && has && slices.Contains(r.Values, value)
			}
		}
		if all {
			return true
		}
	}
	return len(a.Services) == 0
}

// later reports whether pool b is asked before pool a.
func later(a, b *world.Pool) bool {
	class := func(p *world.Pool) int {
		switch {
		case p.Admission == nil:
			return 2
		case p.Admission.Priority == 0:
			return 1
		}
		return 0
	}
	if class(a) != class(b) {
		return class(a) > class(b)
	}
	if class(a) == 0 && a.Admission.Priority != b.Admission.Priority {
		return a.Admission.Priority > b.Admission.Priority
	}
	return a.Name > b.Name
}

func inTurn(a, b *world.Pool) int {
	if later(a, b) {
		return 1
	}
	return -1
}

func gives(p *world.Pool) bool { return p != nil && !p.Disabled && len(p.Problems) == 0 }

func (t *twin) pools(s *world.Service, gets map[world.Family]netip.Addr) []*world.Pool {
	if s.RequestedPool != "" {
		if p := t.named(s.RequestedPool); gives(p) && admits(p, s) {
			return []*world.Pool{p}
		}
		return nil
	}
	var list []*world.Pool
	for _, f := range wants(s) {
		p := t.inPool(gets[f])
		if gives(p) && admits(p, s) && (p.AutoAssign || slices.Contains(s.Requested, gets[f]) || t.waitsFor(gets[f]) == s.Key) {
			list = append(list, p)
		}
	}
	for _, p := range slices.SortedFunc(slices.Values(t.w.Pools), inTurn) {
		if gives(p) && admits(p, s) && p.AutoAssign {
			list = append(list, p)
		}
	}
	return list
}

func (t *twin) request(s *world.Service, has map[world.Family]netip.Addr) (map[world.Family]netip.Addr, bool) {
	asked := map[world.Family]netip.Addr{}
	for _, a := range s.Requested {
		f := world.FamilyOf(a)
		if !slices.Contains(wants(s), f) || asked[f].IsValid() && asked[f] != a {
			return nil, false
		}
		asked[f] = a
	}
	for _, f := range wants(s) {
		if a := t.waiting(s, f); a.IsValid() && !has[f].IsValid() && !asked[f].IsValid() {
			asked[f] = a
		}
	}
	for f, a := range asked {
		if has[f] == a {
			continue
		}
		k, taken := t.holder[a]
		gets := maps.Clone(has)
		maps.Copy(gets, asked)
		if !t.givable(s, a) || !t.affords(t.inPool(a), s, has, gets, 0) || s.RequestedPool != "" && t.inPool(a).Name != s.RequestedPool || taken && k != s.Key {
			return nil, false
		}
	}
	return asked, true
}
