// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A fabric in which a node has come within reach, or by another address, is another one.
func TestFabricsDifferByHosts(t *testing.T) {
	fabric := func(hosts ...string) *plan.Fabric {
		n := plan.Node{Name: "n1", Chassis: "c1"}
		for _, masquerade := range hosts {
			n.Hosts = append(n.Hosts, world.Host{Addr: netip.MustParseAddr("172.18.0.11"), Masquerade: netip.MustParseAddr(masquerade)})
		}
		return &plan.Fabric{Nodes: []plan.Node{n}}
	}
	none, one, other := fabric(), fabric("169.254.169.3"), fabric("169.254.0.3")
	if !equalFabrics(one, fabric("169.254.169.3")) || !equalFabrics(none, fabric()) {
		t.Error("equal fabrics differ")
	}
	if equalFabrics(none, one) || equalFabrics(one, other) {
		t.Error("other hosts make no difference")
	}
}
