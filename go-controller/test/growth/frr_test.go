// SPDX-License-Identifier: Apache-2.0

package growth

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const frrPackages = "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp," +
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s,slices,maps"

// TestFRRPass is what is counted: the objects for frr-k8s of Services with a pod on each node and policy Local, and
// what is to be written when a tenant gives them another local preference.
func TestFRRPass(t *testing.T) {
	nodes, err := strconv.Atoi(os.Getenv(sizeVariable))
	if err != nil {
		t.Skip("run by TestWorkForFRRGrowsWithNodes")
	}
	w := &world.Snapshot{FRR: &world.FRR{Namespace: "frr"}}
	peer := &world.Peer{Name: "tor", MyASN: 64512, PeerASN: 64513, Addr: netip.MustParseAddr("10.50.0.1"), Port: 179,
		Hold: 90 * time.Second, Keepalive: 30 * time.Second, Connect: 5 * time.Second, FRRK8s: true}
	preference := uint32(100)
	ad := &world.Advertisement{Name: "all", EveryPool: true, Pools: []string{"public"}, Length4: 32, Length6: 128,
		LocalPref: &preference}
	slice := &world.Slice{Family: world.IPv4, Ports: []world.Port{{Port: 80, Protocol: world.TCP}}}
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		w.Nodes = append(w.Nodes, &world.Node{Name: name, Hostname: name,
			External: []netip.Addr{netip.AddrFrom4([4]byte{10, 50, byte(i >> 8), byte(i)})}})
		peer.Nodes, ad.Nodes = append(peer.Nodes, name), append(ad.Nodes, name)
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{
			Addr: netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}), Node: name, Ready: true, Serving: true})
	}
	w.Peers, w.Advertisements = []*world.Peer{peer}, []*world.Advertisement{ad}
	w.Pools = []*world.Pool{{Name: "public", AutoAssign: true,
		Ranges: []netipx.IPRange{netipx.RangeOfPrefix(netip.MustParsePrefix("192.168.0.0/16"))}}}
	for i := range 20 {
		a := []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 0, byte(i)})}
		w.Services = append(w.Services, &world.Service{Key: world.Key{Namespace: "shop", Name: fmt.Sprint("s", i)},
			Families: []world.Family{world.IPv4}, Assigned: a, Given: a, LocalPolicy: true, Slices: []*world.Slice{slice},
			Ports: []world.Port{{Port: 80, Protocol: world.TCP}}})
	}
	for range 2 {
		layout := place.Compute(w)
		l := bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
		objects := frrk8s.Render(w, l, &frrk8s.State{}).Objects
		if c := frrk8s.Diff(objects, w.FRR); len(c.Put) < nodes {
			t.Fatalf("%d writes for %d nodes", len(c.Put), nodes)
		}
		for _, o := range objects {
			w.FRR.Configurations = append(w.FRR.Configurations, &world.FRRConfiguration{Name: o.Name, Peer: o.Peer,
				Nodes: o.Nodes, Spec: o.Spec})
		}
		preference++
	}
}

// One tenant can have a prefix in the objects of each node.
func TestWorkForFRRGrowsWithNodes(t *testing.T) {
	const few, many = 100, 1000
	binary := compiled(t, frrPackages)
	before, after := work(t, binary, "TestFRRPass", "", few), work(t, binary, "TestFRRPass", "", many)
	growth := float64(after.total) / float64(before.total)
	t.Logf("%d statements, and %d: %.1f times as many", before.total, after.total, growth)
	if growth > mostGrowth {
		t.Errorf("%d nodes take %.1f times the work of %d, want at most %d; most of it is in\n%s", many, growth, few,
			mostGrowth, after.most())
	}
}

// lyingNodes is the number of nodes whose FRRNodeStates are forged.
const lyingNodes = 200

// frrCluster returns a cluster with two Services that a peer on all nodes advertises.
func frrCluster(nodes int) *world.Snapshot {
	w := &world.Snapshot{Now: time.Unix(1_800_000_000, 0), FRR: &world.FRR{Namespace: "frr",
		Nodes: map[string]*world.FRRNode{}, Sessions: map[string]map[string]string{}}}
	peer := &world.Peer{Name: "tor", MyASN: 64512, PeerASN: 64513, Addr: netip.MustParseAddr("10.50.0.1"), Port: 179,
		Hold: 90 * time.Second, Keepalive: 30 * time.Second, Connect: 5 * time.Second, FRRK8s: true}
	ad := &world.Advertisement{Name: "all", EveryPool: true, Pools: []string{"public"}, Length4: 32, Length6: 128}
	slice := &world.Slice{Family: world.IPv4, Ports: []world.Port{{Port: 80, Protocol: world.TCP}}, Endpoints: []world.
		Endpoint{{Addr: netip.MustParseAddr("10.244.0.1"), Node: "n0000", Ready: true, Serving: true}}}
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		w.Nodes = append(w.Nodes, &world.Node{Name: name, Hostname: name,
			External: []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 1, byte(i)})}})
		peer.Nodes, ad.Nodes = append(peer.Nodes, name), append(ad.Nodes, name)
	}
	w.Peers, w.Advertisements = []*world.Peer{peer}, []*world.Advertisement{ad}
	w.Pools = []*world.Pool{{Name: "public", AutoAssign: true,
		Ranges: []netipx.IPRange{netipx.RangeOfPrefix(netip.MustParsePrefix("172.0.0.0/8"))}}}
	for i := range 2 {
		a := []netip.Addr{netip.AddrFrom4([4]byte{172, 255, 255, byte(i)})}
		w.Services = append(w.Services, &world.Service{Key: world.Key{Namespace: "shop", Name: fmt.Sprint("s", i)},
			Families: []world.Family{world.IPv4}, Assigned: a, Given: a, Slices: []*world.Slice{slice},
			Ports: []world.Port{{Port: 80, Protocol: world.TCP}}})
	}
	return w
}

// TestLyingFRRPass is what is counted: two decisions for two Services and 200 nodes, of which each reports a number of
// prefixes of its own.
func TestLyingFRRPass(t *testing.T) {
	size, err := strconv.Atoi(os.Getenv(sizeVariable))
	if err != nil {
		t.Skip("run by TestWorkForForgedReportsIsSmall")
	}
	w := frrCluster(lyingNodes)
	for i, n := range w.Nodes {
		var list []netip.Prefix
		for n := range size {
			list = append(list, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(i), byte(n >> 8), byte(n)}), 32))
		}
		w.FRR.Nodes[n.Name] = &world.FRRNode{Running: frrapi.Running{"10.50.0.1": list}}
		w.FRR.Sessions[n.Name] = map[string]string{"10.50.0.1": "Established"}
	}
	w.AddFRRSessions()
	var state frrk8s.State
	for range 2 {
		layout := place.Compute(w)
		l := bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
		plan := frrk8s.Render(w, l, &state)
		if size > 0 && plan.NotWithdrawn("tor") == "" {
			t.Error("nothing is overdue")
		}
		survey := l.SurveyFRR(plan)
		for _, s := range w.Services {
			if by := survey.Of(s, s.Assigned[0]); by == nil || len(by.Nodes) > 0 {
				t.Errorf("%s is announced by %+v", s.Key, by)
			}
			survey.Overdue(s, s.Assigned[0])
		}
	}
}

// A node can report routes of all nodes, as many as are read. Each costs comparisons only.
func TestWorkForForgedReportsIsSmall(t *testing.T) {
	const most = 40 // statements of two decisions
	binary := compiled(t, frrPackages)
	honest, forged := work(t, binary, "TestLyingFRRPass", "", 0),
		work(t, binary, "TestLyingFRRPass", "", frrapi.MaxAdvertised)
	each := (forged.total - honest.total) / (lyingNodes * frrapi.MaxAdvertised)
	t.Logf("%d statements without, and %d: %d per forged prefix", honest.total, forged.total, each)
	if each > most {
		t.Errorf("%d statements per forged prefix, want at most %d; most of it is in\n%s", each, most, forged.most())
	}
}
