// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The router of the cluster drops what comes from or goes to a masquerade address, on all nodes. That which the kubelet
// of one node reports can be the address of a pod of another one.
func TestNodeHidesNoClientsBehindAddressesOfOthers(t *testing.T) {
	w := worldtest.Small(5, worldtest.Service(web, 1))
	for i, masquerade := range []string{"192.0.2.3", "192.0.2.3", "10.244.0.3"} {
		w.Nodes[i].Hosts = []world.Host{{Addr: netip.AddrFrom4([4]byte{172, 18, 0, byte(11 + i)}),
			Masquerade: netip.MustParseAddr(masquerade)}}
	}
	var m State
	d := m.Decide(w)
	facts := rows.Facts{Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16")}, Nodes: map[string]rows.NodeFacts{}}
	for i, n := range w.Nodes {
		facts.Nodes[n.Name] = rows.NodeFacts{Subnets: n.PodSubnets,
			Join: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, byte(2 + i)}), 16)}}
	}
	builder, err := rows.NewBuilder(d.Topology, facts)
	if err != nil {
		t.Fatal(err)
	}
	_, shards := builder.TopologyRows()
	drops := ""
	for _, r := range slices.Concat(shards...) {
		if r.Columns["action"] == "drop" {
			drops += fmt.Sprintln(r.Columns["match"])
		}
	}
	if strings.Contains(drops, "10.244.0.3") || !strings.Contains(drops, "192.0.2.3") {
		t.Errorf("the router drops\n%s", drops)
	}
}
