// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"testing"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// What happens with each write, our own among them, must not have thousands of rows looked at.
func TestEverydayChangesAreNoSuspects(t *testing.T) {
	shard := map[string]string{rows.KeyController: rows.Controller, rows.KeyOwnerType: rows.OwnerShard, rows.KeyEpoch: "1"}
	later := map[string]string{rows.KeyController: rows.Controller, rows.KeyOwnerType: rows.OwnerShard, rows.KeyEpoch: "2"}
	for name, test := range map[string]struct {
		before, after   model.Model
		ground, footing bool
	}{
		"a round of northd": {before: &nbdb.NBGlobal{Options: map[string]string{"a": "b"}}, after: &nbdb.NBGlobal{Options: map[string]string{"a": "b"}}},
		"a global option":   {before: &nbdb.NBGlobal{}, after: &nbdb.NBGlobal{Options: map[string]string{"bfd-mult": "9"}}, ground: true},
		"a load balancer more": {before: &nbdb.LogicalRouter{ExternalIDs: shard},
			after: &nbdb.LogicalRouter{ExternalIDs: later, LoadBalancer: []string{"1"}}},
		"a router's options": {before: &nbdb.LogicalRouter{ExternalIDs: shard},
			after: &nbdb.LogicalRouter{ExternalIDs: shard, Options: map[string]string{"a": "b"}}, ground: true},
		"a node's subnet": {before: &nbdb.LogicalRouterPort{Name: rows.PodPortPrefix + "n1"},
			after: &nbdb.LogicalRouterPort{Name: rows.PodPortPrefix + "n1", Networks: []string{"10.244.1.1/24"}}, ground: true, footing: true},
		"a port of others": {before: &nbdb.LogicalRouterPort{Name: "other"}, after: &nbdb.LogicalRouterPort{Name: "other", MAC: "0a:00:00:00:00:01"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newDrift(&Dataplane{changed: func(What) {}})
			f.OnUpdate("", test.before, test.after)
			if f.suspects.ground != test.ground || f.suspects.footing != test.footing {
				t.Errorf("ground %t, footing %t; want %t, %t", f.suspects.ground, f.suspects.footing, test.ground, test.footing)
			}
		})
	}
}
