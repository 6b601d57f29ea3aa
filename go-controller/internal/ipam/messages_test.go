// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"fmt"
	"net/netip"
	"testing"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A tenant chooses how many labels and addresses a Service has. Messages that repeat the labels for each address would
// take gigabytes.
func TestMessagesAreBounded(t *testing.T) {
	s := &world.Service{Key: world.Key{Namespace: "shop", Name: "wide"}, Families: []world.Family{world.IPv4},
		Labels: map[string]string{}}
	for i, a := 0, netip.MustParseAddr("10.0.0.1"); i < 200; i, a = i+1, a.Next() {
		s.Labels[fmt.Sprint("label-", i)] = "value"
		s.ExternalIPs = append(s.ExternalIPs, a)
	}
	for name, admission := range map[string]*world.Admission{
		"not selected": {AnyNamespace: true, Services: []world.Selector{{{Key: "tier", Values: []string{"gold"}}}}},
		"not admitted": {Namespaces: []string{"bank"}},
	} {
		w := &world.Snapshot{Services: []*world.Service{s}, Pools: []*world.Pool{{Name: "lan", ExternalIPs: true,
			Ranges: []netipx.IPRange{netipx.MustParseIPRange("10.0.0.0-10.0.255.255")}, Admission: admission}}}
		o := ipam.Allocate(w, func(string, netip.Addr) (world.ShardID, bool) { return world.ShardID{}, false }).
			Services[s.Key]
		if len(o.Message) > 5000 {
			t.Errorf("%s: a message of %d bytes", name, len(o.Message))
		}
	}
}

// A Service that lacks both families for one reason says it once.
func TestEqualMessagesAreOne(t *testing.T) {
	s := &world.Service{Key: world.Key{Namespace: "shop", Name: "web"}, Families: []world.Family{world.IPv4, world.IPv6}}
	w := &world.Snapshot{Services: []*world.Service{s}, Leaving: map[netip.Addr]world.Key{
		netip.MustParseAddr("10.0.0.1"): {Namespace: "shop", Name: "left"}}}
	w.Pools = []*world.Pool{{Name: "lan", AutoAssign: true, Quota: 1, Ranges: []netipx.IPRange{
		netipx.MustParseIPRange("10.0.0.1-10.0.0.9"), netipx.MustParseIPRange("fd00::1-fd00::9")}}}
	got := ipam.Allocate(w, func(string, netip.Addr) (world.ShardID, bool) { return world.ShardID{}, false }).
		Services[s.Key].Message
	if want := `pool "lan": namespace "shop" has 1 address, and its quota is 1 (spec.quotaPerNamespace)`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// The remarks about addresses of spec.externalIPs that a Service keeps, although its pool does not admit it any more,
// contain all of its labels. Each pass makes a limited number of them.
func TestRemarksAboutHeldAddressesAreBounded(t *testing.T) {
	s := &world.Service{Key: world.Key{Namespace: "shop", Name: "wide"}, Families: []world.Family{world.IPv4},
		Labels: map[string]string{}}
	for i := range 10 {
		s.Labels[fmt.Sprint("label-", i)] = "value"
	}
	for i, a := 0, netip.MustParseAddr("10.0.0.1"); i < 2000; i, a = i+1, a.Next() {
		s.ExternalIPs = append(s.ExternalIPs, a)
	}
	s.HeldExternalIPs = s.ExternalIPs
	w := &world.Snapshot{Services: []*world.Service{s}, Pools: []*world.Pool{{Name: "lan", ExternalIPs: true,
		Ranges: []netipx.IPRange{netipx.MustParseIPRange("10.0.0.0-10.0.255.255")}}}}
	var o ipam.Outcome
	allocate := func() {
		o = ipam.Allocate(w, func(string, netip.Addr) (world.ShardID, bool) { return world.ShardID{}, false }).
			Services[s.Key]
	}
	admitted := testing.AllocsPerRun(1, allocate)
	w.Pools[0].Admission = &world.Admission{AnyNamespace: true,
		Services: []world.Selector{{{Key: "tier", Values: []string{"gold"}}}}}
	if got := testing.AllocsPerRun(1, allocate); got > admitted+10_000 {
		t.Errorf("%v allocations, and %v without remarks", got, admitted)
	}
	if len(o.HeldExternal) != 2000 || len(o.External) != 2000 || len(o.Message) < 4096 {
		t.Errorf("%d held, %d served, a message of %d bytes", len(o.HeldExternal), len(o.External), len(o.Message))
	}
}
