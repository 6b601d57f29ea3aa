// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// wide returns the plan of a Service with 10,000 ports and 50 pods, each on a node of its own.
func wide() *plan.Service {
	vips := []plan.VIP{{Addr: netip.MustParseAddr("192.0.2.1"), Shard: world.ShardID{Domain: "lan"}}}
	return plan.For(worldtest.Wide(10_000, 50, 50), vips, plan.NewReachability(&world.Snapshot{}))
}

// BenchmarkWideWanted measures the cost of a wide Service without its rows: tracking its requirements per node.
func BenchmarkWideWanted(b *testing.B) {
	first, second := wide(), wide()
	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		w := newDesired()
		w.set(first.Key, first)
		w.set(second.Key, second) // an equal one
		for _, name := range names {
			if on := w.backendsOn(name); len(on) != 10_000 {
				b.Fatalf("%d backends on %s", len(on), name)
			}
		}
	}
}

// BenchmarkManyAddresses measures the cost of a Service with 10,000 addresses and ten ports each: its load balancers,
// and its requirements per node.
func BenchmarkManyAddresses(b *testing.B) {
	var vips []plan.VIP
	for addr := netip.MustParseAddr("10.50.1.1"); len(vips) < 10_000; addr = addr.Next() {
		vips = append(vips, plan.VIP{Addr: addr, Shard: world.ShardID{Domain: "lan"}})
	}
	p := plan.For(worldtest.Wide(10, 2, 2), vips, plan.NewReachability(&world.Snapshot{}))
	builder, err := rows.NewBuilder(topology(1), rows.Facts{Join: prefixes("100.64.0.1/16")})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		balancers, err := builder.Service(p, func(string) map[string]string { return nil })
		if err != nil || len(balancers) != len(vips) {
			b.Fatalf("%d load balancers (%v)", len(balancers), err)
		}
		w := newDesired()
		w.set(p.Key, p)
		if on := w.backendsOn("n0"); len(on) != 10*len(vips) {
			b.Fatalf("%d backends on a node", len(on))
		}
	}
}

// A Service that grows beyond the limit is not served in part, and other Services are not changed.
func TestServiceBeyondTheLimitIsNotServed(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	wide, other := service(1, 2, "10.244.1.10", "10.244.2.10"), service(2, 2, "10.244.2.20")
	apply(t, d, other)
	want := stripped(s.dump(t))
	apply(t, d, wide)
	beyond := *wide
	beyond.Listeners, beyond.Excess = nil, plan.Excess{Limit: plan.BackendsOfService}
	apply(t, d, &beyond)
	prune(t, d, &beyond, other)
	if vips := s.nbctl(t, "--bare", "--columns=vips", "find", "Load_Balancer",
		"external_ids:slb.k8s.ovn.org/service="+wide.Key.String()); strings.TrimSpace(vips) != "" {
		t.Errorf("served once it was too wide: %s", vips)
	}
	remove(t, d, wide)
	prune(t, d, other)
	if diff := cmp.Diff(want, stripped(s.dump(t))); diff != "" {
		t.Errorf("before it came and once it was gone:\n%s", diff)
	}
	apply(t, d, wide)
	if n := len(d.desired.nodes); n != 2 {
		t.Errorf("%d nodes have backends once it is narrow again, want 2", n)
	}
}

// Of a map with very many elements, only those that differ are written.
func TestLargeMapsAreChangedByElement(t *testing.T) {
	old, want := map[string]string{}, map[string]string{}
	for i := range maxChanges + 10 {
		old[fmt.Sprint(i)], want[fmt.Sprint(i)] = "same", "same"
	}
	old["gone"], old["changed"], want["changed"], want["new"] = "a", "b", "c", "d"
	op := mutateMap(record{table: rows.LoadBalancer, uuid: "u"}, "vips", old, want)
	if len(op.Mutations) != 2 {
		t.Fatalf("%d mutations", len(op.Mutations))
	}
	gone, _ := op.Mutations[0].Value.(ovsdb.OvsSet)
	fresh, _ := op.Mutations[1].Value.(ovsdb.OvsMap)
	if len(gone.GoSet) != 2 || !slices.Contains(gone.GoSet, any("gone")) || !slices.Contains(gone.GoSet, any("changed")) ||
		!cmp.Equal(fresh.GoMap, map[any]any{"changed": "c", "new": "d"}) {
		t.Errorf("deleted %v, inserted %v", gone.GoSet, fresh.GoMap)
	}
}

// The rows of a node with very many backends are right after a change.
func TestRowsOfAWideServiceAreRightAfterAChange(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	plans := make([]*plan.Service, 2)
	for i, pods := range []string{"10.244.1.10", "10.244.1.20"} {
		of := worldtest.Wide(maxChanges+10, 1, 1)
		of.Slices[0].Endpoints[0].Addr = netip.MustParseAddr(pods)
		of.Slices[0].Endpoints[0].Node = nodeOf(netip.MustParseAddr(pods))
		plans[i] = plan.For(of, []plan.VIP{{Addr: netip.MustParseAddr("10.50.1.1"), Shard: world.ShardID{Domain: "lan"}}},
			plan.NewReachability(&world.Snapshot{}))
	}
	apply(t, d, plans[1])
	want := stripped(s.dump(t))
	apply(t, d, plans[0])
	apply(t, d, plans[1])
	if diff := cmp.Diff(want, stripped(s.dump(t))); diff != "" {
		t.Errorf("changed and changed back: -want +got:\n%.2000s", diff)
	}
	before := s.transactions(t)
	apply(t, d, plans[1])
	if n := s.transactions(t); n != before {
		t.Errorf("applied again: %d transactions, want none", n-before)
	}
}
