// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// The BFD timers between gateways are set for the strictest domain, key by key, and never slower than before. The
// original values, and changes that others made meanwhile, are present after removal.
func TestTimersComeAndGo(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	s.nbctl(t, "set", "NB_Global", ".", "options:bfd-min-rx=900", "options:bfd-mult=2", "options:name=theirs")
	d, _ := dial(t, s)
	options := func() string { return s.nbctl(t, "get", "NB_Global", ".", "options") }
	without := options()
	for _, step := range []struct {
		name   string
		detect []time.Duration // per domain
		want   string
	}{
		{"one", []time.Duration{500 * time.Millisecond}, `{bfd-min-rx="500", bfd-mult="2", name=theirs}`},
		{"a stricter one", []time.Duration{500 * time.Millisecond, 50 * time.Millisecond},
			`{bfd-min-rx="50", bfd-min-tx="50", bfd-mult="2", name=theirs}`},
		{"a slack one", []time.Duration{2 * time.Second}, `{bfd-min-rx="900", bfd-mult="2", name=theirs}`},
		{"none", nil, without},
	} {
		f := topology(1)
		shape := f.Domains[0]
		f.Domains = nil
		for i, detect := range step.detect {
			one := shape
			one.Name, one.Detect = fmt.Sprint("lan", i), detect
			one.Shards = slices.Clone(shape.Shards)
			one.Shards[0].ID.Domain = one.Name
			f.Domains = append(f.Domains, one)
		}
		configure(t, d, f)
		if got := options(); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
	if ids := s.nbctl(t, "get", "NB_Global", ".", "external_ids"); strings.Contains(ids, "bfd") {
		t.Errorf("left behind: %s", ids)
	}
}

// OVN-Kubernetes replaces all options twice a minute, by those that it has read before. If it writes timers back that
// were changed or restored meanwhile, they are ours and do not stay.
func TestTimersThatAreWrittenBackDoNotStay(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	s.nbctl(t, "set", "NB_Global", ".", "options:name=theirs")
	d, _ := dial(t, s)
	none := topology(1)
	none.Domains = nil
	with := func(detect time.Duration) *plan.Topology {
		f := topology(1)
		f.Domains[0].Detect = detect
		return f
	}
	options := func() string { return s.nbctl(t, "get", "NB_Global", ".", "options") }
	for _, step := range []struct {
		name     string
		topology *plan.Topology
		want     string
	}{
		{"changed", with(100 * time.Millisecond), `{bfd-min-rx="100", name=theirs}`},
		{"restored", none, `{name=theirs}`},
	} {
		configure(t, d, with(200*time.Millisecond))
		if got, want := options(), `{bfd-min-rx="200", name=theirs}`; got != want {
			t.Fatalf("before: %s, want %s", got, want)
		}
		configure(t, d, step.topology)
		s.nbctl(t, "set", "NB_Global", ".", "options:bfd-min-rx=200") // what the other client has read before
		await.True(t, step.name+": the stale write is drift", func() bool {
			what, _ := d.differs(pendingChecks{topology: true})
			return what != ""
		})
		configure(t, d, step.topology)
		if got := options(); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
		configure(t, d, none)
		if got := options(); got != `{name=theirs}` {
			t.Errorf("%s, and then removed: %s", step.name, got)
		}
	}
	if ids := s.nbctl(t, "get", "NB_Global", ".", "external_ids"); strings.Contains(ids, "bfd") {
		t.Errorf("left behind: %s", ids)
	}
}
