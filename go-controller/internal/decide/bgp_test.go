// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A decision does not read the endpoints of a Service with externalTrafficPolicy: Local if they are those of the
// decision before: a tenant may write a hundred thousand, and all others wait.
func TestNodesOfEndpointsAreReadAfterChangesOnly(t *testing.T) {
	s := worldtest.Service(world.Key{Namespace: "shop", Name: "web"}, 1)
	s.LocalPolicy, s.Slices[0].Endpoints[0].Node = true, "n2"
	w := worldtest.Small(1, s)
	w.Peers = []*world.Peer{{Name: "router", Nodes: []string{"n1", "n2"}, MyASN: 64512, PeerASN: 64513,
		Addr: netip.MustParseAddr("192.0.2.1")}}
	w.Advertisements = []*world.Advertisement{{Name: "all", Pools: []string{w.Pools[0].Name}, Nodes: w.Peers[0].Nodes,
		Length4: 32}}
	for i, n := range w.Nodes {
		n.External = []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)})}
	}
	var st State
	nodes := func(s *world.Service) string {
		w.Services = []*world.Service{s}
		d := st.Decide(w)
		return fmt.Sprint(d.BGP.Survey().Of(s, d.Allocation.Services[s.Key].Addrs[0]).NotAdvertising)
	}
	if got := nodes(s); got != "[n2]" {
		t.Fatalf("on %s", got)
	}
	s.Slices[0].Endpoints[0].Node = "n1" // in place, which never happens
	if got := nodes(s); got != "[n2]" {
		t.Errorf("unchanged endpoints were read again: on %s", got)
	}
	changed := *s
	if got := nodes(&changed); got != "[n1]" {
		t.Errorf("changed endpoints were not read: on %s", got)
	}
}
