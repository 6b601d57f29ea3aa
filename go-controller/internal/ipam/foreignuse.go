// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// foreignUse is a range that no pool allocates from: its role, such as "the next hop of L2Domain", and its user.
type foreignUse struct {
	netipx.IPRange
	role, user string
	// service is the user if that is a Service; user is empty then.
	service world.Key
	// isMisconfiguration is set if the overlap is a mistake in the pool. The others are expected, such as the broadcast
	// address in a pool that is a whole subnet.
	isMisconfiguration bool
}

func (f foreignUse) compare(o foreignUse) int {
	return cmp.Or(f.From().Compare(o.From()), f.To().Compare(o.To()), cmp.Compare(f.role, o.role),
		cmp.Compare(f.user, o.user), f.service.Compare(o.service))
}

func misconfigured(r netipx.IPRange, role, user string) foreignUse {
	return foreignUse{IPRange: r, role: role, user: user, isMisconfiguration: true}
}

// String names Services of all namespaces.
func (f foreignUse) String() string { return f.describe(world.Key{}) }

// describe returns role and user for a message on a Service, or for one on none, which names those of all namespaces.
func (f foreignUse) describe(service world.Key) string {
	switch {
	case f.service == (world.Key{}):
		return f.role + " " + f.user
	case service == (world.Key{}):
		service = f.service
	}
	return f.role + " " + nameFor(service, f.service)
}

// nodeRole and hopRole are the roles of addresses that nodes themselves report.
const nodeRole, hopRole = "an address of node", "the next hop of node"

// egressRole is the role of addresses with which OVN-Kubernetes sends what pods send out. Nodes answer for them.
const egressRole = "an address of EgressIP"

// addForeignUses records the uses that are inside a pool.
func (pi *poolIndex) addForeignUses(all []foreignUse) {
	for _, res := range all {
		if first, end := overlapping(pi.ranges, res.IPRange); first < end {
			pi.uses = append(pi.uses, res)
			pi.foreign = append(pi.foreign, res.IPRange)
		}
	}
	pi.foreign = union(pi.foreign)
	slices.SortFunc(pi.uses, foreignUse.compare)
	for _, res := range pi.uses {
		if !res.isMisconfiguration {
			continue
		}
		first, end := overlapping(pi.ranges, res.IPRange)
		for i := first; i < end; i++ {
			pi.owners[i].addProblem(pi.owners[i].field()+": %s is %s and is not allocated anew",
				common(res.IPRange, pi.ranges[i]), res.String())
		}
	}
	isNet := func(u foreignUse) bool { return u.From() != u.To() }
	pi.netUses = slices.DeleteFunc(slices.Clone(pi.uses), func(u foreignUse) bool { return !isNet(u) })
	pi.uses = slices.DeleteFunc(pi.uses, isNet)
}

// foreignUses returns all uses of addresses outside the pools, in no order.
func foreignUses(w *world.Snapshot) []foreignUse {
	all := make([]foreignUse, 0, 2*len(w.Nodes))
	// Most nodes have the same next hops. The first node by name is the user of each.
	hops := map[netip.Addr]string{}
	for _, n := range w.Nodes {
		for _, a := range n.NextHops {
			if first, known := hops[a]; !known || n.Name < first {
				hops[a] = n.Name
			}
		}
		for _, a := range n.Addrs {
			all = append(all, misconfigured(netipx.IPRangeFrom(a, a), nodeRole, n.Name))
		}
	}
	for a, node := range hops {
		all = append(all, misconfigured(netipx.IPRangeFrom(a, a), hopRole, node))
	}
	for name, addrs := range w.EgressIPs {
		for _, a := range addrs {
			all = append(all, misconfigured(netipx.IPRangeFrom(a, a), egressRole, name))
		}
	}
	for _, d := range w.Domains {
		for _, s := range d.Subnets {
			if g := s.Gateway; g.IsValid() {
				all = append(all, misconfigured(netipx.IPRangeFrom(g, g), "the next hop of L2Domain", d.Name))
			}
			all = append(all, reservedSubnetAddrs(s.Prefix)...)
		}
	}
	for a, c := range w.Conflicts {
		if c == (world.Conflict{}) {
			continue // It is held by the Service that it belongs to.
		}
		all = append(all, misconfigured(netipx.IPRangeFrom(a, a), conflictRole, describe(c)))
	}
	for a, service := range w.Leaving {
		all = append(all, foreignUse{IPRange: netipx.IPRangeFrom(a, a), role: "still in the status of", service: service})
	}
	for _, p := range w.Cluster.ClusterSubnets {
		all = append(all, misconfigured(netipx.RangeOfPrefix(p), "in the pod network", p.String()))
	}
	for _, p := range w.Cluster.ServiceSubnets {
		all = append(all, misconfigured(netipx.RangeOfPrefix(p), "in the Service network", p.String()))
	}
	for _, p := range w.Cluster.InternalSubnets {
		all = append(all, misconfigured(netipx.RangeOfPrefix(p), "in OVN-Kubernetes' own network", p.String()))
	}
	return all
}

// reservedSubnetAddrs returns the addresses of a segment that hosts must not have: the first (the network itself in
// IPv4; the subnet-router anycast address of RFC 4291 section 2.6.1 in IPv6) and the IPv4 broadcast address. Subnets of
// two addresses or one have none (RFC 3021, RFC 6164).
func reservedSubnetAddrs(p netip.Prefix) []foreignUse {
	if p.Bits() >= p.Addr().BitLen()-1 {
		return nil
	}
	r := netipx.RangeOfPrefix(p)
	list := []foreignUse{{IPRange: netipx.IPRangeFrom(r.From(), r.From()), role: "the first address of subnet",
		user: p.String()}}
	if p.Addr().Is4() {
		list = append(list, foreignUse{IPRange: netipx.IPRangeFrom(r.To(), r.To()), role: "the broadcast address of subnet",
			user: p.String()})
	}
	return list
}

// firstUse returns the first use of an address inside a pool that is in none of some roles, or the zero value.
func (pi *poolIndex) firstUse(a netip.Addr, roles []string) foreignUse {
	var first foreignUse
	counts := func(u foreignUse) bool {
		return !slices.Contains(roles, u.role) && (first.role == "" || u.compare(first) < 0)
	}
	at, _ := slices.BinarySearchFunc(pi.uses, a, func(u foreignUse, a netip.Addr) int { return u.From().Compare(a) })
	for ; at < len(pi.uses) && pi.uses[at].From() == a && first.role == ""; at++ {
		if counts(pi.uses[at]) {
			first = pi.uses[at]
		}
	}
	for _, u := range pi.netUses {
		if u.Contains(a) && counts(u) {
			first = u
		}
	}
	return first
}

// usedAs returns what an address that is in no pool is used for inside of the cluster, for a message on a
// Service (describe), or an empty string.
func (pi *poolIndex) usedAs(a netip.Addr, service world.Key) string {
	if pi.addrUses == nil {
		pi.addrUses = make(map[netip.Addr]foreignUse, len(pi.allUses))
		for _, u := range pi.allUses {
			if u.role == conflictRole {
				continue // possibly by the controller that allocated it
			}
			if u.From() != u.To() {
				pi.networks = append(pi.networks, u)
			} else if other, ok := pi.addrUses[u.From()]; !ok || u.compare(other) < 0 {
				pi.addrUses[u.From()] = u
			}
		}
		slices.SortFunc(pi.networks, foreignUse.compare)
	}
	if u, ok := pi.addrUses[a]; ok {
		return u.describe(service)
	}
	for _, u := range pi.networks {
		if u.Contains(a) {
			return u.describe(service)
		}
	}
	return ""
}
