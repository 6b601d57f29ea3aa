// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// transcript returns all transactions in the database file (ovsdb(5), "Standalone Database Log").
func (s *server) transcript(t *testing.T) []map[string]map[string]map[string]any {
	t.Helper()
	data, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]map[string]map[string]any
	for i, record := range bytes.Split(append([]byte("\n"), data...), []byte("\nOVSDB JSON "))[1:] {
		_, body, _ := bytes.Cut(record, []byte("\n"))
		if i == 0 {
			continue // the schema
		}
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(body, &raw); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		transaction := map[string]map[string]map[string]any{}
		for table, of := range raw {
			var rows map[string]map[string]any // null for a deleted row
			if err := json.Unmarshal(of, &rows); err == nil {
				transaction[table] = rows
			}
		}
		all = append(all, transaction)
	}
	return all
}

// orphaned returns the BFD rows that had no port after a transaction, each with the number of that transaction.
func (s *server) orphaned(t *testing.T) []string {
	t.Helper()
	columns := map[string]string{"BFD": "logical_port", "Logical_Router_Port": "name"}
	have := map[string]map[string]string{"BFD": {}, "Logical_Router_Port": {}}
	var found []string
	for i, transaction := range s.transcript(t) {
		for table, column := range columns {
			for uuid, row := range transaction[table] {
				if row == nil {
					delete(have[table], uuid)
				} else if name, ok := row[column].(string); ok {
					have[table][uuid] = name
				}
			}
		}
		ports := map[string]bool{}
		for _, name := range have["Logical_Router_Port"] {
			ports[name] = true
		}
		for _, name := range have["BFD"] {
			if !ports[name] {
				found = append(found, fmt.Sprintf("%s in transaction %d", name, i))
			}
		}
	}
	return found
}

// supervised runs a real ovn-northd, restarts it whenever it exits, as its monitor or a kubelet would, and counts the
// exits.
func supervised(t *testing.T, nb, sb *server) *atomic.Int32 {
	t.Helper()
	dir := filepath.Dir(nb.socket)
	ctx, cancel := context.WithCancel(t.Context())
	var ends atomic.Int32
	start := func() *exec.Cmd {
		northd := exec.CommandContext(ctx, "ovn-northd", "--ovnnb-db=unix:"+nb.socket, "--ovnsb-db=unix:"+sb.socket,
			"--unixctl="+filepath.Join(dir, "northd.ctl"), "-vconsole:off")
		northd.Env = append(os.Environ(), "OVN_RUNDIR="+dir)
		if err := northd.Start(); err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return nil
		}
		return northd
	}
	first, done := start(), make(chan struct{})
	go func() {
		defer close(done)
		for northd := first; northd != nil; northd = start() {
			_ = northd.Wait()
			if ctx.Err() != nil {
				return
			}
			ends.Add(1)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return &ends
}

// No BFD row is ever without its port, however shards and domains are added and removed, even across several
// transactions.
func TestBFDRowsFollowTheirPorts(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	ends := supervised(t, nb, sb)
	d, _ := dial(t, nb)
	two, other, bare := topology(2), topology(1), topology(1)
	other.Domains[0].Name = "dmz"
	other.Domains[0].Shards[0].ID.Domain = "dmz"
	for i := range bare.Domains[0].Subnets {
		// Move the gateway out of the subnet.
		bare.Domains[0].Subnets[i].Gateway = bare.Domains[0].Subnets[i].Gateway.Prev().Prev().Unmap()
	}
	for i, f := range []*plan.Topology{two, topology(1), topology(60), two, other, topology(0), two, bare, two} {
		configure(t, d, f)
		nb.sync(t)
		if found := nb.orphaned(t); len(found) > 0 {
			t.Fatalf("step %d: %v", i, found)
		}
	}
	checkEnds(t, ends)
}

// checkEnds checks that ovn-northd has not ended. That of OVN 26.03.0 and 26.03.1 aborts if it finds one router deleted
// and another one created (ods_assign_array_index in northd/northd.c), and recovers when it is restarted.
func checkEnds(t *testing.T, ends *atomic.Int32) {
	t.Helper()
	version, err := ovnprefix.Version()
	if err != nil {
		t.Fatal(err)
	}
	if n := ends.Load(); n > 0 && !slices.Contains([]string{"26.03.0", "26.03.1"}, version) {
		t.Errorf("northd ended %d times", n)
	}
}

// Deleting one of our routers or its port by hand leaves an orphaned BFD row, which crashes OVN from 24.09 on. The
// row is deleted before any other decision, and northd answers, after a restart if necessary.
func TestNorthdSurvivesForeignDeletes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command  []string
		topology *plan.Topology
	}{
		"router":                  {[]string{"lr-del", "slb-lan-0"}, topology(2)},
		"port":                    {[]string{"lrp-del", "slb-lan-0-ext"}, topology(2)},
		"router in a zone":        {[]string{"lr-del", "slb-lan-0"}, zoneTopology("n2", "c2")},
		"port in a zone":          {[]string{"lrp-del", "slb-lan-0-ext"}, zoneTopology("n2", "c2")},
		"return router in a zone": {[]string{"lr-del", "slbreturn-lan-0"}, zoneTopology("n2", "c2")},
	} {
		t.Run(name, func(t *testing.T) {
			nb, sb := startZone(t, "n2")
			if c.topology.Zone == nil {
				nb, sb = serve(t, schema), serve(t, southboundSchema)
				nb.clusterRows(t)
				sb.sbctl(t, "init")
			}
			ends := supervised(t, nb, sb)
			d, events := dial(t, nb, sb)
			configure(t, d, c.topology)
			one := service(1, 2, "10.244.0.10")
			apply(t, d, one)
			nb.sync(t)
			drain(events)

			func() {
				d.mu.Lock() // as if a long transaction were being written
				defer d.mu.Unlock()
				before := revision(t, nb)
				nb.nbctl(t, c.command...)
				if !strings.Contains(c.command[1], "return") { // which has no session
					await.True(t, "the row has gone", func() bool {
						return nb.nbctl(t, "--bare", "--columns=logical_port", "list", "BFD") == "slb-lan-1-ext"
					})
				}
				nb.sync(t)
				if after := revision(t, nb); after != before {
					t.Errorf("numbered %s after %s, which the transaction that is being written has, too", after, before)
				}
				t.Logf("northd ended %d times", ends.Load())
			}()

			waitFor(t, events, Rows)
			configure(t, d, c.topology)
			prune(t, d, one)
			nb.sync(t)
			sessionsAre(t, sb, "slb-lan-0-ext", "slb-lan-1-ext")
		})
	}
}

// revision returns the number of the last transaction.
func revision(t *testing.T, nb *server) string {
	t.Helper()
	return nb.nbctl(t, "--bare", "--columns=addresses", "find", "Address_Set", "name=slb_revision")
}

// The rows of a Service must not count as translated because of the deletion of another row at the same time. The race
// detector checks that the two share nothing.
func TestOrphansAreDeletedDuringConfigure(t *testing.T) {
	t.Parallel()
	nb, sb := startZone(t, "n2")
	d, _ := dial(t, nb, sb)
	configure(t, d, zoneTopology("n2", "c2"))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_ = d.Configure(t.Context(), zoneTopology("n2", "c2")) // may meet the row before it is gone
			}
		}
	}()
	for range 5 {
		nb.nbctl(t, "create", "BFD", "logical_port=gone", "dst_ip=10.50.0.9", "external_ids:"+rows.KeyController+"="+
			rows.Controller)
		d.drift.orphaned <- struct{}{}
		await.True(t, "the row has gone", func() bool {
			return nb.nbctl(t, "--bare", "--columns=_uuid", "find", "BFD", "logical_port=gone") == ""
		})
	}
	close(done)
	<-ended
	configure(t, d, zoneTopology("n2", "c2"))
}

// While nothing of ours runs, ovn-northd stays down after such a deletion. The next process repairs the database,
// whether the shard still exists or not, and ovn-northd answers as soon as it is started again.
func TestOrphansFromBeforeTheStartAreRepaired(t *testing.T) {
	t.Parallel()
	both := []string{"slb-lan-0-ext", "slb-lan-1-ext"}
	for name, c := range map[string]struct {
		before, after *plan.Topology
		sessions      []string
	}{
		"central":                {topology(2), topology(2), both},
		"central without shards": {topology(2), topology(0), nil},
		"zone":                   {zoneTopology("n2", "c2"), zoneTopology("n2", "c2"), both},
		"zone of a worker":       {zoneTopology("n2", "c2"), zoneTopology("n3", "c3"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			nb, sb := startZone(t, "n2")
			ends := supervised(t, nb, sb)
			first, err := New(Options{NB: Endpoint{Address: "unix:" + nb.socket}})
			if err != nil {
				t.Fatal(err)
			}
			t.Run("before", func(t *testing.T) { // ends the process
				start(t, first)
				configure(t, first, c.before)
			})
			nb.sync(t)
			sessionsAre(t, sb, "slb-lan-0-ext", "slb-lan-1-ext")
			nb.nbctl(t, "lr-del", "slb-lan-0")
			if got := nb.nbctl(t, "--bare", "--columns=logical_port", "find", "BFD",
				"logical_port=slb-lan-0-ext"); got == "" {
				t.Fatal("the row is not orphaned")
			}
			if version, err := ovnprefix.Version(); err == nil && version >= "24.09" {
				await.True(t, "northd fails at each start", func() bool { return ends.Load() > 2 })
			}
			d, _ := dial(t, nb, sb)
			configure(t, d, c.after)
			prune(t, d)
			nb.sync(t)
			sessionsAre(t, sb, c.sessions...)
			t.Logf("northd ended %d times", ends.Load())
		})
	}
}

// sessionsAre checks the logical ports of the southbound BFD sessions.
func sessionsAre(t *testing.T, sb *server, want ...string) {
	t.Helper()
	got := strings.Fields(sb.sbctl(t, "--bare", "--columns=logical_port", "list", "BFD"))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("BFD sessions %v, want %v", got, want)
	}
}
