// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// incremental is the first version of OVN whose ovn-northd handles new load balancers of routers incrementally, as far
// as it is tested.
const incremental = "25.03"

// In a large cluster a recomputation takes seconds, and ovn-northd does nothing else meanwhile. The builds that are
// unpacked are tested, too, each by a process of its own.
func TestChangesOfServicesAreIncremental(t *testing.T) {
	t.Parallel()
	contract.Test(t, "ovn-northd")
	version, err := ovnprefix.Version()
	if err != nil {
		t.Fatal(err)
	}
	if version >= incremental {
		testIncremental(t)
	}
	if os.Getenv(ovnprefix.Variable) != "" {
		return
	}
	for _, prefix := range ovnprefix.Unpacked() {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChangesOfServicesAreIncremental$", "-test.v")
		again.Env = append(os.Environ(), ovnprefix.Variable+"="+prefix)
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("with %s: %v\n%s", filepath.Base(prefix), err, out)
		}
	}
}

// testIncremental counts recomputations for each change of a Service. The deletion of a Service is none of them: northd
// computes all again when a router loses a load balancer (northd_handle_lb_data_changes).
func testIncremental(t *testing.T) {
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	translate(t, nb, sb)
	d, _ := dial(t, nb, sb)
	configure(t, d, topology(1))
	apply(t, d, service(1, 1, "10.244.1.1", "10.244.1.2"), service(2, 1, "10.244.1.1", "10.244.1.2", "10.244.1.3"))
	nb.nbctl(t, "--wait=sb", "sync")
	for _, c := range []struct {
		name     string
		service  int
		backends []string
	}{
		{"a Service is created in an existing shard", 3, []string{"10.244.1.1", "10.244.1.2"}},
		{"another one is created", 4, []string{"10.244.1.1"}},
		{"it gets an endpoint", 4, []string{"10.244.1.1", "10.244.1.3"}},
		{"it loses an endpoint", 4, []string{"10.244.1.3"}},
	} {
		before := recomputations(t, nb)
		apply(t, d, service(c.service, 1, c.backends...))
		nb.nbctl(t, "--wait=sb", "sync")
		for node, n := range recomputations(t, nb) {
			if n > before[node] {
				t.Errorf("%s: %d recomputations of %s", c.name, n-before[node], node)
			}
		}
	}
}

// recomputations returns how often ovn-northd has computed nodes of its incremental engine from scratch (ovn-northd(8),
// inc-engine/show-stats).
func recomputations(t *testing.T, nb *server) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, node := range []string{"northd", "lflow"} {
		out := run(t, "ovn-appctl", "-t", filepath.Join(filepath.Dir(nb.socket), "northd.ctl"), "inc-engine/show-stats", node,
			"recompute")
		n := 0
		if _, err := fmt.Sscan(out, &n); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		counts[node] = n
	}
	return counts
}
