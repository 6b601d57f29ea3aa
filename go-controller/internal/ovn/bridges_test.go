// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// Bridges are read from the columns that old and new releases of OVN use. Added and removed chassis and changed
// bridges are reported, other changes of a chassis are not.
func TestBridgesOfChassis(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	sb.sbctl(t, "chassis-add", "old", "geneve", "127.0.0.1", "--", "set", "Chassis", "old",
		"external_ids:ovn-bridge-mappings=physnet:br-ex")
	sb.sbctl(t, "chassis-add", "new", "geneve", "127.0.0.2", "--", "set", "Chassis", "new",
		`other_config:ovn-bridge-mappings="physnet:br-ex,dmz:br-dmz"`, "external_ids:ovn-bridge-mappings=dmz:br-stale")
	sb.sbctl(t, "chassis-add", "fence", "geneve", "127.0.0.4")
	news := 0
	d, err := New(Options{NB: Endpoint{Address: "unix:" + nb.socket}, SB: Endpoint{Address: "unix:" + sb.socket},
		Changed: func(what EventKind) {
			if what == Chassis {
				news++ // Only the handler of d.sb reports this here.
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	fence := make(chan int, 1)
	d.sb.handler = handlers{d.sb.handler, onFence{func() { fence <- news }}}
	start(t, d)
	want := map[string]world.Bridges{"old": {"physnet": "br-ex"}, "new": {"physnet": "br-ex", "dmz": "br-dmz"},
		"fence": {}}
	if diff := cmp.Diff(want, d.Bridges()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	// told returns how often news were reported until now. Events are handled in order: with that of the fence, all
	// earlier ones have been.
	fences := 0
	told := func() (n int) {
		t.Helper()
		fences++
		sb.sbctl(t, "set", "Chassis", "fence", fmt.Sprintf("external_ids:fence=%d", fences))
		await.True(t, "the fence", func() bool {
			select {
			case n = <-fence:
				return true
			default:
				return false
			}
		})
		return n
	}
	before := told() // the existing chassis
	if before != len(want) {
		t.Errorf("%d news at first, want %d", before, len(want))
	}
	for _, step := range []struct {
		name string
		args []string
		news int
	}{
		{"heartbeat", []string{"set", "Chassis", "new", "nb_cfg=7"}, 0},
		{"something else", []string{"set", "Chassis", "new", "other_config:iface-types=geneve", "external_ids:note=1"}, 0},
		{"another bridge", []string{"set", "Chassis", "old", "external_ids:ovn-bridge-mappings=physnet:br-new"}, 1},
		{"another chassis", []string{"chassis-add", "third", "geneve", "127.0.0.3"}, 1},
		{"one less", []string{"chassis-del", "new"}, 1},
	} {
		sb.sbctl(t, step.args...)
		now := told()
		if now-before != step.news {
			t.Errorf("%s: %d news, want %d", step.name, now-before, step.news)
		}
		before = now
	}
	want = map[string]world.Bridges{"old": {"physnet": "br-new"}, "third": {}, "fence": {}}
	if diff := cmp.Diff(want, d.Bridges()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if alone, _ := dial(t, nb); alone.Bridges() != nil {
		t.Error("bridges are known without a southbound database")
	}
}

// onFence is a handler that calls passed for each change of the chassis "fence".
type onFence struct{ passed func() }

func (onFence) OnAdd(string, model.Model) {}

func (onFence) OnDelete(string, model.Model) {}

func (f onFence) OnUpdate(_ string, _, m model.Model) {
	if row, ok := m.(*sbdb.Chassis); ok && row.Name == "fence" {
		f.passed()
	}
}
