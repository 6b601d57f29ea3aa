// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestColumnIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxColumn+1)
	for want, values := range map[string][]string{
		"":                          nil,
		"10.0.0.0/24":               {"10.0.0.0/24"},
		"10.0.0.0/24, fd00:50::/64": {"10.0.0.0/24", "fd00:50::/64"},
		"10.50.0.100-10.50.0.199, fd00:50::100-fd00:50::1ff and 2 more": {"10.50.0.100-10.50.0.199",
			"fd00:50::100-fd00:50::1ff", "10.60.0.0/24", "10.70.0.0/24"},
		long + " and 1 more": {long, "10.0.0.0/24"},
	} {
		if got := column(values, same); got != want {
			t.Errorf("%q: %q, want %q", values, got, want)
		}
	}
}

// The text of a column follows the spec, and costs no write if it has not changed.
func TestColumnsFollowTheSpec(t *testing.T) {
	pool := &v1alpha1.IPAddressPool{}
	for _, addresses := range [][]v1alpha1.AddressRange{{"10.50.0.0/24", "fd00:50::/64"}, {"10.60.0.0/24"}} {
		pool.Spec.Addresses = addresses
		merge := Pool(nil, ipam.PoolUsage{}, carried(), nil)
		next, changed := merge(pool, time.Now())
		if want := column(addresses, same); !changed || next.Status.Addresses != want {
			t.Fatalf("changed %t: %+v, want addresses %q", changed, next, want)
		}
		pool = next
		if _, changed := merge(pool, time.Now()); changed {
			t.Error("the status changes again")
		}
	}
	ads := merges(map[string]Verdicts{"a": {}}, (*v1alpha1.BGPAdvertisement).DeepCopy,
		func(o *v1alpha1.BGPAdvertisement) *[]metav1.Condition { return &o.Status.Conditions }, setAdvertisementColumns)
	ad := &v1alpha1.BGPAdvertisement{Spec: v1alpha1.BGPAdvertisementSpec{IPAddressPools: []string{"a", "b"},
		Peers: []string{"tor"}}}
	next, changed := ads["a"](ad, time.Now())
	if !changed || next.Status.IPAddressPools != "a, b" || next.Status.Peers != "tor" || ad.Status.Peers != "" {
		t.Errorf("changed %t: %+v of %+v", changed, next.Status, ad.Status)
	}
	if _, changed := ads["a"](next, time.Now()); changed {
		t.Error("the status changes again")
	}
}
