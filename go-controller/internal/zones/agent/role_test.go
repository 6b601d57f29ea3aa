// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A node that becomes a gateway needs the load balancers of Services whose plans did not change. Those with a backend
// that has a node's own address depend on the pod subnets of that node. A node that joins changes no Service.
func TestRolesChangeWithGatewaysAndSubnetsOfBackends(t *testing.T) {
	subnets := func(name string, cidrs ...string) func(*published) {
		return func(p *published) {
			n := *p.nodes[name]
			n.PodSubnets = nil
			for _, cidr := range cidrs {
				n.PodSubnets = append(n.PodSubnets, netip.MustParsePrefix(cidr))
			}
			p.nodes[name] = &n
		}
	}
	onHost := func(node string) *plan.Service {
		return &plan.Service{VIPs: []plan.VIP{{Shard: world.ShardID{Domain: "lan"}}},
			Listeners: []plan.Listener{{Backends: []plan.Backend{{Node: node, HostNetwork: true}}},
				{Draining: []plan.Backend{{Node: "n4", HostNetwork: true}, {Node: "n1"}}}}}
	}
	plans := func(nodes ...string) map[world.Key]*plan.Service {
		out := map[world.Key]*plan.Service{}
		for _, node := range nodes {
			out[world.Key{Name: node}] = onHost(node)
		}
		return out
	}
	in := func(plans map[world.Key]*plan.Service, change func(*published)) role {
		p := small()
		p.setNode(nil, node("n4", "n4"))
		subnets("n2", "10.244.2.0/24")(p)
		change(p)
		f, _, ok := p.desired("n1", world.Cluster{}, nil)
		if !ok {
			t.Fatal("the zone is not programmed")
		}
		return roleOf(f, plans)
	}
	gateways := func(names ...string) func(*published) {
		return func(p *published) { p.domains["lan"].Status.Shards[0].Gateways = names }
	}
	ordinal := func(p *published) { p.domains["lan"].Status.Shards[0].Ordinal = new(int32(6)) }
	joins := func(p *published) { p.setNode(nil, node("n3", "n3")) }
	late := func(p *published) {
		p.setNode(nil, node("n5", "n5"))
		subnets("n5", "10.244.5.0/24")(p)
	}
	second := func(p *published) { p.domains["lan"].Status.Shards[1].Ordinal = new(int32(7)) }
	was := in(plans("n2"), func(*published) {})
	was.add(onHost("n5"), func(string) []netip.Prefix { return nil }) // changed alone; the node is not known yet
	for name, c := range map[string]struct {
		plans    map[world.Key]*plan.Service
		change   func(*published)
		outdated []string
	}{
		"nothing":                              {plans("n2"), func(*published) {}, nil},
		"another order":                        {plans("n2"), gateways("n1", "n2"), nil},
		"without the node":                     {plans("n2", "n3"), gateways("n2"), []string{"n2", "n3"}},
		"another ordinal":                      {plans("n2", "n3"), ordinal, []string{"n2", "n3"}},
		"another shard comes":                  {plans("n2", "n3"), second, nil},
		"a node joins":                         {plans("n2"), joins, nil},
		"a node joins, with a backend":         {plans("n2", "n3"), joins, nil},
		"other subnets":                        {plans("n2", "n3"), subnets("n2", "10.244.9.0/24"), []string{"n2"}},
		"no subnets any more":                  {plans("n2", "n3"), subnets("n2"), []string{"n2"}},
		"other subnets, no backend any more":   {plans("n3"), subnets("n2", "10.244.9.0/24"), nil},
		"subnets of a node with pods only":     {plans("n2"), subnets("n1", "10.244.9.0/24"), nil},
		"subnets of a node that drains":        {plans("n2"), subnets("n4", "10.244.9.0/24"), []string{"n2"}},
		"a node that a backend has waited for": {plans("n2", "n5"), late, []string{"n5"}},
	} {
		var got []string
		for key := range in(c.plans, c.change).outdated(was, c.plans) {
			got = append(got, key.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.outdated) {
			t.Errorf("%s: rows are outdated of %v, want %v", name, got, c.outdated)
		}
	}
}

// A tenant can have a shard come and go: with a Service that is alone in it.
func TestShardsThatComeAndGoConcernTheirOwnPlansOnly(t *testing.T) {
	in := func(shards map[int32]int32) *plan.Topology {
		p := small()
		status := &p.domains["lan"].Status
		status.Shards = nil
		for index, ordinal := range shards {
			status.Shards = append(status.Shards, v1alpha1.ShardStatus{Index: index, Ordinal: new(ordinal),
				Gateways: []string{"n2"}, Anchors: []string{"10.50.0.100"}})
		}
		f, _, ok := p.desired("n1", world.Cluster{}, nil)
		if !ok {
			t.Fatal("the zone is not programmed")
		}
		return f
	}
	plans := map[world.Key]*plan.Service{}
	for name, shards := range map[string][]int{"first": {0}, "fifth": {5}, "both": {0, 5}, "none": {}} {
		s := &plan.Service{}
		for _, index := range shards {
			s.VIPs = append(s.VIPs, plan.VIP{Shard: world.ShardID{Domain: "lan", Index: index}})
		}
		plans[world.Key{Name: name}] = s
	}
	first, both := map[int32]int32{0: 0}, map[int32]int32{0: 0, 5: 1}
	for name, c := range map[string]struct {
		was, now map[int32]int32
		outdated []string
	}{
		"nothing changes":      {both, both, nil},
		"the fifth comes":      {first, both, []string{"both", "fifth"}},
		"the fifth goes":       {both, first, []string{"both", "fifth"}},
		"it comes, numbered 0": {first, map[int32]int32{0: 0, 5: 0}, []string{"both", "fifth"}},
		"another number":       {both, map[int32]int32{0: 0, 5: 2}, []string{"both", "fifth"}},
		"all shards are other": {both, map[int32]int32{0: 3, 5: 2}, []string{"both", "fifth", "first"}},
		"the first one":        {map[int32]int32{}, first, []string{"both", "first"}},
	} {
		var got []string
		for key := range roleOf(in(c.now), plans).outdated(roleOf(in(c.was), plans), plans) {
			got = append(got, key.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.outdated) {
			t.Errorf("%s: rows are outdated of %v, want %v", name, got, c.outdated)
		}
	}
}
