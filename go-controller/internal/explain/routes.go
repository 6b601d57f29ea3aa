// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// Route is an address that nodes advertise by BGP.
type Route struct {
	Address netip.Addr `json:"address"`
	Service string     `json:"service"`
	// Nodes advertise the address, to Peers. Idle should, but have no session that carries it.
	Nodes []string `json:"nodes,omitempty"`
	Idle  []string `json:"idle,omitempty"`
	Peers []string `json:"peers,omitempty"`
	// NextHops are the next hops of the route: addresses of the nodes, or the one of the shard (nextHop: Gateway).
	NextHops []string `json:"nextHops,omitempty"`
	// Without are those of Peers to which a node among Nodes should advertise it and does not, by node.
	Without map[string][]string `json:"withoutSession,omitempty"`
	// NotWithdrawn are nodes of which FRR advertises the address although they should not.
	NotWithdrawn []string `json:"notWithdrawn,omitempty"`
}

// Routes returns the addresses that BGPAdvertisements select, in the order of Services and addresses. Which nodes
// advertise one follows from the objects and from the sessions that nodes report.
func Routes(o *objects.Objects, now time.Time) []Route {
	w := o.Snapshot(now)
	layout := place.Compute(w)
	routing := bgp.NewLayout(w, ipam.Allocate(w, layout.ConfiguredShardOf), layout.ConfiguredShardOf)
	survey := frrk8s.Survey(w, routing)
	routes := []Route{}
	for _, s := range w.Services {
		for _, a := range routing.Advertised(s) {
			if !survey.Takes(s, a) {
				continue
			}
			r := Route{Address: a, Service: s.Key.String(), NotWithdrawn: survey.Overdue(s, a)}
			if by := survey.Of(s, a); by != nil {
				r.Nodes, r.Idle, r.Peers = slices.Clone(by.Nodes), slices.Clone(by.NotAdvertising), slices.Clone(by.Peers)
				r.Without = maps.Clone(by.Without)
				for _, hop := range survey.NextHops(s, a) {
					r.NextHops = append(r.NextHops, nextHopText(hop))
				}
			}
			routes = append(routes, r)
		}
	}
	printable.Clean(&routes)
	return routes
}

func nextHopText(hop netip.Addr) string {
	if !hop.IsValid() {
		return "link-local"
	}
	return hop.String()
}

// WithoutSession returns the nodes that should advertise the address and have no session that carries it, and those
// that advertise it to some of the peers only, with the others behind them.
func (r *Route) WithoutSession() []string { return withoutSession(r.Idle, r.Without) }

func withoutSession(idle []string, without map[string][]string) []string {
	list := slices.Clone(idle)
	for _, node := range slices.Sorted(maps.Keys(without)) {
		list = append(list, fmt.Sprintf("%s (%s)", node, joined(without[node])))
	}
	return list
}
