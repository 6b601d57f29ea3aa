// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// dialZone is dial for the databases of the zone of a node.
func dialZone(t *testing.T, node string, nb, sb *server) *Dataplane {
	t.Helper()
	d, _ := connect(t, Options{NB: Endpoint{Address: "unix:" + nb.socket}, SB: Endpoint{Address: "unix:" + sb.socket},
		Zone: node})
	return d
}

// When OVN-Kubernetes moves to interconnect, the database of the cluster may become that of one node's zone, with all
// rows that a controller has written. The agent changes them to those that it would write into an empty database. The
// other direction is the same. No BFD row is ever without its port, which would crash ovn-northd.
func TestRowsOfTheOtherModeAreTakenOver(t *testing.T) {
	t.Parallel()
	plans := []*plan.Service{service(1, 2, "10.244.0.9", "10.244.1.9", "fd00:10:244:2::9"),
		onHost(service(2, 2, "10.244.1.9"))}
	central := topology(2)
	write := func(t *testing.T, d *Dataplane, f *plan.Topology) {
		t.Helper()
		configure(t, d, f)
		apply(t, d, plans...)
		prune(t, d, plans...)
	}
	gateway, worker := zoneTopology("n2", "c2"), zoneTopology("n3", "c3")
	for _, f := range []*plan.Topology{gateway, worker} {
		for i := range f.Domains[0].Shards {
			f.Domains[0].Shards[i].Ordinal = i // as in central mode: a controller keeps those of the rows
		}
	}
	for name, c := range map[string]struct {
		node          string
		before, after *plan.Topology
	}{
		"to the zone of a gateway": {"n2", central, gateway},
		"to the zone of a worker":  {"n3", central, worker},
		"from that of a gateway":   {"n2", gateway, central},
		"from that of a worker":    {"n3", worker, central},
	} {
		t.Run(name, func(t *testing.T) {
			dialFor := func(f *plan.Topology, nb, sb *server) *Dataplane {
				if f.Zone == nil {
					d, _ := dial(t, nb, sb)
					return d
				}
				return dialZone(t, f.Zone.Node, nb, sb)
			}
			fresh, freshSB := startZone(t, c.node)
			translate(t, fresh, freshSB)
			write(t, dialFor(c.after, fresh, freshSB), c.after)
			fresh.sync(t)

			nb, sb := startZone(t, c.node)
			ends := supervised(t, nb, sb)
			write(t, dialFor(c.before, nb, sb), c.before)
			nb.sync(t)
			address := func() string {
				return nb.nbctl(t, "--bare", "--columns=mac,networks", "find", "Logical_Router_Port", "name=slb-lan-0-ext")
			}
			was, written := address(), nb.transactions(t)
			write(t, dialFor(c.after, nb, sb), c.after)
			t.Logf("%d transactions", nb.transactions(t)-written)
			nb.sync(t)
			if diff := cmp.Diff(withoutGlobal(fresh.dump(t)), withoutGlobal(nb.dump(t))); diff != "" {
				t.Errorf("- a new database and + one taken over:\n%s", diff)
			}
			if is := address(); c.node == "n2" && (is == "" || is != was) {
				t.Errorf("the port on the segment has %s, had %s", is, was)
			}
			if found := nb.orphaned(t); len(found) > 0 {
				t.Error(found)
			}
			if c.after.Zone != nil {
				checkReturnKeys(t, sb)
			}
			checkEnds(t, ends)
			written = nb.transactions(t)
			write(t, dialFor(c.after, nb, sb), c.after)
			if n := nb.transactions(t) - written; n != 0 {
				t.Errorf("a process after it: %d transactions, want none", n)
			}
		})
	}
}

// checkReturnKeys checks tunnel keys of return routers, as TestTunnelKeysAreEqualInAllZones does.
func checkReturnKeys(t *testing.T, sb *server) {
	t.Helper()
	for port, want := range map[string]string{"slbreturn-lan-0-join": "32767", "cr-slbreturn-lan-1-out": "2"} {
		got := sb.sbctl(t, "--bare", "--columns=tunnel_key", "find", "Port_Binding", "logical_port="+port)
		if got != want {
			t.Errorf("tunnel key of %s: %s, want %s", port, got, want)
		}
	}
}

// withoutGlobal is stripped without the row of NB_Global, which has values of ovn-northd.
func withoutGlobal(dump string) string {
	lines := strings.Split(stripped(dump), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "northd_internal_version")
	}), "\n")
}

// The database of another zone is not written to, whatever the node's annotation says.
func TestDatabasesOfOtherZonesAreNotWritten(t *testing.T) {
	t.Parallel()
	nb, sb := startZone(t, "n2")
	nb.nbctl(t, "set", "NB_Global", ".", "options:name=global")
	written := nb.transactions(t)
	d := dialZone(t, "n2", nb, sb)
	err := d.Configure(t.Context(), zoneTopology("n2", "c2"))
	if err == nil || !strings.Contains(err.Error(), `the northbound database is that of zone "global"`) {
		t.Errorf("configure: %v", err)
	}
	if n := nb.transactions(t) - written; n > 0 {
		t.Errorf("%d transactions", n)
	}
	nb.nbctl(t, "set", "NB_Global", ".", "options:name=n2")
	await.True(t, "the replica has the name", func() bool {
		return d.Configure(t.Context(), zoneTopology("n2", "c2")) == nil
	})
}

// With transport no-overlay, OVN-Kubernetes deletes the transit switch. A database that it has not filled yet does not
// count.
func TestTransitSwitchIsMissed(t *testing.T) {
	t.Parallel()
	nb, sb := startZone(t, "n2")
	d, events := connect(t, Options{NB: Endpoint{Address: "unix:" + nb.socket}, SB: Endpoint{Address: "unix:" + sb.socket},
		Zone: "n2"})
	if d.LacksTransit() {
		t.Error("the port is there")
	}
	drain(events)
	nb.nbctl(t, "lrp-del", "rtots-n2")
	waitFor(t, events, Chassis)
	await.True(t, "the port is missed", d.LacksTransit)
	nb.nbctl(t, "lrp-del", "rtos-n2")
	await.True(t, "a node without ports counts as new", func() bool { return !d.LacksTransit() })
}
