// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// BGP is disabled and enabled for a whole cluster, and the node's decision takes effect on a real router.
func TestBGPDisabledByMode(t *testing.T) {
	t.Parallel()
	s := newSite(t, 60)
	s.configure(t, s.neighbor(false, 2, nodeASN)...)
	vip := netip.MustParseAddr("203.0.113.1")
	own := s.host(false, 2)
	w := &world.Snapshot{
		Pools: []*world.Pool{{Name: "far", AutoAssign: true, Ranges: []netipx.IPRange{netipx.IPRangeFrom(vip, vip)}}},
		Nodes: []*world.Node{{Name: "n1", External: []netip.Addr{own.Addr()}, Links: []netip.Prefix{own}}},
		Peers: []*world.Peer{{Name: "tor", MyASN: nodeASN, PeerASN: routerASN, Addr: s.host(false, 1).Addr(),
			Source: own.Addr(), Port: 179,
			Hold: 90 * time.Second, Keepalive: 30 * time.Second, Connect: 2 * time.Second, Nodes: []string{"n1"}}},
		Advertisements: []*world.Advertisement{{Name: "far", Pools: []string{"far"}, Nodes: []string{"n1"}, Length4: 32,
			Length6: 128}},
		Services: []*world.Service{{
			Key: world.Key{Namespace: "shop", Name: "web"}, Families: []world.Family{world.IPv4}, Assigned: []netip.Addr{vip},
			Given: []netip.Addr{vip},
			Ports: []world.Port{{Name: "http", Protocol: world.TCP, Port: 80}},
			Slices: []*world.Slice{{Family: world.IPv4, Ports: []world.Port{{Name: "http", Protocol: world.TCP, Port: 8080}},
				Endpoints: []world.Endpoint{{Addr: netip.MustParseAddr("10.244.1.2"), Node: "n1", Ready: true, Serving: true}}}},
		}},
	}
	s.logUpdates(t)
	n := newNode(t, speaker.Options{DrainTime: time.Second})
	decide := func(mode world.Mode) {
		next := *w
		next.Cluster.ModeSetting.Mode = mode
		n.Set(agent.Sessions(&next, "n1"))
	}
	path := func(ctx context.Context) (map[string]any, error) {
		return s.path(ctx, netip.PrefixFrom(vip, 32), own.Addr().String())
	}
	there := func() {
		t.Helper()
		n.established(t, "tor")
		eventually(t, func(ctx context.Context) error {
			p, err := path(ctx)
			if community := lookup(p, "community.string"); err != nil || community != "" {
				return fmt.Errorf("communities %s, %w", community, err)
			}
			return nil
		})
	}
	decide(world.Layer2AndBGP)
	there()
	for _, off := range []world.Mode{world.Layer2Only, world.Disabled} {
		before := len(s.log(t))
		decide(off)
		s.drained(t, own.Addr().String(), "", before)
		s.has(t, false, netip.PrefixFrom(vip, 32))
		if state := n.lost(t, "tor"); state.Phase != speaker.Idle {
			t.Errorf("mode %s: the session is %s", off, state.Phase)
		}
		decide(world.BGPOnly)
		there()
	}
}
