// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Reach is how many backends a plan may have, and where the endpoints are whose replies come back: on which
// node, as a pod or as the node itself. The address alone decides: nodeName in a slice is what its writer claims.
type Reach struct {
	// most is how many backends a plan may have, 0 for any number.
	most int
	// everything: nothing is asked, and slices are believed.
	everything bool
	pods       []netip.Prefix // none if not known
	// hosts are the nodes by the addresses that pods on their own network have, subnets by those of
	// their other pods; lengths has the lengths of these that there are, longest first.
	hosts   map[netip.Addr]string
	subnets map[netip.Prefix]string
	lengths map[world.Family][]int
	// untold are the nodes that don't tell their pods' subnet of a family: for these a slice is believed.
	untold map[nodeFamily]bool
}

type nodeFamily struct {
	node   string
	family world.Family
}

// ReachOf returns what the facts say about it. An address or a subnet that several nodes claim is that
// of the first by name; of subnets that overlap the narrowest counts.
func ReachOf(w *world.Snapshot) *Reach {
	if w.Cluster.OpenShiftSDN {
		return &Reach{everything: true} // kube-proxy reaches it
	}
	r := &Reach{
		most: w.Cluster.MaxBackends, everything: true, pods: w.Cluster.PodNets,
		hosts: make(map[netip.Addr]string, 2*len(w.Nodes)), subnets: make(map[netip.Prefix]string, 2*len(w.Nodes)),
		lengths: map[world.Family][]int{}, untold: map[nodeFamily]bool{},
	}
	zones := world.ZonesOf(w.Nodes)
	for _, n := range w.Nodes {
		if n.Chassis == "" {
			continue
		}
		r.everything = false
		if !zones.Reaches(n) {
			continue // Its replies do not come back to a router of ours.
		}
		for _, h := range n.Hosts {
			if other, ok := r.hosts[h.Addr]; !ok || n.Name < other {
				r.hosts[h.Addr] = n.Name
			}
		}
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			r.addSubnets(n, f)
		}
	}
	for _, lengths := range r.lengths {
		slices.SortFunc(lengths, func(a, b int) int { return b - a })
	}
	return r
}

func (r *Reach) addSubnets(n *world.Node, f world.Family) {
	told := false
	for _, p := range n.PodSubnets {
		if world.FamilyOf(p.Addr()) != f {
			continue
		}
		told = true
		if other, ok := r.subnets[p]; !ok || n.Name < other {
			r.subnets[p] = n.Name
		}
		if !slices.Contains(r.lengths[f], p.Bits()) {
			r.lengths[f] = append(r.lengths[f], p.Bits())
		}
	}
	if !told {
		r.untold[nodeFamily{n.Name, f}] = true
	}
}

// Equal tells whether both are the same.
func (r *Reach) Equal(o *Reach) bool {
	return r == o || r != nil && o != nil && r.most == o.most && r.everything == o.everything &&
		slices.Equal(r.pods, o.pods) && maps.Equal(r.hosts, o.hosts) &&
		maps.Equal(r.subnets, o.subnets) && maps.Equal(r.untold, o.untold)
}

// split returns the backends that are reached, with the nodes that they are on and those that are nodes marked
// as such, and the addresses of the others.
func (r *Reach) split(all []Backend) (reached []Backend, outside []netip.Addr) {
	reached = all[:0]
	for _, b := range all {
		a := b.Addr.Addr()
		if node, ok := r.hosts[a]; ok {
			b.Node, b.Host = node, true
		} else if b.Node, ok = r.podNode(a, b.Node); !ok {
			outside = append(outside, a)
			continue
		}
		reached = append(reached, b)
	}
	return reached, outside
}

// podNode returns the node that a pod's address is on, which a slice says to be on a node; false if it is
// on none.
func (r *Reach) podNode(a netip.Addr, hint string) (string, bool) {
	if len(r.pods) > 0 && !slices.ContainsFunc(r.pods, func(net netip.Prefix) bool { return net.Contains(a) }) {
		return "", false
	}
	f := world.FamilyOf(a)
	for _, bits := range r.lengths[f] {
		if p, err := a.Prefix(bits); err == nil {
			if node, ok := r.subnets[p]; ok {
				return node, true
			}
		}
	}
	return hint, r.everything || r.untold[nodeFamily{hint, f}]
}
