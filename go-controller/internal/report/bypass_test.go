// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// With policy Local, OVN-Kubernetes sends requests that arrive on br-ex of a node to the node's own endpoint on the
// host network. They have the MAC address of the shard, and the node drops them.
func TestHostEndpointOfGatewayWithLocalPolicyIsReported(t *testing.T) {
	onOwnBridge := func(s *world.Service) *world.Snapshot { return worldtest.Small(5, s) }
	for name, c := range map[string]struct {
		local   bool
		host    string // the node of the endpoint on the host network
		segment func(*world.Service) *world.Snapshot
		lost    bool
	}{
		"Local, on the active gateway":             {true, "n1", onBrExWithPorts, true},
		"Local, on another gateway":                {true, "n2", onBrExWithPorts, false},
		"Cluster, on the active gateway":           {false, "n1", onBrExWithPorts, false},
		"Local, a segment with its own bridge":     {true, "n1", onOwnBridge, false},
		"Local, no endpoint on any node's network": {true, "", onBrExWithPorts, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := worldtest.Service(web, 1)
			s.LocalPolicy = c.local
			w := c.segment(s)
			for i, n := range w.Nodes {
				own := netip.AddrFrom4([4]byte{172, 18, 0, byte(11 + i)})
				n.Addrs, n.Hosts = []netip.Addr{own}, []world.Host{{Addr: own}}
				if n.Name == c.host {
					s.Slices[0].Endpoints = append(s.Slices[0].Endpoints, world.Endpoint{Addr: own, Node: n.Name, Ready: true,
						Serving: true})
				}
			}
			var m decide.State
			d := m.Decide(w)
			v := NewBuilder(d, programmed(d))
			for _, shard := range d.Layout.Domains[0].Shards {
				v.active[shard.ID] = "n1"
			}
			var last Cache
			got := v.Services(&last)[web].Announced
			if !c.lost {
				if got.Status != metav1.ConditionTrue {
					t.Errorf("got %v, want True", got)
				}
				return
			}
			if got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonUnsupported ||
				!strings.Contains(got.Message, "spec.externalTrafficPolicy") || !strings.Contains(got.Message, "172.18.0.11") {
				t.Errorf("got %v, want False %s", got, v1alpha1.ReasonUnsupported)
			}
		})
	}
}

// onBrExWithPorts returns a snapshot whose domain is on br-ex, where the guards of all nodes have reported OVN's port.
func onBrExWithPorts(s *world.Service) *world.Snapshot {
	w := worldtest.OnBrEx(s)
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	return w
}
