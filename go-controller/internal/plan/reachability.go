// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Reachability tells which endpoints have replies that return: on which node they are, and whether as a pod or as the
// node itself. Only the address is trusted: nodeName in a slice is a claim of its writer. But if several nodes claim
// the address, it is that of the node in the slice, if that is one of them: a kubelet can claim addresses of other
// nodes and of their pods in its Node, and would receive what is sent to them. An address that belongs to another node
// than the one in the slice, although that reports it, too (world.HostsOf), has none.
type Reachability struct {
	// trustSlices is set if nothing is checked and slices are trusted.
	trustSlices bool
	pods        []netip.Prefix // none if unknown
	// hosts are the nodes by the addresses of host-network pods, subnets by those of their other pods. lengths has
	// the prefix lengths of these subnets, longest first.
	hosts   map[netip.Addr]string
	subnets map[netip.Prefix]string
	lengths map[world.Family][]int
	// claims are all claims of nodes to addresses and subnets.
	claims map[nodeClaim]bool
	// lost are those claims of nodes to addresses of their own that another node has.
	lost map[nodeClaim]bool
	// unknownSubnets are the nodes without a known pod subnet of a family: for these a slice is trusted.
	unknownSubnets map[nodeFamily]bool
}

type nodeFamily struct {
	node   string
	family world.Family
}

// nodeClaim is the claim of a node to a subnet of its pods or to an address of its own; the other one is zero.
type nodeClaim struct {
	node string
	pods netip.Prefix
	own  netip.Addr
}

// NewReachability returns the Reachability of a snapshot. What several nodes claim belongs to the node that the slice
// names; otherwise an address of a node itself to the first by world.Node.Precedes, and a subnet to the first by name.
// Of overlapping subnets that are left (world.PodSubnetsOf), the narrowest counts.
func NewReachability(w *world.Snapshot) *Reachability {
	if w.Cluster.OpenShiftSDN {
		return &Reachability{trustSlices: true} // kube-proxy reaches all endpoints
	}
	r := &Reachability{
		trustSlices: true, pods: w.Cluster.ClusterSubnets,
		hosts:   make(map[netip.Addr]string, 2*len(w.Nodes)),
		subnets: make(map[netip.Prefix]string, 2*len(w.Nodes)), claims: make(map[nodeClaim]bool, 4*len(w.Nodes)),
		lengths: map[world.Family][]int{}, unknownSubnets: map[nodeFamily]bool{}, lost: map[nodeClaim]bool{},
	}
	zones, hostsOf := world.ZonesOf(w.Nodes, w.Cluster.NoDatabase), world.HostsOf(w.Nodes)
	podSubnetsOf, owners := world.PodSubnetsOf(w.Nodes), make(map[netip.Addr]*world.Node, 2*len(w.Nodes))
	for _, n := range w.Nodes {
		if n.Chassis == "" {
			continue
		}
		r.trustSlices = false
		if !zones.Reaches(n) {
			continue // Replies from this node do not return to our routers.
		}
		for _, h := range hostsOf(n) {
			if first := owners[h.Addr]; first == nil || n.Precedes(first) {
				owners[h.Addr], r.hosts[h.Addr] = n, n.Name
			}
			r.claims[nodeClaim{node: n.Name, own: h.Addr}] = true
		}
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			r.addSubnets(n, f, podSubnetsOf(n))
		}
	}
	for _, n := range w.Nodes {
		for _, h := range n.Hosts {
			c := nodeClaim{node: n.Name, own: h.Addr}
			if other := owners[h.Addr]; other != nil && !r.claims[c] {
				r.lost[c] = true
			}
		}
	}
	for _, lengths := range r.lengths {
		slices.SortFunc(lengths, func(a, b int) int { return b - a })
	}
	return r
}

func (r *Reachability) addSubnets(n *world.Node, f world.Family, subnets []netip.Prefix) {
	known := slices.ContainsFunc(n.PodSubnets, func(p netip.Prefix) bool { return world.FamilyOf(p.Addr()) == f })
	for _, p := range subnets {
		if world.FamilyOf(p.Addr()) != f {
			continue
		}
		if other, ok := r.subnets[p]; !ok || n.Name < other {
			r.subnets[p] = n.Name
		}
		r.claims[nodeClaim{node: n.Name, pods: p}] = true
		if !slices.Contains(r.lengths[f], p.Bits()) {
			r.lengths[f] = append(r.lengths[f], p.Bits())
		}
	}
	if !known {
		r.unknownSubnets[nodeFamily{n.Name, f}] = true
	}
}

// Equal reports whether r and o are equal.
func (r *Reachability) Equal(o *Reachability) bool {
	return r == o || r != nil && o != nil && r.trustSlices == o.trustSlices &&
		slices.Equal(r.pods, o.pods) && maps.Equal(r.hosts, o.hosts) && maps.Equal(r.claims, o.claims) &&
		maps.Equal(r.lost, o.lost) && maps.Equal(r.subnets, o.subnets) && maps.Equal(r.unknownSubnets, o.unknownSubnets)
}

// split returns the backends that can be reached, with their nodes and with HostNetwork set for those that are nodes,
// and the addresses of the others.
func (r *Reachability) split(all []Backend) (reached []Backend, outside []netip.Addr) {
	reached = all[:0]
	for _, b := range all {
		a := b.Addr.Addr()
		if r.lost[nodeClaim{node: b.Node, own: a}] {
			outside = append(outside, a)
			continue
		}
		if node, ok := r.hostNode(a, b.Node); ok {
			b.Node, b.HostNetwork = node, true
		} else if b.Node, ok = r.podNode(a, b.Node); !ok {
			outside = append(outside, a)
			continue
		}
		reached = append(reached, b)
	}
	return reached, outside
}

// hostNode returns the node that has an address itself. hint is the node according to the slice. It returns false for
// the address of a pod.
func (r *Reachability) hostNode(a netip.Addr, hint string) (string, bool) {
	if r.claims[nodeClaim{node: hint, own: a}] {
		return hint, true
	}
	node, ok := r.hosts[a]
	return node, ok && !r.claimsPod(hint, a)
}

// claimsPod reports whether an address is in a pod subnet of a node.
func (r *Reachability) claimsPod(node string, a netip.Addr) bool {
	return slices.ContainsFunc(r.lengths[world.FamilyOf(a)], func(bits int) bool {
		p, err := a.Prefix(bits)
		return err == nil && r.claims[nodeClaim{node: node, pods: p}] && !isReserved(p, a)
	})
}

// podNode returns the node of a pod's address. hint is the node according to the slice. It returns false if the
// address is on no node.
func (r *Reachability) podNode(a netip.Addr, hint string) (string, bool) {
	if len(r.pods) > 0 && !slices.ContainsFunc(r.pods, func(net netip.Prefix) bool { return net.Contains(a) }) {
		return "", false
	}
	if r.claimsPod(hint, a) {
		return hint, true
	}
	f := world.FamilyOf(a)
	for _, bits := range r.lengths[f] {
		if p, err := a.Prefix(bits); err == nil {
			if node, ok := r.subnets[p]; ok {
				return node, !isReserved(p, a)
			}
		}
	}
	return hint, r.trustSlices || r.unknownSubnets[nodeFamily{hint, f}]
}

// isReserved reports whether an address of a pod subnet is never that of a pod: the network address and, of IPv4, the
// broadcast address.
func isReserved(subnet netip.Prefix, a netip.Addr) bool {
	return !subnet.IsSingleIP() && (a == subnet.Masked().Addr() || a.Is4() && a == netipx.PrefixLastIP(subnet))
}
