// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// onSegment gives the nodes gateways on the segment of worldtest.Small.
func onSegment(w *world.Snapshot) *world.Snapshot {
	for i, n := range w.Nodes {
		n.External = []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 0, byte(11 + i)})}
		n.GatewayMAC = "02:42:0a:32:00:0" + string(rune('b'+i))
	}
	return w
}

// Of Services that share an address, the oldest one with an EgressService decides, and the plans of all have its host.
// The order of the snapshot does not matter.
func TestServicesAtAnAddressHaveOneHost(t *testing.T) {
	var services []*world.Service
	for i, name := range []string{"none", "old", "young"} {
		s := worldtest.Service(world.Key{Namespace: "shop", Name: name}, i+1)
		s.Ports[0].Port, s.SharingKey, s.Requested = uint16(80+i), "shop", []netip.Addr{netip.MustParseAddr("10.50.0.100")}
		services = append(services, s)
	}
	old, young := services[1].Key, services[2].Key
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		var list []*world.Service
		for _, i := range order {
			list = append(list, services[i])
		}
		w := onSegment(worldtest.Small(5, list...))
		w.EgressHosts = map[world.Key]string{young: "n3", old: "n2"}
		var st State
		d := st.Decide(w)
		if e := d.Egress[services[0].Requested[0]]; e.Service != old || e.Node != "n2" || e.MAC != "02:42:0a:32:00:0c" {
			t.Errorf("%v: %+v", order, e)
		}
		for _, s := range services {
			if p := d.Plans[s.Key]; p == nil || p.VIPs[0].EgressMAC != "02:42:0a:32:00:0c" {
				t.Errorf("%v: plan of %s: %+v", order, s.Key, p)
			}
		}
	}
}

// The host has to be in the address' own subnet, and its MAC address must not be that of a shard of any L2Domain:
// what it forwards would circulate.
func TestHostThatWouldForwardInCirclesGetsNoReplies(t *testing.T) {
	other := netip.MustParsePrefix("10.60.0.0/24")
	for name, test := range map[string]struct {
		subnet netip.Prefix // second one of the L2Domain
		addr   string       // of the gateway of n2
		mac    string
		want   EgressProblem
	}{
		"in the subnet":      {other, "10.50.0.12", "02:42:0a:32:00:0c", 0},
		"in another subnet":  {other, "10.60.0.12", "02:42:0a:32:00:0c", EgressOffSegment},
		"in another family":  {netip.MustParsePrefix("fd50::/64"), "fd50::12", "02:42:0a:32:00:0c", EgressOffSegment},
		"MAC of its shard":   {other, "10.50.0.12", world.ShardID{Domain: "lan"}.SegmentMAC(""), EgressNoMAC},
		"MAC of other shard": {other, "10.50.0.12", world.ShardID{Domain: "dmz"}.SegmentMAC(""), EgressNoMAC},
	} {
		s := worldtest.Service(world.Key{Namespace: "shop", Name: "web"}, 1)
		w := onSegment(worldtest.Small(5, s))
		dmz := *w.Domains[0]
		dmz.Name, dmz.Pools, dmz.PhysicalNetwork = "dmz", []string{"dmz"}, "dmznet"
		dmz.Subnets = []world.Subnet{{Prefix: netip.MustParsePrefix("10.70.0.0/24")}}
		w.Domains[0].Subnets = append(w.Domains[0].Subnets, world.Subnet{Prefix: test.subnet})
		w.Domains = append(w.Domains, &dmz)
		w.Nodes[1].External, w.Nodes[1].GatewayMAC = []netip.Addr{netip.MustParseAddr(test.addr)}, test.mac
		w.EgressHosts = map[world.Key]string{s.Key: "n2"}
		var st State
		e, ok := st.Decide(w).Egress[netip.MustParseAddr("10.50.0.100")]
		if !ok || e.Problem != test.want || (e.MAC == "") != (test.want != 0) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// An amendment would not give the other Services at an address the host of a Service that is created or deleted.
func TestServicesWithAnEgressServiceAreNotAmended(t *testing.T) {
	first, second := worldtest.Service(world.Key{Namespace: "shop", Name: "first"}, 1),
		worldtest.Service(world.Key{Namespace: "shop", Name: "second"}, 2)
	for name, test := range map[string]struct {
		hosts map[world.Key]string
		want  bool
	}{
		"with one": {map[world.Key]string{second.Key: "n2"}, false},
		"none":     {nil, true},
	} {
		w := onSegment(worldtest.Small(5, first))
		w.EgressHosts = test.hosts
		var st State
		if got := st.Amend(st.Decide(w), second.Key, world.Change{Is: second}); got != test.want {
			t.Errorf("%s: created: amended %v", name, got)
		}
		w = onSegment(worldtest.Small(5, first, second))
		w.EgressHosts = test.hosts
		st = State{}
		if got := st.Amend(st.Decide(w), second.Key, world.Change{Was: second}); got != test.want {
			t.Errorf("%s: deleted: amended %v", name, got)
		}
	}
}
