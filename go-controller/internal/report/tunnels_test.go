// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Endpoints on a node whose tunnels are down are reached from that node only, and from there no others are. Neither
// moves the shard. A status that was computed before does not hide it.
func TestTunnelsDownAreReported(t *testing.T) {
	t.Parallel()
	both := worldtest.Service(web, 1) // on n1
	both.Slices[0].Endpoints = append(both.Slices[0].Endpoints,
		world.Endpoint{Addr: netip.MustParseAddr("10.244.1.9"), Ready: true, Serving: true}) // on n2
	one := worldtest.Service(web, 1)
	var m decide.State
	var cache Cache
	for _, c := range []struct {
		name           string
		service        *world.Service
		gateway, cut   string
		status         metav1.ConditionStatus
		reason, counts string
		domain         string
	}{
		{"all up", both, "n3", "", metav1.ConditionTrue, v1alpha1.ReasonAnnounced, "", v1alpha1.ReasonReady},
		{"a node with one of two endpoints", both, "n3", "n1", metav1.ConditionTrue, v1alpha1.ReasonPartlyUsable,
			"1 of 2 endpoints fail, because OVN does not reach node n1", v1alpha1.ReasonPartlyUsable},
		{"the node is the gateway", both, "n1", "n1", metav1.ConditionTrue, v1alpha1.ReasonPartlyUsable,
			"1 of 2 endpoints fail, because OVN does not reach node n1", v1alpha1.ReasonPartlyUsable},
		{"a gateway without endpoints", both, "n3", "n3", metav1.ConditionFalse, v1alpha1.ReasonNoEndpoints,
			"2 of 2 endpoints fail, because OVN does not reach node n3", v1alpha1.ReasonPartlyUsable},
		{"a node without endpoints", one, "n3", "n2", metav1.ConditionTrue, v1alpha1.ReasonAnnounced, "",
			v1alpha1.ReasonPartlyUsable},
		{"the node with the only endpoint", one, "n3", "n1", metav1.ConditionFalse, v1alpha1.ReasonNoEndpoints,
			"1 of 1 endpoint fail, because OVN does not reach node n1", v1alpha1.ReasonPartlyUsable},
		{"the only endpoint is on the gateway", one, "n1", "n1", metav1.ConditionTrue, v1alpha1.ReasonAnnounced, "",
			v1alpha1.ReasonPartlyUsable},
		{"all up again", one, "n1", "", metav1.ConditionTrue, v1alpha1.ReasonAnnounced, "", v1alpha1.ReasonReady},
	} {
		w := worldtest.Small(5, c.service)
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: c.gateway}}
		for _, n := range w.Nodes {
			if n.Tunnels = (&world.Tunnels{}); n.Name == c.cut {
				n.Tunnels.AllDown = 2
			}
		}
		d := m.Decide(w)
		v := NewBuilder(d, Observed{Synced: true, Configured: true,
			Programmed: map[world.Key]loop.Result{web: {Key: web, Plan: d.Plans[web]}}})
		got := v.Services(&cache)[web].Announced
		if got == nil || got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.counts) ||
			strings.Contains(got.Message, "tunnels") != (c.counts != "") {
			t.Errorf("%s: %+v, want %s %s %q", c.name, got, c.status, c.reason, c.counts)
		}
		ready := v.domainReady(d.Layout.Domains[0])
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != c.domain ||
			strings.Contains(ready.Message, "OVN does not reach "+c.cut) != (c.cut != "") {
			t.Errorf("%s: L2Domain %+v, want %s", c.name, ready, c.domain)
		}
		if order := d.Layout.Domains[0].Shards[0].Gateways; len(order) != 3 {
			t.Errorf("%s: gateways %v", c.name, order)
		}
	}
}
