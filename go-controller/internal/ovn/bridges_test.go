// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Bridges are read from the columns that old and new releases of OVN use. Added and removed chassis and changed
// bridges are reported, other changes of a chassis are not.
func TestBridgesOfChassis(t *testing.T) {
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	sb.sbctl(t, "chassis-add", "old", "geneve", "127.0.0.1", "--", "set", "Chassis", "old",
		"external_ids:ovn-bridge-mappings=physnet:br-ex")
	sb.sbctl(t, "chassis-add", "new", "geneve", "127.0.0.2", "--", "set", "Chassis", "new",
		`other_config:ovn-bridge-mappings="physnet:br-ex,dmz:br-dmz"`, "external_ids:ovn-bridge-mappings=dmz:br-stale")
	d, events := dial(t, nb, sb)
	want := map[string]world.Bridges{"old": {"physnet": "br-ex"}, "new": {"physnet": "br-ex", "dmz": "br-dmz"}}
	if diff := cmp.Diff(want, d.Bridges()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	const silence = 200 * time.Millisecond
	// Events for existing chassis arrive some time after the connection.
	quiet := func() {
		for {
			select {
			case <-events:
			case <-time.After(silence):
				return
			}
		}
	}
	for _, step := range []struct {
		name string
		args []string
		news bool
	}{
		{"heartbeat", []string{"set", "Chassis", "new", "nb_cfg=7"}, false},
		{"something else", []string{"set", "Chassis", "new", "other_config:iface-types=geneve", "external_ids:note=1"},
			false},
		{"another bridge", []string{"set", "Chassis", "old", "external_ids:ovn-bridge-mappings=physnet:br-new"}, true},
		{"another chassis", []string{"chassis-add", "third", "geneve", "127.0.0.3"}, true},
		{"one less", []string{"chassis-del", "new"}, true},
	} {
		quiet()
		sb.sbctl(t, step.args...)
		if step.news {
			waitFor(t, events, Chassis)
			continue
		}
		select {
		case what := <-events:
			t.Errorf("%s: news %v", step.name, what)
		case <-time.After(silence):
		}
	}
	want = map[string]world.Bridges{"old": {"physnet": "br-new"}, "third": {}}
	eventually(t, "the bridges are those of now", func() bool { return cmp.Equal(want, d.Bridges()) })
	if alone, _ := dial(t, nb); alone.Bridges() != nil {
		t.Error("bridges are known without a southbound database")
	}
}
