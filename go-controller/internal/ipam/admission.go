// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// priority is the sort key of a pool: its priority, where 0 sorts last. Pools without an admission rule, which serve
// every Service, sort after all others.
func (p *pool) priority() int {
	switch {
	case p.Admission == nil:
		return math.MaxInt
	case p.Admission.Priority == 0:
		return math.MaxInt - 1
	}
	return p.Admission.Priority
}

// findAnnouncers records which Services an object without errors announces with addresses of which pool. What OVN,
// nodes and routers do at the moment does not matter: the order of the pools changes only when an object is edited.
func (pi *poolIndex) findAnnouncers(w *world.Snapshot) {
	add := func(p *pool, services []world.Selector) {
		p.announcesAll = p.announcesAll || len(services) == 0
		p.announces = append(p.announces, services...)
	}
	for _, d := range w.Domains {
		for _, name := range d.Pools {
			p := pi.byName[name]
			if len(d.Problems) > 0 || p == nil {
				continue
			}
			add(p, d.Services)
			for _, s := range d.Subnets {
				p.subnets = append(p.subnets, s.Prefix)
			}
		}
	}
	for _, a := range w.Advertisements {
		// A gateway is the next hop only for an address that an L2Domain announces, too.
		if a.ByGateway || world.Fatal(a.Findings) {
			continue
		}
		for _, p := range pi.pools {
			if a.EveryPool || slices.Contains(a.Pools, p.Name) {
				add(p, a.Services)
				p.anySubnet = true
			}
		}
	}
}

// inOrderFor returns pools in the order in which a Service tries them: by priority, and of those with the same one the
// pools first of which something announces its address. No Service should go to the others by itself.
func inOrderFor(s *world.Service, pools []*pool) []*pool {
	rank := make(map[*pool]int, len(pools))
	for _, p := range pools {
		if !p.announcesAll && (len(p.announces) == 0 || !world.Selects(p.announces, s.Labels)) {
			rank[p] = 1
		}
	}
	return slices.SortedFunc(slices.Values(pools), func(x, y *pool) int {
		return cmp.Or(cmp.Compare(x.priority(), y.priority()), cmp.Compare(rank[x], rank[y]), cmp.Compare(x.Name, y.Name))
	})
}

// admits reports whether the pool serves the Service.
func (p *pool) admits(s *world.Service) bool {
	return p.Admission == nil || p.Admission.AdmitsNamespace(s.Key.Namespace) && p.Admission.AdmitsLabels(s.Labels)
}

// admissionError returns why the pool does not serve the Service, or an empty string if it does.
func (p *pool) admissionError(s *world.Service) string {
	switch {
	case p.admits(s):
		return ""
	case !p.Admission.AdmitsNamespace(s.Key.Namespace):
		return fmt.Sprintf("pool %q does not serve namespace %q (spec.serviceAllocation.namespaces, namespaceSelectors)",
			p.Name, s.Key.Namespace)
	}
	return fmt.Sprintf("pool %q serves no Service with metadata.labels %s (spec.serviceAllocation.serviceSelectors)",
		p.Name, labelsText(s.Labels))
}

// maxLabels is the maximum number of labels in a message. A Service may have a megabyte of labels, and a message for
// each of its addresses.
const maxLabels = 10

func labelsText(labels map[string]string) string {
	if len(labels) > maxLabels {
		return fmt.Sprintf("(%d labels)", len(labels))
	}
	return fmt.Sprint(labels)
}
