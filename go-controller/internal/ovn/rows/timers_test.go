// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// In a large cluster the nodes that are no gateway slow their sessions with the gateways, and gateways keep the
// interval among themselves. A single database can only slow all sessions. What another client has configured is never
// slowed.
func TestBFDOptionsOfLargeClusters(t *testing.T) {
	const gateway, worker, central = "c1", "c9", ""
	for _, c := range []struct {
		name    string
		nodes   int
		chassis string
		detect  []time.Duration
		options map[string]string
		want    string
	}{
		{"a worker of a small cluster", 1001, worker, []time.Duration{200}, nil, "bfd-min-rx=200"},
		{"a worker", 2000, worker, []time.Duration{200}, nil, "bfd-min-rx=400 bfd-min-tx=400"},
		{"a gateway", 2000, gateway, []time.Duration{200}, nil, "bfd-min-rx=200"},
		{"one database", 2000, central, []time.Duration{200}, nil, "bfd-min-rx=400 bfd-min-tx=400"},
		{"one database of a small cluster", 1001, central, []time.Duration{200}, nil, "bfd-min-rx=200"},
		{"a worker, and another domain is slow", 2000, worker, []time.Duration{100, 3000}, nil,
			"bfd-min-rx=400 bfd-min-tx=400"},
		{"a worker, and all domains are slow", 2000, worker, []time.Duration{3000}, nil, ""},
		{"a worker whose timers another client has set", 2000, worker, []time.Duration{200},
			map[string]string{"bfd-min-rx": "300", "bfd-min-tx": "100"}, ""},
		{"a worker that was configured for more nodes", 2000, worker, []time.Duration{200},
			map[string]string{"bfd-min-rx": "600", "bfd-min-tx": "600"}, "bfd-min-rx=400 bfd-min-tx=400"},
		{"a worker that was configured for more nodes than there are now", 4, worker, []time.Duration{200},
			map[string]string{"bfd-min-rx": "600", "bfd-min-tx": "600"}, "bfd-min-rx=200 bfd-min-tx="},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &plan.Topology{Cluster: world.Cluster{ID: "3f9a"}}
			if c.chassis != central {
				f.Zone = &plan.Zone{Node: "own", Chassis: c.chassis}
			}
			for i := range c.nodes {
				f.Nodes = append(f.Nodes, plan.Node{Name: fmt.Sprint("n", i), Chassis: fmt.Sprint("c", i)})
			}
			for i, detect := range c.detect {
				name := fmt.Sprint("lan", i)
				f.Domains = append(f.Domains, plan.Domain{Name: name, Detect: detect * time.Millisecond, DetectMultiplier: 3,
					Shards: []plan.Shard{{ID: world.ShardID{Domain: name}, Ordinal: i,
						Gateways: []plan.Gateway{{Node: "n1", Chassis: gateway}, {Node: "n2", Chassis: "c2"}},
						Anchors:  []netip.Prefix{netip.MustParsePrefix("10.50.0.50/16")}}}})
			}
			g, err := rows.NewBuilder(f, rows.Facts{Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16")}})
			if err != nil {
				t.Fatal(err)
			}
			ids := map[string]string{}
			if strings.Contains(c.name, "was configured") {
				for k, v := range c.options {
					ids["slb.k8s.ovn.org/"+k] = ">" + v
				}
			}
			changes, _ := g.BFDOptions(c.options, ids)
			var got []string
			for _, change := range changes {
				got = append(got, change.Key+"="+change.New)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}
