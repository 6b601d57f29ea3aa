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
)

// Announced says why replies to connections that pods open from the address do not arrive, and nothing where they do.
func TestEgressIsReportedWhereItCannotWork(t *testing.T) {
	api := world.Key{Namespace: "shop", Name: "api"}
	for name, test := range map[string]struct {
		change func(w *world.Snapshot)
		want   string
	}{
		"it works": {func(*world.Snapshot) {}, ""},
		"none":     {func(w *world.Snapshot) { w.EgressHosts = nil }, ""},
		"another Service": {func(w *world.Snapshot) {
			w.EgressHosts = map[world.Key]string{{Namespace: "shop", Name: "other"}: "n9"}
		}, ""},
		"no such node": {func(w *world.Snapshot) { w.EgressHosts[web] = "n9" }, "on node n9 "},
		"no MAC address": {func(w *world.Snapshot) { w.Nodes[1].GatewayMAC = "" },
			"has no MAC address of its own: limit spec.nodeSelector"},
		"the MAC address of a shard": {func(w *world.Snapshot) {
			w.Nodes[1].GatewayMAC = world.ShardID{Domain: "lan"}.SegmentMAC(w.Cluster.ID)
		}, "has no MAC address of its own: limit spec.nodeSelector"},
		"off the segment": {func(w *world.Snapshot) {
			w.Nodes[1].External = []netip.Addr{netip.MustParseAddr("172.18.0.12")}
		}, "is in the subnet of L2Domain lan that contains 10.50.0.100: limit spec.nodeSelector"},
		"another node for the same address": {func(w *world.Snapshot) {
			older := worldtest.Service(api, 0)
			for _, s := range []*world.Service{older, w.Services[0]} {
				s.SharingKey, s.Requested = "shop", []netip.Addr{netip.MustParseAddr("10.50.0.100")}
			}
			older.Ports[0].Port = 81
			w.Services = append(w.Services, older)
			w.EgressHosts[api] = "n3"
		}, "they go to node n3, that of the EgressService of shop/api, which has 10.50.0.100 as well: give both"},
	} {
		w := worldtest.Small(5, worldtest.Service(web, 1))
		for i, n := range w.Nodes {
			n.External = []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 0, byte(11 + i)})}
			n.GatewayMAC = "02:42:0a:32:00:0" + string(rune('b'+i))
		}
		w.EgressHosts = map[world.Key]string{web: "n2"}
		test.change(w)
		var m decide.State
		got := statusOf(&m, w).Announced
		if got.Status != metav1.ConditionTrue || strings.Contains(got.Message, "EgressService") != (test.want != "") ||
			!strings.Contains(got.Message, test.want) {
			t.Errorf("%s: %v, want %q", name, got, test.want)
		}
	}
}
