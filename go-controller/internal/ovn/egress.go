// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// hasEgress reports whether pods open connections from an address of a plan, which may be nil.
func hasEgress(p *plan.Service) bool {
	return p != nil && slices.ContainsFunc(p.VIPs, func(v plan.VIP) bool { return v.EgressMAC != "" })
}

// egress returns the hosts that translate addresses. Until Prune has run, Services whose plans have not arrived yet
// keep what they have.
func (d *Dataplane) egress(v view) rows.Egress {
	had := map[string][]string{}
	if !d.pruned {
		for _, r := range v.owned(rows.SwitchPort) {
			if domain, ok := plan.DomainOfLocalnetPort(r.string("name")); ok {
				had[domain] = r.strings("addresses")
			}
		}
	}
	return rows.EgressOf(d.desired.plans(), had)
}

// markEgress records that the localnet ports may have to change because a plan is to be replaced. d.mu must be held.
func (d *Dataplane) markEgress(key world.Key, want *plan.Service) {
	if hasEgress(d.desired.plan(key)) || hasEgress(want) {
		d.egressOf[key] = true
	}
}

// localnetOps are the changes of the localnet ports.
func (d *Dataplane) localnetOps(b *batch) error {
	if d.builder == nil {
		return errNoTopology
	}
	d.builder.SetEgress(d.egress(b.view))
	return ensureAll(d.builder.LocalnetRows())(b)
}
