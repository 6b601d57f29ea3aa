// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"net/netip"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

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

// A node decides how long its report is valid, within limits: a lost node must not seem to report.
func TestReportsExpire(t *testing.T) {
	for seconds, want := range map[int32]time.Duration{
		-1: 40 * time.Second, 0: 40 * time.Second, 41: 41 * time.Second, 900: 15 * time.Minute, 2147483647: 15 * time.Minute,
	} {
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds}}
		if got := convert.ReportTime(lease); got != want {
			t.Errorf("%d s: %v, want %v", seconds, got, want)
		}
	}
}
