// SPDX-License-Identifier: Apache-2.0

package growth

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The sizes of a tenant's input that are compared.
const small, large = 200, 2000

// mostGrowth is the growth of the work for an input ten times as large. n log n is 13 to 14.
const mostGrowth = 15

// packages are those whose statements are counted: the pure ones that decide for all Services, and the generic
// functions of the library that loop.
const packages = "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report," +
	"slices,maps"

// shapeVariable and sizeVariable select the input of a run that is counted.
const shapeVariable, sizeVariable = "SLB_GROWTH_SHAPE", "SLB_GROWTH_SIZE"

// TestPass is what is counted: all decisions, rows and statuses for a snapshot, three times: of Services that are new,
// that have addresses, and that have changed.
func TestPass(t *testing.T) {
	shape := shapes[os.Getenv(shapeVariable)]
	if shape == nil {
		t.Skip("run by TestWorkGrowsWithTheInput")
	}
	n, err := strconv.Atoi(os.Getenv(sizeVariable))
	if err != nil {
		t.Fatal(err)
	}
	var m decide.State
	var cache report.Cache
	var assigned, held map[world.Key][]netip.Addr
	vips := map[string]map[string]string{} // by row
	known := report.Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{}}
	for _, changed := range []bool{false, false, true} {
		w := snapshot(shape(n, changed))
		for _, s := range w.Services {
			s.Assigned, s.Given, s.HeldExternalIPs = assigned[s.Key], assigned[s.Key], held[s.Key]
		}
		if change := clusters[os.Getenv(shapeVariable)]; change != nil {
			change(w)
		}
		d := m.Decide(w)
		d.BGP.For(w.Nodes[0].Name)
		builder, err := rows.NewBuilder(d.Topology, rows.Facts{Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16")}})
		if err != nil {
			t.Fatal(err)
		}
		assigned, held = map[world.Key][]netip.Addr{}, map[world.Key][]netip.Addr{}
		for _, s := range w.Services {
			assigned[s.Key], held[s.Key] = d.Allocation.Services[s.Key].Addrs, d.Allocation.Services[s.Key].HeldExternal
			if p := d.Plans[s.Key]; p != nil {
				list, err := builder.Service(p, func(id string) map[string]string { return vips[id] })
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range list {
					vips[row.ID], _ = row.Columns["vips"].(map[string]string)
				}
				known.Programmed[s.Key] = loop.Result{Key: s.Key, Plan: p}
			}
		}
		if len(assigned[world.Key{Namespace: "other", Name: "web"}]) == 0 {
			t.Error("the Service of the other tenant has no address")
		}
		v := report.NewBuilder(d, known)
		v.Services(&cache)
		v.Pools()
		v.Domains()
	}
}

func TestWorkGrowsWithTheInput(t *testing.T) {
	binary := compiled(t, packages)
	for shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			before, after := work(t, binary, "TestPass", shape, small), work(t, binary, "TestPass", shape, large)
			growth := float64(after.total) / float64(before.total)
			t.Logf("%d statements, and %d: %.1f times as many", before.total, after.total, growth)
			if growth > mostGrowth {
				t.Errorf("%d times the input takes %.1f times the work, want at most %d; most of it is in\n%s", large/small, growth,
					mostGrowth, after.most())
			}
		})
	}
}

// executed counts executed statements.
type executed struct {
	total  int
	blocks []block
}

type block struct {
	place string
	times int
}

// most returns the blocks of statements that are executed most.
func (e *executed) most() string {
	slices.SortFunc(e.blocks, func(a, b block) int { return b.times - a.times })
	var out strings.Builder
	for _, b := range e.blocks[:min(5, len(e.blocks))] {
		fmt.Fprintf(&out, "%12d %s\n", b.times, b.place)
	}
	return out.String()
}

// compiled returns the binary of these tests that counts the statements of packages.
func compiled(t *testing.T, packages string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "pass.test")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "-covermode=count",
		"-coverpkg="+packages, ".")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// work runs a pass for an input of a size, and returns what it executed.
func work(t *testing.T, binary, pass, shape string, size int) *executed {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	run := exec.CommandContext(t.Context(), binary, "-test.run=^"+pass+"$", "-test.coverprofile="+profile)
	run.Env = append(os.Environ(), shapeVariable+"="+shape, sizeVariable+"="+strconv.Itoa(size))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	e := &executed{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var statements, count int
		place, numbers, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			continue
		}
		if _, err := fmt.Sscan(numbers, &statements, &count); err != nil {
			continue // the mode
		}
		e.total += statements * count
		e.blocks = append(e.blocks, block{place, statements * count})
	}
	if e.total == 0 {
		t.Fatal("nothing was counted")
	}
	return e
}
