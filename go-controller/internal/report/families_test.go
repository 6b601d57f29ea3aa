// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
	"strings"
	"testing"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A Service that serves clients of one family is announced, and the message names the family that it does not serve.
func TestFamilyWithoutBackendIsReported(t *testing.T) {
	const remark = "; the Service has no usable IPv6 endpoint, so connections over IPv6 are rejected"
	for name, test := range map[string]struct {
		dual, ready4, ready6 bool
		status               metav1.ConditionStatus
		reason               string
		remark               bool
	}{
		"both":                   {true, true, true, metav1.ConditionTrue, v1alpha1.ReasonAnnounced, false},
		"one of two":             {true, true, false, metav1.ConditionTrue, v1alpha1.ReasonPartlyUsable, true},
		"none of two":            {true, false, false, metav1.ConditionFalse, v1alpha1.ReasonNoEndpoints, false},
		"no address of a family": {false, true, false, metav1.ConditionTrue, v1alpha1.ReasonAnnounced, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := worldtest.Service(web, 1)
			s.Slices[0].Endpoints[0].Ready = test.ready4
			s.Slices = append(s.Slices, &world.Slice{Family: world.IPv6, Ports: s.Ports,
				Endpoints: []world.Endpoint{{Addr: netip.MustParseAddr("fd00:10:244::5"), Ready: test.ready6}}})
			w := worldtest.Small(5, s)
			if test.dual {
				s.Families, s.FamilyPolicy = []world.Family{world.IPv4, world.IPv6}, world.RequireDualStack
				w.Pools[0].Ranges = append(w.Pools[0].Ranges, netipx.MustParseIPRange("fd00:50::100-fd00:50::104"))
				w.Domains[0].Subnets = append(w.Domains[0].Subnets,
					world.Subnet{Prefix: netip.MustParsePrefix("fd00:50::/64")})
			}
			for _, n := range w.Nodes {
				n.PodSubnets = append(n.PodSubnets, netip.MustParsePrefix("fd00:10:244::/64"))
			}
			w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}
			var m decide.State
			d := m.Decide(w)
			got := NewBuilder(d, programmed(d)).Services(&Cache{})[web].Announced
			if got == nil || got.Status != test.status || got.Reason != test.reason ||
				strings.HasSuffix(got.Message, remark) != test.remark || strings.Contains(got.Message, "IPv4 endpoint") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// An address that nothing announces is the first fault. That the address of the other family is announced is said, too.
func TestAnnouncedFamilyIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		ready4 bool
		remark string
	}{
		"other family works":          {true, "; announced over IPv4"},
		"other family has no backend": {false, ""},
	} {
		s := worldtest.Service(web, 1)
		s.Slices[0].Endpoints[0].Ready = test.ready4
		s.Families, s.FamilyPolicy = []world.Family{world.IPv4, world.IPv6}, world.RequireDualStack
		w := worldtest.Small(5, s)
		w.Pools[0].Ranges = append(w.Pools[0].Ranges, netipx.MustParseIPRange("fd00:50::100-fd00:50::104"))
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}
		var m decide.State
		d := m.Decide(w)
		got := NewBuilder(d, programmed(d)).Services(&Cache{})[web].Announced
		if got == nil || got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonAddressOutsideSubnets ||
			!strings.HasPrefix(got.Message, "fd00:50::") || !strings.HasSuffix(got.Message, test.remark) ||
			strings.Contains(got.Message, "; announced") != (test.remark != "") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
