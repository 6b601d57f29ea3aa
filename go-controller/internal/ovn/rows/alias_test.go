// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The derivation is pinned, because a changed alias breaks connections.
func TestAliases(t *testing.T) {
	for _, c := range []struct {
		nets    []string
		ordinal int
		pod     string
		want    string // empty for none
	}{
		{[]string{"10.244.0.0/16"}, 0, "10.244.1.3", "240.1.3.0"},
		{[]string{"10.244.0.0/16"}, 255, "10.244.255.254", "240.255.254.255"},
		{[]string{"10.128.0.0/14"}, 7, "10.131.1.3", "243.1.3.7"},
		{[]string{"10.240.0.0/12"}, 7, "10.255.1.3", "255.1.3.7"},
		{[]string{"10.0.0.0/8"}, 0, "10.15.1.3", "255.1.3.0"},
		{[]string{"10.0.0.0/8"}, 0, "10.16.1.3", ""},
		{[]string{"10.244.0.0/16"}, 0, "10.245.0.1", ""},
		// Adding a network does not change the aliases of the networks before it.
		{[]string{"10.244.0.0/16", "10.132.0.0/15"}, 0, "10.244.1.3", "240.1.3.0"},
		{[]string{"10.244.0.0/16", "10.132.0.0/15"}, 0, "10.133.1.3", "243.1.3.0"},
		{[]string{"10.244.0.0/16", "10.132.0.0/15", "10.9.0.0/16"}, 0, "10.9.1.3", "244.1.3.0"},
		{[]string{"10.244.0.0/16", "fd00:10:244::/48"}, 5, "fd00:10:244:1::3", "fd3e:5b1c:1::3:5"},
		// Networks after one that fills the available space have no aliases.
		{[]string{"10.0.0.0/8", "11.244.0.0/16"}, 0, "11.244.1.3", ""},
		{[]string{"::/0", "fd00:10:244::/48"}, 0, "fd00:10:244:1::3", ""},
		{[]string{"fd00:10:244::/56", "fd00:10:9::/56"}, 3, "fd00:10:9:1::3", "fd3e:5b1c:101::3:3"},
		{[]string{"fd00:10:244::/48"}, 255, "fd00:10:244:ffff:1:2:3:4", "fd3e:5b1c:ffff:1:2:3:4:ff"},
	} {
		g := &Builder{}
		for _, n := range c.nets {
			g.cluster.ClusterSubnets = append(g.cluster.ClusterSubnets, netip.MustParsePrefix(n))
		}
		got, ok := g.alias(c.ordinal, netip.MustParseAddr(c.pod))
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s of %v through shard %d: %v, want %q", c.pod, c.nets, c.ordinal, got, c.want)
		}
	}
}

func TestAliasesOfASubnet(t *testing.T) {
	nets := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10:244::/48")}
	for subnet, want := range map[string]string{"10.244.7.0/24": "240.7.0.0/16",
		"fd00:10:244:7::/64": "fd3e:5b1c:7::/48"} {
		p := netip.MustParsePrefix(subnet)
		if got, ok := aliasesOf(world.FamilyOf(p.Addr())).prefixOf(nets, p); !ok || got.String() != want {
			t.Errorf("%s: %v, want %s", subnet, got, want)
		}
	}
}

// A kubelet can claim all pod networks. The route to their aliases must lead no other packets to its node.
func TestAliasesOfASubnetAreAliases(t *testing.T) {
	for _, text := range []string{"10.0.0.0/8", "10.0.0.0/11", "10.0.0.0/12", "fd00::/8", "fd00::/48"} {
		p := netip.MustParsePrefix(text)
		a := aliasesOf(world.FamilyOf(p.Addr()))
		got, ok := a.prefixOf([]netip.Prefix{p}, p)
		if ok && (got.Bits() < a.prefix.Bits() || !a.prefix.Contains(got.Addr())) {
			t.Errorf("%s: %v is not in %v", text, got, a.prefix)
		}
	}
}

// No provider of addresses may choose one by which shards forward.
func TestAddressesOfShardsAreInTheirNetwork(t *testing.T) {
	for _, a := range []string{innerShard6, innerReturn6} {
		if !world.ShardNet(world.IPv6).Contains(netip.MustParseAddr(a)) {
			t.Errorf("%s is not in %s", a, world.ShardNet(world.IPv6))
		}
	}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		if !world.ShardNet(f).Overlaps(aliasesOf(f).prefix) || aliasesOf(f).prefix.Bits() < world.ShardNet(f).Bits() {
			t.Errorf("aliases %s are not in %s", aliasesOf(f).prefix, world.ShardNet(f))
		}
	}
}

// Node routers' join addresses mirror those of OVN-Kubernetes' gateway routers.
func TestMirror(t *testing.T) {
	for of, want := range map[string]string{
		"100.64.0.2/16":   "100.64.254.253",
		"100.64.1.2/16":   "100.64.253.253",
		"100.64.7.255/16": "100.64.247.0",
		"fd98::2/64":      "fd98::ffff:ffff:ffff:fefd",
		"fd98::1:0:2/64":  "fd98::ffff:fffe:ffff:fefd",
	} {
		if got := addrFromTop(netip.MustParsePrefix(of), nodeJoinGap).String(); got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
}
