// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"
	"testing"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// Changes that occur on every write, including our own, must not cause a check of thousands of rows.
func TestOrdinaryChangesAreNotDrift(t *testing.T) {
	shard := map[string]string{rows.KeyController: rows.Controller, rows.KeyOwnerType: rows.OwnerShard}
	for name, test := range map[string]struct {
		before, after    model.Model
		topology, inputs bool
	}{
		"a round of northd": {before: &nbdb.NBGlobal{Options: map[string]string{"a": "b"}},
			after: &nbdb.NBGlobal{Options: map[string]string{"a": "b"}}},
		"a global option": {before: &nbdb.NBGlobal{}, after: &nbdb.NBGlobal{Options: map[string]string{"bfd-mult": "9"}},
			topology: true},
		"a load balancer more": {before: &nbdb.LogicalRouter{ExternalIDs: shard},
			after: &nbdb.LogicalRouter{ExternalIDs: shard, LoadBalancer: []string{"1"}}},
		"a router's options": {before: &nbdb.LogicalRouter{ExternalIDs: shard},
			after: &nbdb.LogicalRouter{ExternalIDs: shard, Options: map[string]string{"a": "b"}}, topology: true},
		"a node's subnet": {before: &nbdb.LogicalRouterPort{Name: rows.PodPortPrefix + "n1"},
			after: &nbdb.LogicalRouterPort{Name: rows.PodPortPrefix + "n1", Networks: []string{"10.244.1.1/24"}}, topology: true,
			inputs: true},
		"a port of others": {before: &nbdb.LogicalRouterPort{Name: "other"},
			after: &nbdb.LogicalRouterPort{Name: "other", MAC: "0a:00:00:00:00:01"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newDrift(&Dataplane{changed: func(EventKind) {}})
			f.OnUpdate("", test.before, test.after)
			if f.suspects.topology != test.topology || f.suspects.inputs != test.inputs {
				t.Errorf("topology %t, inputs %t; want %t, %t", f.suspects.topology, f.suspects.inputs, test.topology, test.inputs)
			}
		})
	}
}

// Changes of desired rows because OVN-Kubernetes has created rows they depend on do not count as foreign changes,
// however many nodes are added.
func TestRowsPendingNodeAreNotDrift(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	s.nbctl(t, "lrp-del", "rtoj-GR_n3")
	d, _ := dial(t, s)
	configure(t, d, topology(1))
	p := manyPorts("10.244.1.10", wideBackends) // on n3
	apply(t, d, p)
	all := pendingChecks{topology: true, inputs: true, nodes: map[string]bool{"n3": true}}
	if what, fight := d.differs(all); what != "" || fight {
		t.Errorf("before the node's router is there: %q, a fight: %t", what, fight)
	}
	s.nbctl(t, "lrp-add", "GR_n3", "rtoj-GR_n3", "0a:58:64:40:00:04", "100.64.0.4/16", "fd98::4/64")
	await.True(t, "the router of the node is wanted", func() bool {
		what, fight := d.differs(all)
		if fight {
			t.Fatalf("%s: taken for a fight", what)
		}
		return what == "router of node n3"
	})
	d.mu.Lock() // the new rows cause a check in the background, too, and plans are split while it runs
	split := len(d.desired.splitPlans)
	d.mu.Unlock()
	if split > 0 {
		t.Errorf("%d plans remain split by node after a check", split)
	}
	configure(t, d, topology(1))
	await.True(t, "nothing differs", func() bool { what, _ := d.differs(all); return what == "" })
	for _, harm := range [][]string{{"lr-del", "slbnode-n3"}, {"lr-del", "slb-lan-0"}} {
		s.nbctl(t, harm...)
		await.True(t, "a fight", func() bool { _, fight := d.differs(all); return fight })
	}
}

// manyPorts returns a Service with n backends at one address, each on its own port.
func manyPorts(pod string, n int) *plan.Service {
	p := service(1, 1, pod)
	first := p.Listeners[0].Backends[0]
	for i := range n {
		b := first
		b.Addr = netip.AddrPortFrom(first.Addr.Addr(), uint16(10_000+i)) //nolint:gosec // a few thousand
		p.Listeners[0].Backends = append(p.Listeners[0].Backends, b)
	}
	return p
}
