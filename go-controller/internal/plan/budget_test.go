// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// demand is a Service that needs n backends.
func demand(namespace string, number, n int) plan.ServiceDemand {
	key := world.Key{Namespace: namespace, Name: fmt.Sprint(number)}
	return plan.ServiceDemand{Key: key, Demand: plan.Demand{Backends: n}}
}

func TestBudget(t *testing.T) {
	for _, test := range []struct {
		what    string
		limits  world.Limits
		demands []plan.ServiceDemand
		want    string // Services that exceed a limit, with its number
	}{
		{"all fit", world.Limits{NamespaceBackends: 10, Backends: 20},
			[]plan.ServiceDemand{demand("a", 1, 5), demand("a", 2, 5), demand("b", 3, 10)}, "map[]"},
		{"older ones come first", world.Limits{NamespaceBackends: 10},
			[]plan.ServiceDemand{demand("a", 1, 6), demand("a", 2, 5), demand("a", 3, 4), demand("b", 4, 10)}, "map[a/2:5]"},
		{"one that exceeds its own limit takes nothing", world.Limits{ServiceBackends: 8, NamespaceBackends: 10},
			[]plan.ServiceDemand{demand("a", 1, 9), demand("a", 2, 8)}, "map[a/1:4]"},
		{"the largest is reduced", world.Limits{Backends: 20},
			[]plan.ServiceDemand{demand("a", 1, 5), demand("a", 2, 5), demand("a", 3, 5), demand("b", 4, 3), demand("c", 5, 6)},
			"map[a/3:6]"},
		{"several share equally", world.Limits{Backends: 20},
			[]plan.ServiceDemand{demand("a", 1, 8), demand("a", 2, 8), demand("b", 3, 8), demand("b", 4, 8), demand("c", 5, 4)},
			"map[a/2:6 b/4:6]"},
		{"the limit of the namespace applies before the share", world.Limits{NamespaceBackends: 10, Backends: 20},
			[]plan.ServiceDemand{demand("a", 1, 10), demand("a", 2, 10), demand("b", 3, 10)}, "map[a/2:5]"},
		{"one namespace too many", world.Limits{Backends: 20},
			[]plan.ServiceDemand{demand("a", 1, 7), demand("b", 2, 7), demand("c", 3, 7)}, "map[c/3:6]"},
		{"a small one takes what fits", world.Limits{Backends: 20},
			[]plan.ServiceDemand{demand("a", 1, 10), demand("b", 2, 10), demand("c", 3, 1)}, "map[b/2:6]"},
		{"the largest does not take what is left", world.Limits{Backends: 20},
			[]plan.ServiceDemand{demand("a", 1, 15), demand("b", 2, 7), demand("c", 3, 7)}, "map[a/1:6]"},
	} {
		_, excess := plan.NewBudget(test.limits, test.demands)
		got := map[string]plan.Limit{}
		for key, e := range excess {
			got[key.String()] = e.Limit
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, want %s", test.what, got, test.want)
		}
	}
}

// The rows of a Service are written in one transaction, which must not take longer than a connection lasts.
func TestAddressesOfAServiceAreLimited(t *testing.T) {
	s := &world.Service{Ports: []world.Port{{Protocol: world.TCP, Port: 80}, {Protocol: world.TCP, Port: 443}}}
	var vips []plan.VIP
	for addr := netip.MustParseAddr("10.50.0.0"); len(vips) < plan.MaxAddresses; addr = addr.Next() {
		vips = append(vips, plan.VIP{Addr: addr})
	}
	limit := func() plan.Limit {
		key := world.Key{Namespace: "a", Name: "1"}
		_, excess := plan.NewBudget(world.Limits{}, []plan.ServiceDemand{{Key: key, Demand: plan.DemandOf(s, vips)}})
		return excess[key].Limit
	}
	if got := limit(); got != plan.NoLimit {
		t.Errorf("%d addresses exceed limit %d", len(vips), got)
	}
	s.Ports = append(s.Ports, world.Port{Protocol: world.UDP, Port: 53})
	if got := limit(); got != plan.AddressesOfService {
		t.Errorf("%d addresses of two protocols exceed limit %d", len(vips), got)
	}
}

// A source range counts as 20 backends.
func TestSourceRangesCountInTheBudget(t *testing.T) {
	c := demand("a", 1, 1)
	c.Demand.SourceRanges, c.Demand.ACLRanges = 10, 20
	for limit, want := range map[int]plan.Limit{401: plan.NoLimit, 400: plan.BackendsOfNamespace} {
		_, excess := plan.NewBudget(world.Limits{NamespaceBackends: limit}, []plan.ServiceDemand{c})
		if excess[c.Key].Limit != want {
			t.Errorf("limit %d: %v", limit, excess)
		}
	}
}

// No namespace gets more than the limits, one that needs at most an equal share gets what it needs, and a change of one
// Service that Replace accepts has the same effect as a new Budget.
func FuzzBudget(f *testing.F) {
	f.Add([]byte{30, 60, 0x11, 0x25, 0x37, 0x41, 0x52, 0xf0, 0x93})
	f.Add([]byte("0Q1A")) // more namespaces than backends
	f.Add([]byte{9, 20, 0x1f, 0x2f, 0x1f, 0x0f, 0x13, 0x21})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 3 {
			return
		}
		limits := world.Limits{ServiceBackends: 12, NamespaceBackends: int(in[0] % 40), Backends: int(in[1] % 80)}
		var demands []plan.ServiceDemand
		for i, b := range in[2:] {
			demands = append(demands, demand(string('a'+rune(b>>4%5)), i, int(b&15)))
		}
		budget, excess := plan.NewBudget(limits, demands)
		checkShares(t, limits, demands, excess)
		// The youngest Service changes.
		changed := slices.Clone(demands)
		last := &changed[len(changed)-1]
		last.Demand.Backends = int(in[2] & 15)
		was := demands[len(demands)-1].Demand
		own, ok := budget.Replace(last.Key.Namespace, was, last.Demand)
		if !ok {
			if excess[last.Key].Limit == plan.NoLimit {
				checkAdvance(t, limits, budget, demands, excess, last.Demand)
			}
			return
		}
		want := maps.Clone(excess)
		delete(want, last.Key)
		if own.Limit != plan.NoLimit {
			want[last.Key] = own
		}
		if _, got := plan.NewBudget(limits, changed); !cmp.Equal(want, got) {
			t.Errorf("replaced: %s", cmp.Diff(want, got))
		}
	})
}

// checkAdvance checks that a Service, the last one, gets less at once, and more only within the limits of namespaces
// and, but for a tenth, of the cluster.
func checkAdvance(t *testing.T, limits world.Limits, budget *plan.Budget, demands []plan.ServiceDemand,
	excess map[world.Key]plan.Excess, is plan.Demand) {
	t.Helper()
	last := demands[len(demands)-1]
	own, ok := budget.Advance(last.Key.Namespace, last.Demand, is)
	fewer := is.Backends <= last.Demand.Backends
	if !ok && fewer {
		t.Error("fewer backends must wait")
	}
	if !ok || fewer {
		return
	}
	if own.Limit != plan.NoLimit {
		is.Backends = 0
	}
	in, total := is.Backends, is.Backends
	for _, c := range demands[:len(demands)-1] {
		if excess[c.Key].Limit != plan.NoLimit {
			continue
		}
		total += c.Demand.Backends
		if c.Key.Namespace == last.Key.Namespace {
			in += c.Demand.Backends
		}
	}
	if limits.NamespaceBackends > 0 && in > limits.NamespaceBackends {
		t.Errorf("%d backends of a namespace", in)
	}
	if limits.Backends > 0 && total > limits.Backends+limits.Backends/10 {
		t.Errorf("%d backends in total", total)
	}
}

// Endpoints that come in advance are bounded for a namespace and for all of them, however often they come and go.
func TestAdvancesAreBounded(t *testing.T) {
	const limit = 100_000
	demands := []plan.ServiceDemand{demand("big", 0, limit), demand("big", 1, limit)}
	for i := range 30 {
		demands = append(demands, demand(fmt.Sprint("small", i), i, 1))
	}
	budget, excess := plan.NewBudget(world.Limits{Backends: limit}, demands)
	if len(excess) != 2 {
		t.Fatalf("excess %v, want both of the large namespace", excess)
	}
	one, full := demands[2].Demand, demands[2].Demand
	full.Backends = limit / 40
	for i := range 30 { // 75,000 of the share that the large namespace does not use
		if _, ok := budget.Advance(fmt.Sprint("small", i), one, full); !ok {
			t.Fatalf("namespace %d may not use what is free", i)
		}
	}
	more := full
	given := 30 * full.Backends
	for range 50_000 {
		for _, namespace := range []string{"small0", "small1"} {
			more.Backends = full.Backends + 1
			if _, ok := budget.Advance(namespace, full, more); ok {
				given++
			}
		}
	}
	if most := limit + 2*limit/100; given > most {
		t.Errorf("%d backends, want at most %d", given, most)
	}
}

// checkShares checks what namespaces get within the limits.
func checkShares(t *testing.T, limits world.Limits, demands []plan.ServiceDemand, excess map[world.Key]plan.Excess) {
	t.Helper()
	needs, gets, total := map[string]int{}, map[string]int{}, 0
	for _, c := range demands {
		if c.Demand.Backends > limits.ServiceBackends {
			continue
		}
		needs[c.Key.Namespace] += c.Demand.Backends
		if excess[c.Key].Limit == plan.NoLimit {
			gets[c.Key.Namespace] += c.Demand.Backends
			total += c.Demand.Backends
		}
	}
	if limits.Backends > 0 && total > limits.Backends {
		t.Errorf("%d in total", total)
	}
	for namespace, need := range needs {
		if limits.NamespaceBackends > 0 && gets[namespace] > limits.NamespaceBackends {
			t.Errorf("namespace %s gets %d", namespace, gets[namespace])
		}
		if small := (limits.NamespaceBackends == 0 || need <= limits.NamespaceBackends) &&
			(limits.Backends == 0 || need <= limits.Backends/len(needs)); small && gets[namespace] != need {
			t.Errorf("namespace %s gets %d of %d", namespace, gets[namespace], need)
		}
	}
}
