// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
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
		return &plan.Service{Listeners: []plan.Listener{{Backends: []plan.Backend{{Node: node, HostNetwork: true}}},
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
