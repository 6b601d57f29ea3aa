// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// earlier is the database of capture with the rows that the version before docs/adr/0007 wrote for the topology and
// Services below: load balancers with the pods as direct backends, and return paths by address sets and policies.
const earlier = "testdata/before-aliases.nb.db"

// The rows of an earlier version are converted to those that a fresh start would write, and removal deletes all of
// them.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	one, two := service(1, 2, "10.244.1.10", "10.244.2.10", "fd00:10:244:1::10"), onHost(service(2, 2, "10.244.1.10"))
	write := func(s *server) *Dataplane {
		d, _ := dial(t, s)
		configure(t, d, topology(2))
		apply(t, d, one, two)
		prune(t, d, one, two)
		return d
	}
	anew, upgraded := serve(t, capture), serve(t, earlier)
	bare := anew.dump(t)
	if old := upgraded.dump(t); !strings.Contains(old, "slb_094a367b0262_0_v4_tcp_8080") ||
		strings.Contains(old, "slbnode-") {
		t.Fatal("the fixture is not of the earlier version")
	}
	write(anew)
	d := write(upgraded)
	if diff := cmp.Diff(stripped(anew.dump(t)), stripped(upgraded.dump(t))); diff != "" {
		t.Errorf("a new start - and after the upgrade +:\n%s", diff)
	}
	written := upgraded.transactions(t)
	write(upgraded)
	if n := upgraded.transactions(t) - written; n != 0 {
		t.Errorf("a process after it: %d transactions, want none", n)
	}
	configure(t, d, topology(0))
	remove(t, d, one, two)
	if diff := cmp.Diff(bare, upgraded.dump(t)); diff != "" {
		t.Errorf("the database before and after us:\n%s", diff)
	}
}
