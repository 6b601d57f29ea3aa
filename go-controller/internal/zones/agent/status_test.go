// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The controller writes the status of an L2Domain for administrators, too, for example when an address is allocated.
// Only what a zone uses makes every agent build its topology and compare all plans again.
func TestAgentsRebuildForWhatTheyUseOnly(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.L2Domain)
		rebuild bool
	}{
		"an address more": {func(d *v1alpha1.L2Domain) { d.Status.Shards[0].Addresses++ }, false},
		"a condition":     {func(d *v1alpha1.L2Domain) { d.Status.Conditions = nil }, false},
		"summaries": {func(d *v1alpha1.L2Domain) {
			d.Status.Subnets, d.Status.ActiveGatewaySummary, d.Status.ModeMessage, d.Status.EligibleNodes = "x", "x", "x", 9
		}, false},
		"a label": {func(d *v1alpha1.L2Domain) { d.Labels = map[string]string{"tier": "gold"} }, false},
		"a node that is not chosen": {func(d *v1alpha1.L2Domain) {
			d.Status.ExcludedNodes = []v1alpha1.ExcludedNode{{Name: "n9", Reason: "EnoughGateways"}}
		}, false},
		"a move that is over": {func(d *v1alpha1.L2Domain) {
			d.Status.Move = &v1alpha1.MoveStatus{State: v1alpha1.MoveCompleted}
		}, false},
		"a move": {func(d *v1alpha1.L2Domain) {
			d.Status.Move = &v1alpha1.MoveStatus{State: v1alpha1.MoveInProgress}
		}, true},
		"a node that drains": {func(d *v1alpha1.L2Domain) {
			d.Status.ExcludedNodes = []v1alpha1.ExcludedNode{{Name: "n1", Reason: v1alpha1.ExcludedDraining}}
		}, true},
		"another order": {func(d *v1alpha1.L2Domain) {
			d.Status.Shards[0].Gateways = []string{"n1", "n2"}
		}, true},
		"another active gateway": {func(d *v1alpha1.L2Domain) { d.Status.Shards[0].Active = "n1" }, true},
		"another anchor":         {func(d *v1alpha1.L2Domain) { d.Status.Shards[0].Anchors[0] = "10.50.0.101" }, true},
		"another ordinal":        {func(d *v1alpha1.L2Domain) { d.Status.Shards[0].Ordinal = new(int32(6)) }, true},
		"a shard more": {func(d *v1alpha1.L2Domain) {
			d.Status.Shards = append(d.Status.Shards, v1alpha1.ShardStatus{Index: 2})
		}, true},
		"the segment": {func(d *v1alpha1.L2Domain) { d.Spec.VLAN = 7 }, true},
		"the subnets": {func(d *v1alpha1.L2Domain) { d.Spec.Subnets[0].CIDR = "10.50.0.0/25" }, true},
	} {
		p := small()
		p.setPlan(nil, servicePlan("web", 4, 0))
		p.desired("n1", world.Cluster{}, nil)
		was := p.domains["lan"]
		now := was.DeepCopy()
		test.change(now)
		wakes := p.setDomain(was, now)
		p.setPlan(nil, servicePlan("web", 5, 0))
		plans, only := p.changes()
		if only == test.rebuild || wakes != test.rebuild || only && len(plans) != 1 {
			t.Errorf("%s: wakes %t, applies %d plans without building the topology %t", name, wakes, len(plans), only)
		}
		if p.domains["lan"] != now {
			t.Errorf("%s: the status of before is kept", name)
		}
	}
	p := small()
	p.desired("n1", world.Cluster{}, nil)
	p.setDomain(p.domains["lan"], nil)
	if _, only := p.changes(); only {
		t.Error("a deleted L2Domain is kept")
	}
}
