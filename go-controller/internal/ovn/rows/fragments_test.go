// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// If a Service changes, all others keep their ACLs but for those that Replace returns.
func TestReplaceReturnsWhoseACLsChange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	g, restricted := builderOf(t), &rows.Restricted{}
	g.SetRestricted(restricted)
	var plans [5]*plan.Service
	acls := func() map[world.Key][]rows.Row {
		out := map[world.Key][]rows.Row{}
		for _, p := range plans {
			if p != nil {
				out[p.Key] = g.ACLs(p)
			}
		}
		return out
	}
	for range 2000 {
		before, i := acls(), random.IntN(len(plans))
		next := sharing(i, random)
		others := restricted.Replace(plans[i], next)
		plans[i] = next
		key := world.Key{Namespace: "shop", Name: fmt.Sprint(i)}
		if !slices.IsSortedFunc(others, world.Key.Compare) || slices.Contains(others, key) {
			t.Fatalf("others of %s: %v", key, others)
		}
		for other, now := range acls() {
			diff := cmp.Diff(before[other], now)
			if diff != "" && other != key && !slices.Contains(others, other) {
				t.Fatalf("%s has changed, and with it %s, but not only %v:\n%s", key, other, others, diff)
			}
		}
	}
}

// Fragments pass from what the ranges of all Services at an address have in common. If that is more than one Service
// may have, none pass: if each leaves out another host, it grows with the number of Services.
func TestFragmentsPassFromFewCommonRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var plans []*plan.Service
		for i := range 4 {
			p := sharing(i, random)
			if p != nil && len(p.SourceRanges) > 0 && p.VIPs[0].Addr == netip.MustParseAddr("10.50.0.60") {
				plans = append(plans, p)
			}
		}
		expectFragments(t, plans, true)
	}
	var plans []*plan.Service
	for i := range 200 {
		vip := netip.MustParseAddr("10.50.0.60")
		plans = append(plans, &plan.Service{Key: world.Key{Namespace: "shop", Name: fmt.Sprint(i)},
			VIPs:      []plan.VIP{{Addr: vip, Shard: world.ShardID{Domain: "lan"}}},
			Listeners: []plan.Listener{{VIP: vip, Protocol: world.TCP, Port: uint16(1000 + i)}},
			SourceRanges: map[world.Family][]netip.Prefix{
				world.IPv4: allBut(t, "10.0.0.0/8", fmt.Sprintf("10.%d.1.1/32", i))}})
	}
	expectFragments(t, plans[:100], true)
	expectFragments(t, plans, false)
}

func allBut(t *testing.T, all, one string) []netip.Prefix {
	t.Helper()
	var set netipx.IPSetBuilder
	set.AddPrefix(netip.MustParsePrefix(all))
	set.RemovePrefix(netip.MustParsePrefix(one))
	return prefixesOf(t, &set)
}

func prefixesOf(t *testing.T, b *netipx.IPSetBuilder) []netip.Prefix {
	t.Helper()
	set, err := b.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	return set.Prefixes()
}

// expectFragments checks from where TCP fragments pass to Services that share an address: from their common ranges, or
// from nowhere.
func expectFragments(t *testing.T, plans []*plan.Service, pass bool) {
	t.Helper()
	g, restricted := builderOf(t), &rows.Restricted{}
	g.SetRestricted(restricted)
	var want, got netipx.IPSetBuilder
	want.AddPrefix(netip.MustParsePrefix("0.0.0.0/0"))
	serve := false
	for _, p := range plans {
		restricted.Replace(nil, p)
		if slices.ContainsFunc(p.Listeners, func(l plan.Listener) bool { return l.Protocol == world.TCP }) {
			serve = true
			var own netipx.IPSetBuilder
			for _, prefix := range p.SourceRanges[world.IPv4] {
				own.AddPrefix(prefix)
			}
			set, err := own.IPSet()
			if err != nil {
				t.Fatal(err)
			}
			want.Intersect(set)
		}
	}
	for _, p := range plans {
		for _, row := range g.ACLs(p) {
			match := fmt.Sprint(row.Columns["match"])
			_, sources, admits := strings.Cut(match, " && tcp && ip.is_frag && ip4.src == {")
			if !admits {
				continue
			}
			for source := range strings.SplitSeq(strings.TrimSuffix(sources, "}"), ", ") {
				got.AddPrefix(netip.MustParsePrefix(source))
			}
		}
	}
	if !serve || !pass {
		want = netipx.IPSetBuilder{}
	}
	if diff := cmp.Diff(fmt.Sprint(prefixesOf(t, &want)), fmt.Sprint(prefixesOf(t, &got))); diff != "" {
		t.Errorf("%d Services: fragments pass from (-want +got):\n%s", len(plans), diff)
	}
}

// sharing returns a Service with random source ranges and protocols at a random one of two addresses, or nil.
func sharing(i int, random *rand.Rand) *plan.Service {
	if random.IntN(4) == 0 {
		return nil
	}
	vip := netip.AddrFrom4([4]byte{10, 50, 0, byte(60 + random.IntN(2))})
	p := &plan.Service{Key: world.Key{Namespace: "shop", Name: fmt.Sprint(i)},
		VIPs: []plan.VIP{{Addr: vip, Shard: world.ShardID{Domain: "lan"}}}}
	for _, protocol := range []world.Protocol{world.TCP, world.UDP} {
		if random.IntN(2) == 0 {
			p.Listeners = append(p.Listeners, plan.Listener{VIP: vip, Protocol: protocol, Port: uint16(80 + i)})
		}
	}
	if random.IntN(3) > 0 {
		p.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: nil}
		for range random.IntN(3) {
			source := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(random.IntN(256))}), 24+random.IntN(3)).Masked()
			p.SourceRanges[world.IPv4] = append(p.SourceRanges[world.IPv4], source)
		}
	}
	return p
}
