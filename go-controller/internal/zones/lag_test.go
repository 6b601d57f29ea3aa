// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A rolling update of the agents must not write the statuses of all Services.
func TestZonesLagOnceTheyHaveMadeNoProgressForAWhile(t *testing.T) {
	key := world.Key{Namespace: "shop", Name: "web"}
	p, start, limit := New(Options{}), time.Unix(1000, 0), lagTime+ReportInterval(1)
	p.store(&v1alpha1.ServicePlan{ObjectMeta: metav1.ObjectMeta{Name: "shop.web", ResourceVersion: "7"},
		Spec: v1alpha1.ServicePlanSpec{Namespace: "shop", Name: "web",
			VIPs: []v1alpha1.PlannedVIP{{Address: "10.50.0.100", L2Domain: "lan"}},
			Listeners: []v1alpha1.PlannedListener{{Address: "10.50.0.100", Protocol: "TCP", Port: 80,
				Backends: []v1alpha1.PlannedBackend{{Address: "10.244.1.1:80", NodeName: "n1"}}}}}})
	for _, c := range []struct {
		what       string
		at         time.Duration
		applied    uint64
		unwritable string
		lags       bool
	}{
		{"applied", 0, 7, "", false},
		{"the agent restarts and applies everything again", time.Second, 2, "", false},
		{"it goes on for long", 2 * limit, 3, "", false},
		{"the zone can't be changed, but has the Service", 2 * limit, 7, "no database", false},
	} {
		if got := lagsAt(p, start.Add(c.at), c.applied, c.unwritable, key); got != c.lags {
			t.Errorf("%s: lags %t", c.what, got)
		}
	}
	o := *p.objects["shop.web"]
	o.ResourceVersion = "9"
	p.store(&o)
	for _, c := range []struct {
		what       string
		at         time.Duration
		applied    uint64
		unwritable string
		lags       bool
	}{
		{"published just now", 3 * limit, 7, "", false},
		{"no progress for a while", 4 * limit, 7, "", true},
		{"some progress", 4 * limit, 8, "", true},
		{"all is applied", 4 * limit, 9, "", false},
		{"an agent that starts and can't change its zone", 4 * limit, 0, "no database", false},
	} {
		if got := lagsAt(p, start.Add(c.at), c.applied, c.unwritable, key); got != c.lags {
			t.Errorf("%s: lags %t", c.what, got)
		}
	}
	o.ResourceVersion = "11"
	p.store(&o)
	for _, at := range []time.Duration{5 * limit, 6 * limit} {
		lagsAt(p, start.Add(at), 9, "", key)
	}
	if !p.Lags("n1") {
		t.Error("the zone does not lag")
	}
	p.forget("shop.web")
	if lagsAt(p, start.Add(6*limit), 9, "", key); p.Lags("n1") {
		t.Error("the zone lags behind a plan that was deleted")
	}
	o.ResourceVersion = "13"
	p.store(&o)
	lagsAt(p, start.Add(7*limit), 9, "", key)
	p.forget("shop.web") // The agent never sees it.
	o.ResourceVersion = "15"
	p.store(&o)
	if lagsAt(p, start.Add(8*limit), 9, "", key) {
		t.Error("the zone lags behind a plan that was published just now")
	}
	if !lagsAt(p, start.Add(9*limit), 9, "", key) {
		t.Error("the zone does not lag behind a plan that it has not applied for a while")
	}
}

// lagsAt reports whether node n1 lags behind the Service after an observation.
func lagsAt(p *Publisher, now time.Time, applied uint64, unwritable string, key world.Key) bool {
	w := &world.Snapshot{Now: now,
		Nodes: []*world.Node{{Name: "n1", Chassis: "c1",
			Agent: &world.ZoneAgent{AppliedHere: applied, Unwritable: unwritable}}}}
	p.Observe(w)
	return slices.Contains(w.Lagging[key], "n1")
}
