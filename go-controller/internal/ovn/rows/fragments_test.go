// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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
