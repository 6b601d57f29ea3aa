// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
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

// An address of a node that has no subnet, such as one of keepalived, is not assigned to a Service. It attaches the
// node to no segment, and says nothing about the length of a subnet's prefix.
func TestAddressesOfAnAgentWithoutASubnet(t *testing.T) {
	r := convert.ReadReport(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.AnnotationAgent: `{"health":"192.0.2.1:9484","interfaces":{"eth1":["10.50.0.11/24"]},
			"singles":["10.50.0.61","fd00:50::61","fe80::1%x",""]}`}}})
	is := convert.WithReport(&world.Node{Name: "n1", Kernel: &world.Kernel{}}, r)
	want := []netip.Addr{netip.MustParseAddr("10.50.0.11"), netip.MustParseAddr("10.50.0.61"),
		netip.MustParseAddr("fd00:50::61")}
	if !slices.Equal(is.Addrs, want) || len(is.Links) != 1 || len(is.Kernel.Interfaces["eth1"]) != 1 {
		t.Errorf("addresses %v, want %v; links %v, interfaces %v", is.Addrs, want, is.Links, is.Kernel.Interfaces)
	}
	before := *r.Agent
	if r.Agent.Singles = r.Agent.Singles[:1]; r.Agent.Equal(&before) {
		t.Error("another report is the same")
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
