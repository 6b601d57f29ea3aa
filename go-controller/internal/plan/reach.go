// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Reach is where the endpoints are whose replies come back: in the pods' networks, or on a
// node itself.
type Reach struct {
	pods []netip.Prefix // none if not known
	// hosts are the nodes by the addresses that pods on their own network have.
	hosts map[netip.Addr]string
}

// ReachOf returns what the facts say about it. An address that several nodes claim is that
// of the first by name.
func ReachOf(w *world.Snapshot) *Reach {
	if w.Cluster.OpenShiftSDN {
		return &Reach{} // kube-proxy reaches everything
	}
	r := &Reach{pods: w.Cluster.PodNets, hosts: make(map[netip.Addr]string, 2*len(w.Nodes))}
	for _, n := range w.Nodes {
		if n.Chassis == "" {
			continue
		}
		for _, h := range n.Hosts {
			if other, ok := r.hosts[h.Addr]; !ok || n.Name < other {
				r.hosts[h.Addr] = n.Name
			}
		}
	}
	return r
}

// Equal tells whether both are the same.
func (r *Reach) Equal(o *Reach) bool {
	return r == o || r != nil && o != nil && slices.Equal(r.pods, o.pods) && maps.Equal(r.hosts, o.hosts)
}

// split returns the backends that are reached, those that are nodes marked as such, and the
// addresses of the others.
func (r *Reach) split(all []Backend) (reached []Backend, outside []netip.Addr) {
	reached = all[:0]
	for _, b := range all {
		a := b.Addr.Addr()
		if node, ok := r.hosts[a]; ok {
			b.Node, b.Host = node, true
		} else if len(r.pods) > 0 && !slices.ContainsFunc(r.pods, func(net netip.Prefix) bool { return net.Contains(a) }) {
			outside = append(outside, a)
			continue
		}
		reached = append(reached, b)
	}
	return reached, outside
}
