// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// endpointsOn counts the endpoints on a node that take connections, and their Services. A Pod with addresses of both
// families is one.
type endpointsOn struct{ endpoints, services int }

// fail is a clause about the connections that fail; prefix precedes them and suffix says when. It is empty if there are
// none.
func (e endpointsOn) fail(prefix, suffix string) string {
	if e.endpoints == 0 {
		return ""
	}
	return fmt.Sprintf("; %s to %s of %s on it fail%s", prefix, world.Count(e.endpoints, "endpoint"),
		world.Count(e.services, "Service"), suffix)
}

// countByNode counts the endpoints of the Services with addresses, by node.
func (v *overview) countByNode() map[string]endpointsOn {
	counts := map[string]endpointsOn{}
	if v.unread("endpointslices") {
		return counts
	}
	for _, s := range v.world.Services {
		of := *v.path
		of.service = s
		most := map[string]int{} // by node, those of the family that has more
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			if !slices.ContainsFunc(of.asked(), func(a netip.Addr) bool { return world.FamilyOf(a) == f }) {
				continue
			}
			taking := map[string]map[netip.Addr]bool{}
			for addr, e := range plan.Endpoints(s, f) {
				if taking[e.Node] == nil {
					taking[e.Node] = map[netip.Addr]bool{}
				}
				taking[e.Node][addr.Addr()] = true
			}
			for node, addrs := range taking {
				most[node] = max(most[node], len(addrs))
			}
		}
		for node, n := range most {
			counts[node] = endpointsOn{counts[node].endpoints + n, counts[node].services + 1}
		}
	}
	return counts
}
