// SPDX-License-Identifier: Apache-2.0

package sdn_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// crowd are the plans of a tenant with more addresses than a node can hold, all in one shard, and that of another
// tenant, whose name comes last.
func crowd(shard world.ShardID, namespace, name string) (map[world.Key]*plan.Service, world.Key, netip.Addr) {
	plans := map[world.Key]*plan.Service{}
	a := netip.MustParseAddr("fd00:1234:5678:9abc:def0:1234:5678:1000")
	for i := range sdn.MaxVIPs + 1 {
		key := world.Key{Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, i)}
		plans[key] = &plan.Service{Key: key, VIPs: []plan.VIP{{Addr: a, Shard: shard}}}
		a = a.Next()
	}
	other := world.Key{Namespace: "z", Name: "web"}
	plans[other] = &plan.Service{Key: other, VIPs: []plan.VIP{{Addr: a, Shard: shard}}}
	return plans, other, a
}

func topologyOf(shard world.ShardID, node string) *plan.Topology {
	return &plan.Topology{Domains: []plan.Domain{{Name: shard.Domain, Shards: []plan.Shard{{ID: shard,
		Gateways: []plan.Gateway{{Node: node, Interface: "eth0"}}}}}}}
}

func TestTenantWithManyAddressesTakesNoneOfOthers(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	plans, other, a := crowd(shard, "a", "s")
	kept := world.Held{Addr: a, Service: other, Shard: shard, Interface: "eth0", Generation: 1}
	held, elsewhere := sdn.Table{}, sdn.Table{}
	held.Add("n1", kept)
	elsewhere.Add("n2", kept)
	without := map[world.Key]*plan.Service{}
	for key, p := range plans {
		if key != other {
			without[key] = p
		}
	}
	for _, c := range []struct {
		name  string
		plans map[world.Key]*plan.Service
		have  sdn.Table
	}{{"the node holds it", plans, held}, {"another node holds it", plans, elsewhere}, {"it is new", plans, nil},
		{"its plan is not known yet", without, held}} {
		w := sdn.Want(topologyOf(shard, "n1"), c.plans, c.have, func(world.Key) bool { return true })
		if !w.Table.Has("n1", a) || w.Failed[other] != "" {
			t.Errorf("%s: the other tenant's address is not assigned: %q", c.name, w.Failed[other])
		}
		if len(w.Failed) == 0 || len(w.Table["n1"]) != sdn.MaxVIPs {
			t.Errorf("%s: the node holds %d addresses, and %d Services fail", c.name, len(w.Table["n1"]), len(w.Failed))
		}
	}
}

// An annotation that the API server or the agent refuses would keep all later changes from the node.
func TestAnnotationsAreAccepted(t *testing.T) {
	shard := world.ShardID{Domain: strings.Repeat("d", 63)}
	plans, _, _ := crowd(shard, strings.Repeat("n", 63), strings.Repeat("s", 58))
	w := sdn.Want(topologyOf(shard, "n1"), plans, nil, func(world.Key) bool { return true })
	held, err := sdn.Parse(sdn.Format(w.Table.Of("n1")))
	if err != nil || len(held) != len(w.Table["n1"]) || len(held) < sdn.MaxVIPs/2 {
		t.Errorf("%d of %d addresses are read: %v", len(held), len(w.Table["n1"]), err)
	}
}
