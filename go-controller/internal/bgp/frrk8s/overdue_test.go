// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// reporting returns a cluster in which all nodes report an established session and the prefixes of all Services.
func reporting(nodes int) (*world.Snapshot, *bgp.Layout) {
	w := many(2, nodes)
	w.Now = time.Unix(1_800_000_000, 0)
	w.FRR = &world.FRR{Namespace: "frr", Nodes: map[string]*world.FRRNode{}, Sessions: map[string]map[string]string{}}
	var all []netip.Prefix
	for _, s := range w.Services {
		s.Given = s.Assigned
		all = append(all, netip.PrefixFrom(s.Assigned[0], 32))
	}
	for _, n := range w.Nodes {
		w.FRR.Nodes[n.Name] = &world.FRRNode{Running: frrapi.Running{"10.50.0.1": all}}
		w.FRR.Sessions[n.Name] = map[string]string{"10.50.0.1": "Established"}
	}
	layout := place.Compute(w)
	return w, bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
}

// A withdrawal is overdue after WithdrawTime, or at once for a process that has just started.
func TestWithdrawalIsOverdueAfterAWhile(t *testing.T) {
	w, l := reporting(3)
	prefix := netip.PrefixFrom(w.Services[0].Assigned[0], 32)
	var state frrk8s.State
	if plan := frrk8s.Render(w, l, &state); plan.Overdue("tor", prefix) != nil || plan.NotWithdrawn("tor") != "" {
		t.Errorf("all nodes may advertise: %s", plan.NotWithdrawn("tor"))
	}
	w.Nodes[0].NetworkUnavailable = true
	plan := frrk8s.Render(w, l, &state)
	if plan.NotWithdrawn("tor") != "" || !plan.Due.Equal(w.Now.Add(frrk8s.WithdrawTime)) {
		t.Errorf("%s, due %s, want nothing before %s", plan.NotWithdrawn("tor"), plan.Due, frrk8s.WithdrawTime)
	}
	started := frrk8s.Render(w, l, &frrk8s.State{})
	w.Now = w.Now.Add(frrk8s.WithdrawTime)
	for _, p := range []*frrk8s.Plan{started, frrk8s.Render(w, l, &state)} {
		if got := fmt.Sprint(p.Overdue("tor", prefix)); got != "["+w.Nodes[0].Name+"]" || p.NotWithdrawn("tor") == "" {
			t.Errorf("overdue: %s, %q", got, p.NotWithdrawn("tor"))
		}
	}
	w.FRR.Nodes[w.Nodes[0].Name].Running = nil
	if text := frrk8s.Render(w, l, &state).NotWithdrawn("tor"); text != "" {
		t.Error("withdrawn, but", text)
	}
}

// Two BGPPeers can be the same router of different nodes. What a node advertises counts for the one that selects it.
func TestWithdrawalsOfTwinsAreTheirOwn(t *testing.T) {
	w, _ := reporting(4)
	twin := *w.Peers[0]
	twin.Name, twin.Nodes = "twin", w.Peers[0].Nodes[2:]
	w.Peers[0].Nodes = w.Peers[0].Nodes[:2]
	w.Peers = append(w.Peers, &twin)
	layout := place.Compute(w)
	l := bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
	plan := frrk8s.Render(w, l, &frrk8s.State{})
	if plan.NotWithdrawn("tor")+plan.NotWithdrawn("twin") != "" {
		t.Errorf("tor: %q, twin: %q, want nothing", plan.NotWithdrawn("tor"), plan.NotWithdrawn("twin"))
	}
	w.Nodes[3].NetworkUnavailable = true
	plan = frrk8s.Render(w, l, &frrk8s.State{})
	if plan.NotWithdrawn("tor") != "" || plan.NotWithdrawn("twin") == "" {
		t.Errorf("tor: %q, twin: %q, want twin only", plan.NotWithdrawn("tor"), plan.NotWithdrawn("twin"))
	}
	// Our daemon is to have the session of all nodes of the twin, and of those of tor, which FRR has.
	w.Nodes[3].NetworkUnavailable, twin.FRRK8s = false, false
	twin.Nodes = append(slices.Clone(w.Peers[0].Nodes), twin.Nodes...)
	l = bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
	plan = frrk8s.Render(w, l, &frrk8s.State{})
	if plan.NotWithdrawn("tor") != "" || !strings.HasPrefix(plan.NotWithdrawn("twin"), "not withdrawn by n0002, n0003:") {
		t.Errorf("tor: %q, twin: %q, want the other nodes of the twin only", plan.NotWithdrawn("tor"),
			plan.NotWithdrawn("twin"))
	}
}

// A node that reports more than FRR is given, or the end of a Service on many nodes, takes a bounded share of the watch
// for overdue withdrawals, and leaves those of others in it.
func TestOverdueWithdrawalsAreBounded(t *testing.T) {
	w, l := reporting(100)
	liar := w.FRR.Nodes[w.Nodes[0].Name].Running
	for i := range 5 * frrk8s.MaxRoutes {
		liar["10.50.0.1"] = append(liar["10.50.0.1"],
			netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), 32))
	}
	slices.SortFunc(liar["10.50.0.1"], netip.Prefix.Compare)
	named := 0
	plan := frrk8s.Render(w, l, &frrk8s.State{})
	for _, p := range liar["10.50.0.1"] {
		named += len(plan.Overdue("tor", p))
	}
	if named == 0 || named > frrk8s.MaxRoutes {
		t.Errorf("%d prefixes of one node, want some, at most %d", named, frrk8s.MaxRoutes)
	}
	var state frrk8s.State
	frrk8s.Render(w, l, &state)
	w.Nodes[99].NetworkUnavailable = true
	frrk8s.Render(w, l, &state)
	for _, n := range w.Nodes[1:] { // all others lose the route later
		n.NetworkUnavailable = true
	}
	w.Now = w.Now.Add(time.Minute)
	frrk8s.Render(w, l, &state)
	w.Now = w.Now.Add(time.Minute)
	prefix := netip.PrefixFrom(w.Services[0].Assigned[0], 32)
	if got := fmt.Sprint(frrk8s.Render(w, l, &state).Overdue("tor", prefix)); got != "["+w.Nodes[99].Name+"]" {
		t.Errorf("overdue: %s, want that of the node that came first", got)
	}
}
