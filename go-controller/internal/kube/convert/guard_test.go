// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A node may report as many addresses as its Lease has space for. They are read for each decision.
func TestManyAddressesOfAnAgentAreNotCopiedForEach(t *testing.T) {
	var r convert.Report
	addr, interfaces := netip.MustParseAddr("10.0.0.0"), map[string][]netip.Prefix{}
	for range 1000 {
		interfaces["eth0"], addr = append(interfaces["eth0"], netip.PrefixFrom(addr, 24)), addr.Next()
	}
	r.Agent = &convert.Agent{Interfaces: interfaces}
	n := &world.Node{Name: "n1", Kernel: &world.Kernel{}}
	if got := testing.AllocsPerRun(1, func() { convert.WithReport(n, r) }); got > 100 {
		t.Errorf("%.0f allocations", got)
	}
	if is := convert.WithReport(n, r); len(is.Addrs) != 1000 || len(is.Links) != 1000 || len(n.Addrs)+len(n.Links) > 0 {
		t.Errorf("%d addresses and %d links", len(is.Addrs), len(is.Links))
	}
}
