// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"math"

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

// announcedFirst returns 0 for the pools that an object without errors announces, and 1 for the others, to which no
// Service should go by itself. What OVN, nodes and routers do at the moment does not matter: the order of the pools
// changes only when an administrator edits something.
func announcedFirst(w *world.Snapshot, pools []*pool) map[*pool]int {
	announced, every := map[string]bool{}, false
	for _, d := range w.Domains {
		for _, name := range d.Pools {
			announced[name] = announced[name] || len(d.Problems) == 0
		}
	}
	for _, a := range w.Advertisements {
		// A gateway is the next hop only for an address that an L2Domain announces, too.
		usable := !a.ByGateway && !world.Fatal(a.Findings)
		every = every || a.EveryPool && usable
		for _, name := range a.Pools {
			announced[name] = announced[name] || usable
		}
	}
	rank := make(map[*pool]int, len(pools))
	for _, p := range pools {
		if !every && !announced[p.Name] {
			rank[p] = 1
		}
	}
	return rank
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
