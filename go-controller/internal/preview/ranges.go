// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// unfilteredRanges returns a note if source ranges of a Service do not apply to some of its addresses after an edit,
// which changes the ranges or how these addresses are announced. old is nil if the edit creates the Service.
func unfilteredRanges(was, is *decision, old, s *world.Service, before, after map[netip.Addr]*announcement) []string {
	now := is.unfiltered(s, after)
	if len(now) == 0 || old != nil && slices.Equal(now, was.unfiltered(old, before)) &&
		maps.EqualFunc(old.SourceRanges, s.SourceRanges, slices.Equal) {
		return nil
	}
	var texts []string
	for _, a := range now {
		texts = append(texts, a.String())
	}
	return []string{fmt.Sprintf("Service %s: spec.loadBalancerSourceRanges do not apply to what routers send to nodes "+
		"for %s (RangesNotApplied): let the routers filter", s.Key, strings.Join(texts, ", "))}
}

// unfiltered returns the addresses of a Service with source ranges that routers send to nodes: OVN-Kubernetes does not
// filter there, kube-proxy with OpenShift SDN does.
func (d *decision) unfiltered(s *world.Service, announced map[netip.Addr]*announcement) []netip.Addr {
	if d.World.Cluster.OpenShiftSDN {
		return nil
	}
	return slices.DeleteFunc(sortedAddrs(announced), func(a netip.Addr) bool {
		_, restricted := s.SourceRanges[world.FamilyOf(a)]
		return !restricted || !announced[a].byNode
	})
}
