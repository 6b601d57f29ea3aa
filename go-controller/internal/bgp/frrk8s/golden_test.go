// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestGoldens(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) string {
		w := c.World
		plan := render(w)
		var out strings.Builder
		for _, o := range plan.Objects {
			out.WriteString(objectText(&o))
		}
		for _, p := range w.Peers {
			for _, f := range slices.Concat(p.Findings, plan.Findings(p.Name)) {
				fmt.Fprintf(&out, "finding %s: %s: %s\n", p.Name, f.Reason, f.Message)
			}
			if why := plan.LeftOut(p.Name); why != "" {
				fmt.Fprintf(&out, "left out %s: %s\n", p.Name, why)
			}
		}
		unusable := frrk8s.Inexpressible(w)
		for _, ad := range slices.Sorted(maps.Keys(unusable)) {
			fmt.Fprintf(&out, "finding %s: %s: %s\n", ad, unusable[ad].Reason, unusable[ad].Message)
		}
		changes := frrk8s.Diff(plan.Objects, w.FRR)
		if len(w.FRR.Configurations) > 0 {
			var is writes
			changes.Apply(&is)
			fmt.Fprintf(&out, "writes: %s\n", strings.Join(is, ", "))
		}
		checkMerges(t, w, plan)
		return out.String()
	})
}

func render(w *world.Snapshot) *frrk8s.Plan {
	for _, s := range w.Services {
		s.Given = s.Assigned
	}
	layout := place.Compute(w)
	l := bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
	return frrk8s.Render(w, l, &frrk8s.State{})
}

// checkMerges checks that frr-k8s merges all objects on each node of ours.
func checkMerges(t *testing.T, w *world.Snapshot, plan *frrk8s.Plan) {
	t.Helper()
	merged := map[string]*frrk8s.Merged{}
	for _, o := range plan.Objects {
		for _, n := range o.Nodes {
			if merged[n] == nil {
				merged[n] = frrk8s.NewMerged(w.FRR.Passwords)
				for _, c := range w.FRR.Configurations {
					if c.Peer == "" && slices.Contains(c.Nodes, n) {
						if conflict := merged[n].AddConverted(c.Name, c.Foreign); conflict != nil {
							t.Errorf("objects for a node that is frozen: %s", conflict)
						}
					}
				}
			}
			if conflict := merged[n].Add(o.Name, &o.Spec); conflict != nil {
				t.Errorf("node %s: %s", n, conflict)
			}
		}
	}
}

func objectText(o *frrk8s.Object) string {
	var out strings.Builder
	r := &o.Spec.BGP.Routers[0]
	n := r.Neighbors[0]
	advertise := n.Advertise
	n.Advertise = frrapi.Advertise{}
	session, _ := json.Marshal(n)
	fmt.Fprintf(&out, "%s on %s: AS %d %s%s\n", o.Name, strings.Join(o.Spec.NodeSelector.MatchExpressions[0].Values, " "),
		r.ASN, r.ID, session)
	for _, p := range o.Spec.BGP.BFDProfiles {
		text, _ := json.Marshal(p)
		fmt.Fprintf(&out, "  BFD %s\n", text)
	}
	for _, p := range r.Prefixes {
		fmt.Fprintf(&out, "  %s", p)
		for _, l := range advertise.LocalPref {
			if slices.Contains(l.Prefixes, p) {
				fmt.Fprintf(&out, ", local-pref %d", l.LocalPref)
			}
		}
		for _, c := range advertise.Community {
			if slices.Contains(c.Prefixes, p) {
				fmt.Fprintf(&out, ", %s", c.Community)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// writes are what is written.
type writes []string

// Answers implements frrk8s.Writer.
func (w *writes) Answers(string) error { return nil }

// Put implements frrk8s.Writer.
func (w *writes) Put(o frrk8s.Object) error {
	*w = append(*w, "put "+o.Name)
	return nil
}

// Delete implements frrk8s.Writer.
func (w *writes) Delete(name string) error {
	*w = append(*w, "delete "+name)
	return nil
}
