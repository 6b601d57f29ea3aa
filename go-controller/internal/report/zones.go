// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// appliedByZones reports whether the zones of the active gateways have programmed these addresses. It returns true
// without interconnect, and for the addresses of shards without an active gateway.
func (v *Builder) appliedByZones(key world.Key, vips []plan.VIP) bool {
	if !v.Layout.Interconnect {
		return true
	}
	applied := world.AddrSet(v.World.Applied[key])
	return !slices.ContainsFunc(vips, func(vip plan.VIP) bool {
		return v.active[vip.Shard] != "" && !applied(vip.Addr)
	})
}

// silentZone returns the verdict on addresses whose active gateway has an agent that no longer reports or can't change
// its zone. It returns nil if there is none: the agents will report when they have programmed the addresses. Of several
// such gateways, it has the reason of the first one, and names maxSilent with their addresses.
func (v *Builder) silentZone(vips []plan.VIP) *status.Verdict {
	var nodes []*world.Node
	addrs := map[*world.Node][]string{}
	for _, vip := range vips {
		n := v.nodes[v.active[vip.Shard]]
		if n == nil || n.Agent == nil || n.Agent.Unwritable == "" && !n.Agent.Silent {
			continue
		}
		if addrs[n] == nil {
			nodes = append(nodes, n)
		}
		addrs[n] = append(addrs[n], vip.Addr.String())
	}
	if len(nodes) == 0 {
		return nil
	}
	verdict := status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodeSilent}
	if nodes[0].Agent.Unwritable != "" {
		verdict.Reason = v1alpha1.ReasonDatabaseUnreachable
	}
	const maxSilent = 3
	var texts []string
	for _, n := range nodes[:min(len(nodes), maxSilent)] {
		texts = append(texts, silentText(n, addrs[n]))
	}
	if more := len(nodes) - maxSilent; more > 0 {
		texts = append(texts, "and "+world.Count(more, "other gateway"))
	}
	verdict.Message = sentences(texts...)
	return &verdict
}

// silentText says what is wrong with the agent of the active gateway of addresses.
func silentText(n *world.Node, addrs []string) string {
	subject, their := "address "+addrs[0], "its"
	if len(addrs) > 1 {
		subject, their = "addresses "+world.Some(addrs, maxNamed), "their"
	}
	if why := n.Agent.Unwritable; why != "" {
		return fmt.Sprintf("%s: node %s, %s active gateway, has not applied the latest change: %s", subject, n.Name, their,
			why)
	}
	return fmt.Sprintf("%s: the agent of node %s, %s active gateway, does not report (ovnkube-slb node --enable-l2)",
		subject, n.Name, their)
}

// rivals are the names of the gateways that have claimed a shard besides the active one, and why they answer, too. If
// faulty is set, that is the one of all claimants whose ovs-vswitchd does not work. If silent is set, whether they
// answer is unknown.
type rivals struct {
	names, why, faulty string
	silent             bool
}

// contestedVerdict returns the verdict on addresses that more than one gateway answers for, or nil if there are none.
func (v *Builder) contestedVerdict(placements []place.Placement) *status.Verdict {
	for _, placement := range placements {
		others := v.rivals[placement.Shard]
		if others.names == "" || placement.Reason != "" {
			continue
		}
		if others.silent {
			return &status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodeSilent,
				Message: fmt.Sprintf("address %s: gateway %s is active, but so may be %s (L2Domain %s, shard %d): its agent does "+
					"not report (ovnkube-slb node --enable-l2), but its kubelet does", placement.Addr, v.active[placement.Shard],
					others.names, placement.Shard.Domain, placement.Shard.Index)}
		}
		if others.faulty != "" {
			return notAnnounced(v1alpha1.ReasonGatewayFaulty,
				"address %s: node %s can't release it: %s; also claimed by gateway %s "+
					"(L2Domain %s, shard %d)", placement.Addr, others.faulty, others.why, others.names, placement.Shard.Domain,
				placement.Shard.Index)
		}
		return &status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSeveralActiveGateways,
			Message: fmt.Sprintf("address %s: gateway %s is active, and so is %s (L2Domain %s, shard %d): %s", placement.Addr,
				v.active[placement.Shard], others.names, placement.Shard.Domain, placement.Shard.Index, others.why)}
	}
	return nil
}

// rivalsOf returns the rivals of an active gateway. A fault of one of them, or of the active gateway itself, shows
// why it has not released the shard: an ovn-controller that hangs or is gone never does, and neither does one whose
// ovs-vswitchd no longer updates the states of BFD sessions.
func (v *Builder) rivalsOf(state world.ShardState) rivals {
	names := strings.Join(state.Rivals, ", ")
	claimants := append(slices.Clone(state.Rivals), state.Active)
	for _, name := range claimants {
		node := v.nodes[name]
		if node == nil || node.Faults[world.EveryNetwork].Message == "" {
			continue
		}
		fault := node.Faults[world.EveryNetwork]
		if fault.Kind == world.FaultVswitchd {
			others := slices.DeleteFunc(claimants, func(other string) bool { return other == name })
			return rivals{names: strings.Join(others, ", "), why: fault.Message, faulty: name}
		}
		return rivals{names: names, why: fmt.Sprintf("node %s can't release the address: %s", name, fault.Message)}
	}
	return rivals{names: names, why: "they do not receive each other's BFD packets (Geneve, UDP port 6081, between " +
		"these nodes), or the databases of a zone have an old order of gateways"}
}

// awaitsZone reports whether a new address in the status of a Service waits until the zone of its gateway has it, with
// interconnect. It does not wait for a zone that reports an error or, after a while, for one that reports nothing.
func (v *Builder) awaitsZone(s *world.Service, a netip.Addr) bool {
	return v.MayAwaitZone(s.Key) && v.World.ApplyErrors[s.Key] == "" && !slices.Contains(v.World.Applied[s.Key], a)
}

// ordinals returns the ordinals of a domain's shards, in a cluster with interconnect.
func (v *Builder) ordinals(domain string) map[world.ShardID]*int32 {
	ordinals := map[world.ShardID]*int32{}
	for _, d := range v.Topology.Domains {
		for _, s := range d.Shards {
			if v.Layout.Interconnect && d.Name == domain && s.Ordinal != place.NoOrdinal {
				ordinals[s.ID] = new(int32(s.Ordinal))
			}
		}
	}
	return ordinals
}
