// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// After random changes, one every 10 ms, each peer has exactly the routes that were last desired.
func TestChurn(t *testing.T) {
	t.Parallel()
	const peers, changes = 6, 300
	s := newSite(t, 50)
	var lines []string
	for i := range peers {
		lines = append(lines, s.neighbor(i%2 == 1, 2+i, nodeASN)...)
	}
	s.configure(t, lines...)
	n := newNode(t, speaker.Options{DrainTime: 50 * time.Millisecond})
	random := rand.New(rand.NewPCG(1, changes))
	desired := map[int]bgp.Session{}
	for range changes {
		i := random.IntN(peers)
		name := fmt.Sprint(i)
		if _, kept := desired[i]; kept && random.IntN(300) == 0 {
			delete(desired, i)
			n.forget(name)
		} else {
			desired[i] = s.changed(desired[i], name, i, random)
			n.want(desired[i])
		}
		<-time.After(10 * time.Millisecond) // so that changes meet sessions in all phases
	}
	for i := range peers {
		c := s.changed(desired[i], fmt.Sprint(i), i, random)
		c.Leaving = false
		desired[i] = c
		n.want(c)
	}
	for i, c := range desired {
		n.established(t, c.Peer)
		eventually(t, func(ctx context.Context) error { return s.hasExactly(ctx, s.host(i%2 == 1, 2+i).Addr(), c.Routes) })
	}
}

// changed returns a session of peer i with a route added or removed, or with other attributes. Sometimes it returns a
// different session, or one that is leaving.
func (s *site) changed(c bgp.Session, name string, i int, random *rand.Rand) bgp.Session {
	if c.Peer == "" || random.IntN(300) == 0 {
		routes := c.Routes
		c = s.session(name, i%2 == 1, 2+i)
		c.Neighbor.GracefulRestart, c.Routes = random.IntN(2) == 0, routes
	}
	c.Leaving = random.IntN(300) == 0
	a := netip.AddrFrom4([4]byte{203, 0, 113, byte(random.IntN(50))})
	if random.IntN(2) == 0 {
		a = netip.MustParseAddr(fmt.Sprintf("2001:db8:ffff::%x", random.IntN(50)))
	}
	prefix := netip.PrefixFrom(a, a.BitLen())
	routes := map[netip.Prefix]bgp.Attributes{}
	maps.Copy(routes, c.Routes)
	if _, there := routes[prefix]; there && random.IntN(2) == 0 {
		delete(routes, prefix)
	} else {
		med := random.Uint32N(1000)
		routes[prefix] = bgp.Attributes{NextHop: s.host(a.Is6(), 2+i).Addr(), MED: &med}
	}
	c.Routes = routes
	return c
}

// hasExactly compares the routes that the router has received from a neighbor with the expected routes.
func (s *site) hasExactly(ctx context.Context, from netip.Addr, want map[netip.Prefix]bgp.Attributes) error {
	seen := 0
	for _, family := range []string{"ipv4", "ipv6"} {
		var table struct {
			Routes map[netip.Prefix][]struct{ Metric uint32 }
		}
		if err := s.Show(ctx, fmt.Sprintf("show bgp %s unicast neighbors %s routes json", family, from), &table); err != nil {
			return err
		}
		for prefix, paths := range table.Routes {
			a, wanted := want[prefix]
			if !wanted || len(paths) != 1 || paths[0].Metric != *a.MED {
				return fmt.Errorf("%s from %s: %v, want it: %v", prefix, from, paths, wanted)
			}
			seen++
		}
	}
	if seen != len(want) {
		return fmt.Errorf("%d routes from %s, want %d", seen, from, len(want))
	}
	return nil
}
