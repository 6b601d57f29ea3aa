// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// policyPriority is in a range that OVN-Kubernetes leaves free (502-1001).
const policyPriority = 700

// Return names the way back from the backends of a shard that listen on one port.
type Return struct {
	Shard    world.ShardID
	Family   world.Family
	Protocol world.Protocol
	Port     uint16
}

// Returns calls use for each backend that a Service has behind a shard; a backend can
// come more than once.
func Returns(p *plan.Service, use func(Return, netip.Addr)) {
	shards := make(map[netip.Addr]world.ShardID, len(p.VIPs))
	for _, v := range p.VIPs {
		shards[v.Addr] = v.Shard
	}
	for _, l := range p.Listeners {
		shard, ok := shards[l.VIP]
		if !ok {
			continue
		}
		for _, b := range l.Backends {
			use(Return{shard, world.FamilyOf(b.Addr.Addr()), l.Protocol, b.Addr.Port()}, b.Addr.Addr())
		}
	}
}

// ID is the primary id of the address set and of the policy.
func (r Return) ID() string { return r.row(AddressSet, map[string]any{}).ID }

// row makes a row of a way back.
func (r Return) row(table string, columns map[string]any) Row {
	name := ShardName(r.Shard)
	return owned(table, OwnerReturn, name, columns, r.Family.String(), string(r.Protocol),
		strconv.Itoa(int(r.Port))).with(KeyShard, name)
}

// setName is a name that OVN's expressions accept ($name); domain names don't fit.
func (r Return) setName() string {
	h := sha256.Sum256([]byte(r.Shard.Domain))
	return fmt.Sprintf("slb_%x_%d_v%d_%s_%d", h[:6], r.Shard.Index, r.Family, strings.ToLower(string(r.Protocol)), r.Port)
}

// AddressSet is the row that holds the backends of a way back.
func (r Return) AddressSet(backends []netip.Addr) Row {
	addrs := make([]string, 0, len(backends))
	for _, a := range backends {
		addrs = append(addrs, a.String())
	}
	slices.Sort(addrs)
	return r.row(AddressSet, map[string]any{"name": r.setName(), "addresses": addrs})
}

// Policy is the row on ovn_cluster_router that sends replies back to the shard's router,
// the only place that knows the connection; false if the shard has no router or the
// family no join address.
func (g *Ground) Policy(r Return) (Row, bool) {
	s, ok := g.shards[r.Shard]
	if !ok {
		return Row{}, false
	}
	hops := byFamily(s.join, r.Family)
	if len(hops) == 0 {
		return Row{}, false
	}
	return r.row(Policy, map[string]any{
		"priority": policyPriority,
		"match":    g.match(r),
		"action":   "reroute",
		"nexthops": []string{hops[0].Addr().String()},
	}).in(ClusterRouter), true
}

// match tells replies to clients outside the cluster: what leaves a backend from the
// port it listens on, for an address that is neither a pod nor a router.
func (g *Ground) match(r Return) string {
	inside := slices.Clone(byFamily(g.cluster.PodNets, r.Family))
	for _, join := range byFamily(g.facts.Join, r.Family) {
		inside = append(inside, join.Masked())
	}
	ip, proto := fmt.Sprintf("ip%d", r.Family), strings.ToLower(string(r.Protocol))
	return fmt.Sprintf("%s.src == $%s && %s.src == %d && %s.dst != {%s}",
		ip, r.setName(), proto, r.Port, ip, strings.Join(texts(inside), ", "))
}
