// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestGoldens(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) string {
		for _, s := range c.World.Services {
			s.Given = s.Shown()
		}
		l := compute(c.World)
		var out strings.Builder
		for _, n := range sorted(c.World.Nodes, func(n *world.Node) string { return n.Name }) {
			for _, s := range l.For(n.Name) {
				out.WriteString(sessionText(n.Name, s))
			}
		}
		out.WriteString(findingsText(c.World, l))
		if c.World.Sessions != nil {
			out.WriteString(advertisersText(c.World, l))
		}
		return out.String()
	})
}

func compute(w *world.Snapshot) *bgp.Layout {
	layout := place.Compute(w)
	return bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
}

func sorted[T any](list []*T, name func(*T) string) []*T {
	return slices.SortedFunc(slices.Values(list), func(a, b *T) int { return cmp.Compare(name(a), name(b)) })
}

// sessionText formats a session. Default values are omitted.
func sessionText(node string, s bgp.Session) string {
	var out strings.Builder
	n := s.Neighbor
	fmt.Fprintf(&out, "%s to %s: AS %d, id %s", node, s.Peer, n.MyASN, n.RouterID)
	printIf := func(show bool, format string, args ...any) {
		if show {
			fmt.Fprintf(&out, ", "+format, args...)
		}
	}
	printIf(n.LocalASN != 0, "shown as %d", n.LocalASN)
	printIf(n.PeerASN != 0, "peer %d", n.PeerASN)
	printIf(n.Dynamic == bgp.InternalASN, "any internal peer")
	printIf(n.Dynamic == bgp.ExternalASN, "any external peer")
	printIf(n.Addr.IsValid(), "at %s:%d", n.Addr, n.Port)
	printIf(n.Interface != "", "on %s", n.Interface)
	printIf(n.Source.IsValid(), "from %s", n.Source)
	printIf(n.Hold.Seconds() != 90 || n.Keepalive.Seconds() != 30, "timers %s/%s", n.Hold, n.Keepalive)
	printIf(n.Password != "", "password %q", n.Password)
	printIf(n.TTL != 0, "TTL %d", n.TTL)
	printIf(n.SecurityHops != 0, "within %s", world.Count(n.SecurityHops, "hop"))
	printIf(n.GracefulRestart, "graceful restart")
	printIf(n.IPv4, "IPv4")
	printIf(n.IPv6, "IPv6")
	printIf(s.Leaving, "leaving")
	if b := s.BFD; b != nil {
		fmt.Fprintf(&out, ", BFD %s/%s x %d", b.Receive, b.Transmit, b.Multiplier)
		printIf(b.Passive, "passive")
		printIf(b.Multihop, "multihop, TTL from %d", b.MinimumTTL)
	}
	out.WriteString("\n")
	for _, p := range slices.SortedFunc(maps.Keys(s.Routes), netip.Prefix.Compare) {
		a := s.Routes[p]
		fmt.Fprintf(&out, "  %s by %s", p, a.NextHop)
		if a.LocalPref != nil {
			fmt.Fprintf(&out, ", local-pref %d", *a.LocalPref)
		}
		if a.MED != nil {
			fmt.Fprintf(&out, ", MED %d", *a.MED)
		}
		if a.Prepend > 0 {
			fmt.Fprintf(&out, ", prepend %d", a.Prepend)
		}
		for _, c := range a.Communities {
			fmt.Fprintf(&out, ", %d:%d", c>>16, c&0xFFFF)
		}
		for _, c := range a.LargeCommunities {
			fmt.Fprintf(&out, ", %d:%d:%d", c.Global, c.Local1, c.Local2)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func findingsText(w *world.Snapshot, l *bgp.Layout) string {
	var out strings.Builder
	printFindings := func(kind, name string, list []world.Finding) {
		for _, f := range list {
			grave := ""
			if f.Fatal {
				grave = "!"
			}
			fmt.Fprintf(&out, "%s %s: %s%s: %s\n", kind, name, f.Reason, grave, f.Message)
		}
	}
	twins, clashes := l.Duplicates(), l.Clashes()
	for _, p := range sorted(w.Peers, func(p *world.Peer) string { return p.Name }) {
		printFindings("peer", p.Name, p.Findings)
		if f, ok := twins[p.Name]; ok {
			printFindings("peer", p.Name, []world.Finding{f})
		}
	}
	for _, a := range sorted(w.Advertisements, func(a *world.Advertisement) string { return a.Name }) {
		printFindings("advertisement", a.Name, append(a.Findings, clashes[a.Name]...))
	}
	return out.String()
}

func advertisersText(w *world.Snapshot, l *bgp.Layout) string {
	var out strings.Builder
	survey := l.Survey()
	for _, s := range sorted(w.Services, func(s *world.Service) string { return s.Key.String() }) {
		for _, a := range s.Assigned {
			r := survey.Of(s, a)
			if r == nil {
				fmt.Fprintf(&out, "%s %s: taken %v\n", s.Key, a, survey.Takes(s, a))
				continue
			}
			fmt.Fprintf(&out, "%s %s: advertised by %v to %v, idle %v", s.Key, a, r.Nodes, r.Peers, r.NotAdvertising)
			if r.Problem != "" {
				fmt.Fprintf(&out, " (%s)", r.Problem)
			}
			if r.GatewayUnknown {
				out.WriteString(", gateway unknown")
			}
			if r.IsNextHop {
				out.WriteString(", is the next hop")
			}
			if r.Off != "" {
				out.WriteString(": " + r.Off)
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}
