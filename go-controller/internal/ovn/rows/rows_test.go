// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/rowtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The golden files of this directory contain the input (topology, Services, and facts of the database), followed by the
// desired rows of the selected tables.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, file) })
	}
}

// scene is the input of a golden test.
type scene struct {
	Topology plan.Topology
	Services []plan.Service
	Show     []string
	Facts    struct {
		Join                      []netip.Prefix
		Nodes                     map[string]rows.NodeFacts
		Taken                     []netip.Addr
		Ordinals                  map[string]int
		HashIPv6, RepliesUnhidden bool
		// VIPs are the existing vips columns by row ID. Options and ExternalIDs are those of NB_Global.
		VIPs                 map[string]map[string]string
		Options, ExternalIDs map[string]string
	}
}

func read(t *testing.T, archive *txtar.Archive) (s scene, want *txtar.File) {
	t.Helper()
	for i := range archive.Files {
		f := &archive.Files[i]
		var err error
		switch f.Name {
		case "topology":
			err = yaml.UnmarshalStrict(f.Data, &s.Topology)
		case "services":
			err = yaml.UnmarshalStrict(f.Data, &s.Services)
		case "facts":
			err = yaml.UnmarshalStrict(f.Data, &s.Facts)
		case "show":
			s.Show = strings.Fields(string(f.Data))
		case "want":
			want = f
		default:
			err = fmt.Errorf("unknown file")
		}
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	return s, want
}

func golden(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, want := read(t, archive)
	got := wanted(s)
	if flag.Lookup("update").Value.String() == "true" {
		want.Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want.Data), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// wanted formats all rows that a scene produces.
func wanted(s scene) string {
	facts := rows.Facts{
		Join: s.Facts.Join, Nodes: s.Facts.Nodes, HashIPv6: s.Facts.HashIPv6, SkipsSNATForReplies: s.Facts.RepliesUnhidden,
		UsedAddrs: map[netip.Addr]bool{}, Ordinals: map[world.ShardID]int{},
	}
	for _, a := range s.Facts.Taken {
		facts.UsedAddrs[a] = true
	}
	for name, n := range s.Facts.Ordinals {
		id, _ := world.ParseShard(name)
		facts.Ordinals[id] = n
	}
	g, err := rows.NewBuilder(&s.Topology, facts)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	g.SetEgress(rows.EgressOf(func(yield func(*plan.Service) bool) {
		for i := range s.Services {
			if !yield(&s.Services[i]) {
				return
			}
		}
	}, nil))
	var restricted rows.Restricted
	for i := range s.Services {
		restricted.Replace(nil, &s.Services[i])
	}
	g.SetRestricted(&restricted)
	var out strings.Builder
	write := func(all []rows.Row) {
		for _, r := range all {
			if s.Show == nil || slices.Contains(s.Show, r.Table) {
				out.WriteString(rowtest.Line(r) + "\n")
			}
		}
	}
	write(builder(g))
	back := map[string][]rows.ShardBackend{}
	for _, p := range s.Services {
		balancers, err := g.Service(&p, func(id string) map[string]string { return s.Facts.VIPs[id] })
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
		}
		write(balancers)
		rows.ForEachBackend(&p, func(node string, b rows.ShardBackend) { back[node] = append(back[node], b) })
	}
	for _, node := range slices.Sorted(maps.Keys(back)) {
		write(g.NodeRows(node, back[node], func(id string) map[string]string { return s.Facts.VIPs[id] }))
	}
	opts, ids := g.BFDOptions(s.Facts.Options, s.Facts.ExternalIDs)
	for _, c := range append(opts, ids...) {
		fmt.Fprintf(&out, "NB_Global %s: %q -> %q\n", c.Key, c.Old, c.New)
	}
	return out.String()
}

// builder returns all topology rows of a Builder.
func builder(g *rows.Builder) []rows.Row {
	domains, shards := g.TopologyRows()
	return slices.Concat(slices.Concat(domains...), slices.Concat(shards...))
}
