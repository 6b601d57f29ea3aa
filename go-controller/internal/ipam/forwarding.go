// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"net/netip"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// forwarding are networks by which OVN-Kubernetes and shards forward. No provider may choose an address there: routes
// for it would break them, and a BGPAdvertisement has no subnets that keep such addresses out. foreignUses has what is
// known to be used, for all pools.
type forwarding struct {
	shards []foreignUse
	// defaults are OVN-Kubernetes' default networks (go-controller/pkg/config: join, transit, and the masquerade subnet
	// for IPv6, as that for IPv4 is link-local). There are none if OpenShift reports the real ones.
	defaults []foreignUse
}

func newForwarding(c *world.Cluster) forwarding {
	use := func(role string, p netip.Prefix) foreignUse {
		return misconfigured(netipx.RangeOfPrefix(p), role, p.String())
	}
	var out forwarding
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		out.shards = append(out.shards, use("in the network of shards", world.ShardNet(f)))
	}
	if len(c.InternalSubnets) > 0 || c.OpenShiftSDN {
		return out
	}
	for _, text := range []string{"100.64.0.0/16", "fd98::/64", "100.88.0.0/16", "fd97::/64", "fd69::/112"} {
		out.defaults = append(out.defaults, use("in OVN-Kubernetes' own network", netip.MustParsePrefix(text)))
	}
	return out
}

// use returns the use of an address by which OVN-Kubernetes or shards forward, empty if there is none. That an L2Domain
// of the pool has it in a subnet shows that OVN-Kubernetes does not use its default.
func (f *forwarding) use(p *pool, a netip.Addr) string {
	list := f.shards
	if !p.hasSubnetWith(a) {
		list = append(list[:len(list):len(list)], f.defaults...)
	}
	for _, u := range list {
		if u.Contains(a) {
			return u.String()
		}
	}
	return ""
}
