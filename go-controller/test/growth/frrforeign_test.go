// SPDX-License-Identifier: Apache-2.0

package growth

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// foreignNeighbors and foreignPreferences are the numbers of neighbors of an object of others, and of the prefixes with
// a local preference of each.
const foreignNeighbors, foreignPreferences = 500, 8

// TestForeignFRRPass is what is counted: two decisions for 200 nodes. With size 1, an object of others is for all
// nodes, and with size 2, each node has one of its own as well. Together, they are at the limit of a node.
func TestForeignFRRPass(t *testing.T) {
	size, err := strconv.Atoi(os.Getenv(sizeVariable))
	if err != nil {
		t.Skip("run by TestWorkForForeignObjectsIsSmall")
	}
	w := frrCluster(lyingNodes)
	object := func(name string, nodes ...string) {
		r := frrapi.Router{ASN: 64512}
		for i := range frrapi.MaxAdvertised {
			r.Prefixes = append(r.Prefixes, fmt.Sprintf("172.16.%d.%d/32", i>>8, i&255))
		}
		for i := range foreignNeighbors {
			n := frrapi.Neighbor{Session: frrapi.Session{ASN: 1, Address: fmt.Sprintf("10.9.%d.%d", i>>8, i&255)}}
			n.Advertise.Allowed.Mode = frrapi.AllowAll
			n.Advertise.LocalPref = []frrapi.LocalPrefPrefixes{{Prefixes: r.Prefixes[:foreignPreferences], LocalPref: 7}}
			r.Neighbors = append(r.Neighbors, n)
		}
		c := &world.FRRConfiguration{Name: name, Nodes: nodes,
			Foreign: frrapi.ConvertForeign(&frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{r}}})}
		if c.Foreign.Unread != "" {
			t.Fatal(c.Foreign.Unread)
		}
		w.FRR.Configurations = append(w.FRR.Configurations, c)
	}
	if size > 0 {
		object("for-all", w.Peers[0].Nodes...)
	}
	for i := 0; size > 1 && i < lyingNodes; i++ {
		object("only-"+w.Nodes[i].Name, w.Nodes[i].Name)
	}
	var state frrk8s.State
	for range 2 {
		layout := place.Compute(w)
		l := bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
		plan := frrk8s.Render(w, l, &state)
		if why := plan.LeftOut("tor"); why != "" {
			t.Fatal(why)
		}
		frrk8s.Rivals(w)
	}
}

// An object of others is merged once for all nodes with the same ones, and in proportion to its size, however it is
// combined with others.
func TestWorkForForeignObjectsIsSmall(t *testing.T) {
	const most = 20 // statements of two decisions per neighbor, local preference and prefix
	binary := compiled(t, frrPackages)
	none, shared, own := work(t, binary, "TestForeignFRRPass", "", 0), work(t, binary, "TestForeignFRRPass", "", 1),
		work(t, binary, "TestForeignFRRPass", "", 2)
	size := foreignNeighbors*(1+foreignPreferences) + frrapi.MaxAdvertised
	once, each := (shared.total-none.total)/size, (own.total-none.total)/(2*size*lyingNodes)
	t.Logf("%d statements without, %d with one object, %d with one per node: %d and %d", none.total, shared.total,
		own.total, once, each)
	if once > most {
		t.Errorf("%d statements, want at most %d; most of it is in\n%s", once, most, shared.most())
	}
	if each > most {
		t.Errorf("%d statements in each object, want at most %d; most of it is in\n%s", each, most, own.most())
	}
}
