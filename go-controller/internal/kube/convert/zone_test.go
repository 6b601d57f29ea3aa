// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestZoneReportsAreReadAsTheyWereWritten(t *testing.T) {
	shard := world.ShardID{Domain: "lan", Index: 3}
	want := &world.ZoneAgent{
		Bridges: world.Bridges{"physnet": "br-ex"}, Applied: 7, Problem: "no room",
		Unwritable: "ovn-northd is dead", Northd: true, NoOverlay: true, Started: time.Unix(2000, 0).UTC(),
		Claims:    map[world.ShardID]time.Time{shard: time.Unix(1000, 0).UTC()},
		Contested: map[world.ShardID]bool{shard: true},
		Failed:    map[world.Key]string{{Namespace: "shop", Name: "web"}: "no row"},
		Misplaced: map[netip.Addr]bool{netip.MustParseAddr("10.50.0.100"): true, netip.MustParseAddr("fd00:50::100"): true},
	}
	text, err := ZoneReport(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := readZone(text); !got.Equal(want) {
		t.Errorf("%s is read as %+v", text, got)
	}
	for _, bridges := range []world.Bridges{nil, {}} { // unknown, and attached to nothing
		text, err := ZoneReport(&world.ZoneAgent{Bridges: bridges})
		if err != nil {
			t.Fatal(err)
		}
		if got := readZone(text); (got.Bridges == nil) != (bridges == nil) {
			t.Errorf("bridges %#v are written as %s and read as %#v", bridges, text, got.Bridges)
		}
	}
	for _, name := range []string{"lan", "/3", "lan/-1", "lan/x", "lan/3/4"} {
		got := readZone(`{"claims":{"` + name + `":"2026-01-01T00:00:00Z"},"contested":["` + name + `"]}`)
		if got == nil || len(got.Claims)+len(got.Contested) > 0 {
			t.Errorf("shard %q is read as %+v", name, got)
		}
	}
	if got := readZone("{"); got != nil {
		t.Errorf("an invalid report is read as %+v", got)
	}
}

// A node whose texts are long, or not ASCII, can't make the statuses large that all other nodes watch.
func TestTextsOfReportsAreTruncated(t *testing.T) {
	long := "x" + strings.Repeat("ü", 100_000)
	want := "x" + strings.Repeat("ü", 126) + "..." // 256 bytes
	key := world.Key{Namespace: "shop", Name: "web"}
	zone, err := ZoneReport(&world.ZoneAgent{Bridges: world.Bridges{"physnet": long}, Problem: long, Unwritable: long,
		Failed: map[world.Key]string{key: long}})
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.AnnotationZone:      zone,
		v1alpha1.AnnotationFaults:    `{"physnet": {"message": "` + long + `"}}`,
		v1alpha1.AnnotationLocalnets: `{"port": {"bridge": "` + long + `"}}`,
	}}}
	r := ReadReport(lease)
	for what, got := range map[string]string{"bridge": r.Zone.Bridges["physnet"], "problem": r.Zone.Problem,
		"unwritable": r.Zone.Unwritable, "failed": r.Zone.Failed[key], "fault": r.Faults["physnet"].Message,
		"localnet": r.Localnets["port"].Bridge} {
		if got != want {
			t.Errorf("%s: %d bytes, want %d", what, len(got), len(want))
		}
	}
}

func TestZoneOfANode(t *testing.T) {
	const transit = `{"ipv4":"100.88.0.2/16"}`
	for name, c := range map[string]struct{ zone, transit, want string }{
		"central":                          {"global", "", "global"},
		"interconnect":                     {"n1", transit, "n1"},
		"before the node moves":            {"global", transit, "global"},
		"a release that has no zones":      {"", "", ""},
		"a release that publishes no zone": {"", transit, "n1"},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{}}}
		for key, value := range map[string]string{annotationZone: c.zone, annotationTransit: c.transit} {
			if value != "" {
				n.Annotations[key] = value
			}
		}
		if got := Node(n, Options{}).Zone; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Versions without status.mode published ordinals with interconnect only.
func TestDomainsWithoutModeWereServedCentrally(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.L2DomainStatus
		want   world.ServingMode
	}{
		"never":    {v1alpha1.L2DomainStatus{}, ""},
		"central":  {v1alpha1.L2DomainStatus{Shards: []v1alpha1.ShardStatus{{}}}, world.ServedCentrally},
		"zones":    {v1alpha1.L2DomainStatus{Shards: []v1alpha1.ShardStatus{{Ordinal: new(int32(0))}}}, ""},
		"the mode": {v1alpha1.L2DomainStatus{Mode: "Interconnect", Shards: []v1alpha1.ShardStatus{{}}}, world.ServedByZones},
	} {
		if got := Domain(&v1alpha1.L2Domain{Status: c.status}, nil, nil).Served; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
