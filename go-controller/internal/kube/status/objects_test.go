// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// kept returns a pool as stored by the API server: encoded as JSON and decoded again.
func kept(t *testing.T, p *v1alpha1.IPAddressPool) *v1alpha1.IPAddressPool {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := &v1alpha1.IPAddressPool{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPoolStatusKeepsLeases(t *testing.T) {
	released := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	has := world.Key{Namespace: "shop", Name: "web"}
	cooling := world.Lease{Addr: netip.MustParseAddr("192.0.2.1"), Service: has, Released: released}
	used := world.Lease{Addr: netip.MustParseAddr("2001:db8::1"), Service: has}
	now := released.Add(time.Minute)
	pool := &v1alpha1.IPAddressPool{Spec: v1alpha1.IPAddressPoolSpec{ReuseDelay: &metav1.Duration{Duration: time.Hour}}}
	for _, step := range []struct {
		name    string
		use     ipam.PoolUsage
		changed bool
	}{
		{"in use", ipam.PoolUsage{Assigned4: 1, Assigned6: 1, Leases: []world.Lease{{Addr: cooling.Addr, Service: has},
			used}},
			true},
		{"one in cooldown", ipam.PoolUsage{Cooldown4: 1, Assigned6: 1, Leases: []world.Lease{cooling, used},
			NextCooldownEnd: now}, true},
		{"again", ipam.PoolUsage{Cooldown4: 1, Assigned6: 1, Leases: []world.Lease{cooling, used}, NextCooldownEnd: now},
			false},
		{"until another time", ipam.PoolUsage{Cooldown4: 1, Assigned6: 1, Leases: []world.Lease{cooling, used}}, false},
		{"another's", ipam.PoolUsage{Cooldown4: 1, Assigned6: 1, Leases: []world.Lease{cooling,
			{Addr: used.Addr, Service: world.Key{Namespace: "shop", Name: "other"}}}}, true},
		{"none", ipam.PoolUsage{Available4: 1}, true},
		{"still none", ipam.PoolUsage{Available4: 1}, false},
	} {
		got, changed := Pool(nil, step.use, carried(), nil)(pool, now)
		if changed != step.changed {
			t.Fatalf("%s: changed %t, want %t", step.name, changed, step.changed)
		}
		if !changed {
			continue
		}
		pool = kept(t, got)
		if diff := cmp.Diff(step.use.Leases, convert.Pool(pool, nil).Leases, cmpopts.EquateComparable(netip.Addr{}),
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: read back (-want +got):\n%s", step.name, diff)
		}
		if len(step.use.Leases) == 0 && pool.Status.Leases != nil {
			t.Errorf("%s: leases %v, want no field", step.name, pool.Status.Leases)
		}
	}
}

func TestExhaustedPoolReportsCooldowns(t *testing.T) {
	pool := &v1alpha1.IPAddressPool{}
	got, _ := Pool(nil, ipam.PoolUsage{Assigned4: 3, Cooldown4: 2, Cooldown6: 1}, carried(), nil)(pool, time.Now())
	ready := got.Status.Conditions[1]
	want := "all addresses are in use: 3 IPv4, 0 IPv6; in cooldown (spec.reuseDelay): 2 IPv4, 1 IPv6"
	if ready.Message != want || ready.Reason != v1alpha1.ReasonExhausted {
		t.Errorf("Ready: %s: %s; want %s", ready.Reason, ready.Message, want)
	}
}

// etcd rejects requests of more than 1.5 MiB. Besides the leases there must be room for annotations (256 KiB at most)
// and a large spec.
func TestLeaseSizeFitsEtcdLimit(t *testing.T) {
	long := strings.Repeat("x", 63)
	addr := netip.MustParseAddr("2001:db80:1000:1000:1000:1000:1000:1000")
	var use ipam.PoolUsage
	for range v1alpha1.MaxLeases + 1000 {
		addr = addr.Next()
		use.Leases = append(use.Leases, world.Lease{Addr: addr, Service: world.Key{Namespace: long, Name: long},
			Released: time.Unix(1_800_000_000, 0)})
	}
	pool, _ := Pool(nil, use, carried(), nil)(&v1alpha1.IPAddressPool{}, time.Now())
	if n := len(pool.Status.Leases); n != v1alpha1.MaxLeases {
		t.Errorf("%d leases, want the first %d", n, v1alpha1.MaxLeases)
	}
	text, err := json.Marshal(pool)
	if err != nil {
		t.Fatal(err)
	}
	if most := 3<<19 - 256<<10 - 64<<10; len(text) > most {
		t.Errorf("%d bytes, more than %d", len(text), most)
	}
	t.Logf("%d leases take %d bytes at most", len(pool.Status.Leases), len(text))
	if _, changed := Pool(nil, use, carried(), nil)(kept(t, pool), time.Now()); changed {
		t.Error("what is not listed makes the next write differ")
	}
}

// carried is the verdict that the addresses of a pool can be announced.
func carried() Verdict { return Verdict{Status: metav1.ConditionTrue} }

// A pool with addresses that no node can serve is not ready. An exhausted pool takes precedence over this, and an
// unknown verdict changes nothing.
func TestPoolReportsMissingGateway(t *testing.T) {
	not := Verdict{metav1.ConditionFalse, v1alpha1.ReasonNoGateway, "no node can"}
	pool := &v1alpha1.IPAddressPool{}
	for _, step := range []struct {
		name string
		use  ipam.PoolUsage
		way  Verdict
		want string // empty for no write
	}{
		{"nothing known", ipam.PoolUsage{Available4: 1}, Verdict{Status: metav1.ConditionUnknown}, "-"},
		{"no gateway", ipam.PoolUsage{Available4: 1}, not, v1alpha1.ReasonNoGateway},
		{"restarted", ipam.PoolUsage{Available4: 1}, Verdict{Status: metav1.ConditionUnknown}, ""},
		{"exhausted, too", ipam.PoolUsage{Assigned4: 1}, not, v1alpha1.ReasonExhausted},
		{"attached", ipam.PoolUsage{Available4: 1}, carried(), v1alpha1.ReasonReady},
	} {
		got, changed := Pool(nil, step.use, step.way, nil)(pool, time.Now())
		if changed != (step.want != "") {
			t.Fatalf("%s: changed %t", step.name, changed)
		}
		if !changed {
			continue
		}
		pool = kept(t, got)
		reason := "-"
		if c := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			reason = c.Reason
		}
		if reason != step.want {
			t.Errorf("%s: %s, want %s", step.name, reason, step.want)
		}
	}
}
