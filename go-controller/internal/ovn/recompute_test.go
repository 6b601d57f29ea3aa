// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// recomputations returns how often ovn-northd has computed its routers and switches, and its logical flows, as a whole.
func recomputations(t *testing.T, nb *server) string {
	t.Helper()
	nb.sync(t)
	nb.sync(t) // also what ovn-northd computes because of its own changes of the southbound database
	ctl := filepath.Join(filepath.Dir(nb.socket), "northd.ctl")
	var out []string
	for _, node := range []string{"northd", "lflow"} {
		out = append(out, node+" "+
			strings.TrimSpace(run(t, "ovn-appctl", "-t", ctl, "inc-engine/show-stats", node, "recompute")))
	}
	return strings.Join(out, ", ")
}

// incremental runs the calling test again with the newest OVN at hand if that in PATH is older than 25.03, which
// handles few changes of load balancers incrementally. It reports false in the process that only does this.
func incremental(t *testing.T) bool {
	t.Helper()
	if version, err := ovnprefix.Version(); err != nil || version >= "25" {
		return true
	}
	prefix := ovnprefix.Chosen()
	if os.Getenv(ovnprefix.Variable) != "" || prefix == "" {
		t.Skip("needs OVN 25.03 or newer: contrib/ovn.sh unpacks one")
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	again.Env = append(os.Environ(), ovnprefix.Variable+"="+prefix)
	out, err := again.CombinedOutput()
	if err != nil {
		t.Errorf("with %s: %v\n%s", prefix, err, out)
	}
	return false
}

// What happens to a Service every day costs ovn-northd no computation of everything, which takes seconds in a large
// cluster and delays all its other changes: in central mode there is one ovn-northd for all nodes.
func TestNorthdComputesChangesOnly(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	if !incremental(t) {
		return
	}
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	log := translate(t, nb, sb)
	d, _ := dial(t, nb, sb)
	configure(t, d, topology(1))
	backends := []string{"10.244.1.1", "10.244.1.2", "10.244.1.3", "fd00:10:244:1::1"}
	of := func(backends ...string) *plan.Service { return service(2, 1, backends...) }
	apply(t, d, service(1, 1, backends...)) // the first one of the shard and of the nodes
	notReady := of(backends...)
	for i := range notReady.Listeners {
		l := &notReady.Listeners[i]
		l.Draining, l.Backends = l.Backends[:1], l.Backends[1:]
	}
	moreAndLess := of(backends...)
	moreAndLess.Listeners = moreAndLess.Listeners[1:]
	moreAndLess.Listeners[0].Port = 81
	before := recomputations(t, nb)
	for _, step := range []struct {
		what string
		plan *plan.Service
	}{
		{"created", of(backends...)},
		{"an endpoint less", of(backends[1:]...)},
		{"an endpoint more", of(backends...)},
		{"an endpoint not ready", notReady},
		{"ready again", of(backends...)},
		{"all draining", drained(of(backends...))},
		{"no endpoint", of()},
		{"endpoints again", of(backends...)},
		{"other ports", moreAndLess},
		{"deleted", nil},
		{"created again", of(backends...)},
	} {
		if step.plan != nil {
			apply(t, d, step.plan)
		} else {
			remove(t, d, of())
		}
		if now := recomputations(t, nb); now != before {
			t.Errorf("%s: ovn-northd computed everything: %s, before %s", step.what, now, before)
			before = now
		}
	}
	northdIsContent(t, log)
}

// The load balancers of deleted Services go when there are many of them, when there is no other Service, or with their
// router. Until then they serve nothing, and what another process writes into them late is repaired.
func TestRetiredLoadBalancersAreRemoved(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	plans := crowd(maxRetired+4, 2, 2)
	apply(t, d, plans...)
	prune(t, d, plans...)
	left := func() (rows, vips int) {
		out := s.nbctl(t, "--no-headings", "--columns=_uuid,vips", "--format=csv", "find", "Load_Balancer",
			"external_ids:k8s.ovn.org/owner-type=Service")
		for line := range strings.Lines(out) {
			rows++
			if !strings.HasSuffix(strings.TrimSpace(line), "{}") {
				vips++
			}
		}
		return rows, vips
	}
	all, _ := left()
	per := all / len(plans)
	remove(t, d, plans[:maxRetired]...)
	if rows, vips := left(); rows != all || vips != per*4 {
		t.Errorf("%d rows, %d with VIPs; want %d, %d", rows, vips, all, per*4)
	}
	late := plans[0].Key
	check := pendingChecks{services: map[world.Key]bool{late: true}}
	if what, _ := d.differs(check); what != "" {
		t.Errorf("without another process: %s", what)
	}
	balancer := strings.Fields(s.nbctl(t, "--bare", "--columns=_uuid", "find", "Load_Balancer",
		"external_ids:slb.k8s.ovn.org/service="+late.String()))[0]
	s.nbctl(t, "set", "Load_Balancer", balancer, `vips="10.50.1.1:80"="240.1.1.0:80"`)
	await.True(t, "a late write is noticed", func() bool {
		what, foreign := d.differs(check)
		return what != "" && foreign
	})
	remove(t, d, plans[0])
	remove(t, d, plans[maxRetired])
	if rows, vips := left(); rows != per*3 || vips != per*3 {
		t.Errorf("%d rows, %d with VIPs after one more; want %d", rows, vips, per*3)
	}
	remove(t, d, plans[maxRetired+1]) // of shard 1
	configure(t, d, topology(1))
	if rows, vips := left(); vips != per*2 || rows == per*3 {
		t.Errorf("%d rows, %d with VIPs after the shard is gone; want %d", rows, vips, per*2)
	}
	remove(t, d, plans[maxRetired+2:]...)
	if rows, _ := left(); rows != 0 {
		t.Errorf("%d rows without Services", rows)
	}
}
