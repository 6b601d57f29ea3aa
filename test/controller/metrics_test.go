// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// metric is a row of the table in docs/metrics.md.
type metric struct{ Type, Labels, Meaning string }

// metricsAreDocumented compares the metrics of a process that has done each kind of work once with the table for users.
func metricsAreDocumented(t *testing.T, c *cluster) {
	o := databases(t)
	p := c.controller(t, o)
	c.apply(t, baseObjects)
	c.apply(t, `{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: BGPPeer, metadata: {name: tor},
spec: {myASN: 64512, peerASN: 64513, peerAddress: 10.50.0.1}}`)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	c.addresses(t, "web")
	eventually(t, "load balancers", func() bool { return len(o.loadBalancers(t)) > 0 })
	want := documented(t)
	var got map[string]metric
	eventually(t, "everything was counted once", func() bool {
		got = p.exported(t)
		return len(got) >= len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/metrics.md - and the process +:\n%s", diff)
	}
	problems, err := testutil.GatherAndLint(p.metrics)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}

	// Deleted objects have no series.
	c.delete(t, "web")
	c.kubectl(t, "delete", "ippool", "lan")
	eventually(t, "no series of the pool nor of Services is left", func() bool {
		n, err := testutil.GatherAndCount(p.metrics, "ovnkube_slb_services", "ovnkube_slb_pool_capacity_addresses",
			"ovnkube_slb_pool_assigned_addresses", "ovnkube_slb_pool_available_addresses",
			"ovnkube_slb_pool_cooling_down_addresses", "ovnkube_slb_pool_reserved_addresses")
		return n == 0 && err == nil
	})
}

// documented parses the table.
func documented(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]metric{}
	controllers, _, _ := strings.Cut(string(text), "## On nodes")
	for line := range strings.Lines(controllers) {
		if !strings.HasPrefix(line, "| `ovnkube_slb_") {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			t.Fatalf("not four cells: %s", line)
		}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cell), "`", "")
		}
		out[cells[1]] = metric{cells[2], cells[3], cells[4]}
	}
	return out
}

func (p *process) exported(t *testing.T) map[string]metric {
	t.Helper()
	out := map[string]metric{}
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		// The table lists the labels in reading order.
		slices.SortFunc(labels, func(a, b string) int { return slices.Index(reading(), a) - slices.Index(reading(), b) })
		if h := f.GetMetric()[0].GetHistogram(); h.GetSampleCount() == 0 && h != nil {
			continue // no observations yet
		}
		out[f.GetName()] = metric{strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()}
	}
	return out
}

func reading() []string {
	return []string{"allocated", "pool", "kind", "family", "reason", "result", "bgppeer", "state"}
}
