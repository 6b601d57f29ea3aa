// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// many returns a Service with the given number of addresses, alternating between two shards. It listens on two ports
// of each address except every third one.
func many(addresses int) *plan.Service {
	p := &plan.Service{Key: world.Key{Namespace: "shop", Name: "web"}}
	addr := netip.MustParseAddr("10.50.1.1")
	ready := plan.Backend{Addr: netip.MustParseAddrPort("10.244.1.4:8080"), Node: "n1"}
	leaves := plan.Backend{Addr: netip.MustParseAddrPort("10.244.2.3:8080"), Node: "n2"}
	for i := range addresses {
		p.VIPs = append(p.VIPs, plan.VIP{Addr: addr, Shard: world.ShardID{Domain: "lan", Index: i % 2}})
		if i%3 != 2 {
			p.Listeners = append(p.Listeners,
				plan.Listener{
					VIP: addr, Protocol: world.TCP, Port: 80,
					Backends: []plan.Backend{ready}, Draining: []plan.Backend{leaves},
				},
				plan.Listener{VIP: addr, Protocol: world.UDP, Port: 53, Draining: []plan.Backend{ready}})
		}
		addr = addr.Next()
	}
	return p
}

// builderOf returns a Builder for two shards.
func builderOf(t testing.TB) *rows.Builder {
	t.Helper()
	f := &plan.Topology{
		Cluster: world.Cluster{ID: "3f9a", ClusterSubnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}},
		Domains: []plan.Domain{{Name: "lan", PhysicalNetwork: "physnet"}},
	}
	for i := range 2 {
		f.Domains[0].Shards = append(f.Domains[0].Shards, plan.Shard{ID: world.ShardID{Domain: "lan", Index: i},
			Anchors: []netip.Prefix{netip.MustParsePrefix("10.50.0.50/16")}})
	}
	g, err := rows.NewBuilder(f, rows.Facts{Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16")}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// onlyAt returns a plan reduced to one of its addresses.
func onlyAt(p *plan.Service, v plan.VIP) *plan.Service {
	one := &plan.Service{Key: p.Key, VIPs: []plan.VIP{v}}
	for _, l := range p.Listeners {
		if l.VIP == v.Addr {
			one.Listeners = append(one.Listeners, l)
		}
	}
	return one
}

// A Service with many addresses has the same rows and backends as its addresses have individually.
func TestManyAddressesAreIndependent(t *testing.T) {
	type use struct {
		Node   string
		Behind rows.ShardBackend
	}
	g, p := builderOf(t), many(50)
	of := func(p *plan.Service) (balancers []rows.Row, uses []use) {
		t.Helper()
		balancers, err := g.Service(p, func(string) map[string]string { return nil })
		if err != nil {
			t.Fatal(err)
		}
		rows.ForEachBackend(p, func(node string, b rows.ShardBackend) { uses = append(uses, use{node, b}) })
		return balancers, uses
	}
	var wantRows []rows.Row
	var wantUses []use
	for _, v := range p.VIPs {
		balancers, uses := of(onlyAt(p, v))
		wantRows, wantUses = append(wantRows, balancers...), append(wantUses, uses...)
	}
	balancers, uses := of(p)
	if diff := cmp.Diff(wantRows, balancers); diff != "" {
		t.Errorf("rows (-one by one +together):\n%s", diff)
	}
	if diff := cmp.Diff(wantUses, uses, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("backends (-one by one +together):\n%s", diff)
	}
	if len(balancers) != 34*4 || len(uses) != 34*3 {
		t.Errorf("%d load balancers and %d backends", len(balancers), len(uses))
	}
}
