// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxOutside is the maximum number of endpoints of one kind that a condition names.
const maxOutside = 5

// Observed is the state that the dataplane has reported so far.
type Observed struct {
	// Synced is set once the databases of the dataplane have been read.
	Synced bool
	// Unread is set while the contents of the databases, and therefore the states of the shards, are unknown.
	// Unreachable is the message for databases that have been unreachable for a few seconds, or "".
	Unread      bool
	Unreachable string
	// Programmed holds the result of each Service's latest plan: a copy of those of the runner, so that the statuses of a
	// pass agree with each other while the runner goes on.
	Programmed map[world.Key]loop.Result
	// Configured is set after the first attempt to configure the shards. TopologyError is the reason why they could not
	// be configured, or nil.
	Configured    bool
	TopologyError error
	// FRR are the objects for frr-k8s that follow from the decision; nil if none are computed.
	FRR *frrk8s.Plan
}

// Builder builds statuses from a decision.
type Builder struct {
	*decide.Decision
	Observed
	// active holds the active gateway of each shard, or the name of the chassis if no Node has that chassis. Shards
	// without an active gateway are absent.
	active map[world.ShardID]string
	// rivals holds the other gateways that have claimed a shard at the same time.
	rivals map[world.ShardID]rivals
	// nodes are the nodes of the snapshot by name.
	nodes map[string]*world.Node
	// survey determines which nodes advertise addresses by BGP. advertisementStates caches the resulting states.
	survey              *bgp.Survey
	advertisementStates map[*bgp.Advertisers]advertisementState
}

// NewBuilder returns a Builder for a decision, given the state observed when it was made.
func NewBuilder(d *decide.Decision, k Observed) *Builder {
	v := &Builder{Decision: d, Observed: k, active: make(map[world.ShardID]string, len(d.World.ShardStates)),
		rivals: map[world.ShardID]rivals{}, survey: surveyOf(d, k.FRR),
		advertisementStates: map[*bgp.Advertisers]advertisementState{}}
	v.nodes = make(map[string]*world.Node, len(d.World.Nodes))
	for _, n := range d.World.Nodes {
		v.nodes[n.Name] = n
	}
	for shard, state := range d.World.ShardStates {
		if state.Active != "" {
			v.active[shard] = state.Active
		}
		switch {
		case len(state.Rivals) > 0:
			v.rivals[shard] = v.rivalsOf(state)
		case state.SilentRival != "":
			v.rivals[shard] = rivals{names: state.SilentRival, silent: true}
		}
	}
	return v
}

// surveyOf returns the survey of a decision. objects may be nil.
func surveyOf(d *decide.Decision, objects *frrk8s.Plan) *bgp.Survey {
	if objects == nil {
		return d.BGP.Survey()
	}
	return d.BGP.SurveyFRR(objects)
}

// SetResult replaces the result of one Service; nil means that the dataplane has nothing of it.
func (v *Builder) SetResult(key world.Key, r *loop.Result) {
	if r == nil {
		delete(v.Programmed, key)
	} else {
		v.Programmed[key] = *r
	}
}

// fromPools returns addresses with the pools that they come from: once, if all are from one.
func fromPools(o ipam.Outcome, poolOf func(netip.Addr) string) string {
	first := poolOf(o.Addrs[0])
	if first != "" && !slices.ContainsFunc(o.Addrs, func(a netip.Addr) bool { return poolOf(a) != first }) {
		return joined(o.Addrs) + convert.FromPool + first
	}
	list := make([]string, len(o.Addrs))
	for i, a := range o.Addrs {
		if list[i] = a.String(); poolOf(a) != "" {
			list[i] += convert.FromPool + poolOf(a)
		}
	}
	return strings.Join(list, ", ")
}

func allocatedVerdict(s *world.Service, o ipam.Outcome, placements []place.Placement,
	poolOf func(netip.Addr) string) status.Verdict {
	if len(o.Addrs) == 0 {
		return status.Verdict{Status: metav1.ConditionFalse, Reason: string(o.Reason), Message: o.Message}
	}
	message := fromPools(o, func(a netip.Addr) string {
		if slices.Contains(s.FromRequested, a) { // A request for this pool is not newer than the address.
			return s.RequestedPool
		}
		return poolOf(a)
	})
	if o.Message != "" {
		message += "; " + o.Message
	}
	limits := s.Limits
	if slices.ContainsFunc(placements, func(placement place.Placement) bool { return !placement.OutsideLayer2() }) {
		limits = slices.Concat(limits, s.Layer2Limits)
	}
	if len(limits) > 0 {
		message += "; " + strings.Join(limits, "; ")
	}
	return status.Verdict{
		Status:  metav1.ConditionTrue,
		Reason:  cmp.Or(string(o.Reason), v1alpha1.ReasonAllocated),
		Message: message,
	}
}

// notAnnounced returns a verdict that an address is not announced.
func notAnnounced(reason, format string, args ...any) *status.Verdict {
	return &status.Verdict{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// unreachable returns the verdict on what the databases have, or nil while they can be reached.
func (v *Builder) unreachable() *status.Verdict {
	if v.Unreachable == "" {
		return nil
	}
	return &status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDatabaseUnreachable,
		Message: v.Unreachable}
}

// announcement returns a verdict on these addresses of a Service, which names the first broken link between a client
// and them. It returns nil while the dataplane has not reported. advertised has the states of the same addresses, or is
// nil.
func (v *Builder) announcement(s *world.Service, placements []place.Placement,
	advertised []advertisementState) *status.Verdict {
	byOVN := false
	for i, placement := range placements {
		var t advertisementState
		if advertised != nil {
			t = advertised[i]
		}
		switch {
		case placement.Reason == "":
			byOVN = true
		case placement.Reason == place.ReasonProbing:
			return v.unreachable()
		case onlyBGP(placement, t):
			switch t.reason {
			case v1alpha1.ReasonNodeSilent, v1alpha1.ReasonNotRead, v1alpha1.ReasonProgramming:
				return &status.Verdict{
					Status: metav1.ConditionUnknown, Reason: t.reason,
					Message: fmt.Sprintf("address %s: %s", placement.Addr, t.text),
				}
			}
			if t.reason != "" {
				return notAnnounced(t.reason, "address %s: %s", placement.Addr, t.text)
			}
		case placement.Reason == place.ReasonNoDomain, placement.Reason == place.ReasonServiceNotSelected:
			if ad := v.survey.Ineffective(s, placement.Addr); ad != nil {
				return notAnnounced(ad.Finding.Reason, "%s: %s, and %s", placement.Addr, placement.Message, ad.Which())
			}
			return notAnnounced(string(placement.Reason), "%s: %s, and no BGPAdvertisement selects it", placement.Addr,
				placement.Message)
		default:
			return notAnnounced(string(placement.Reason), "%s: %s", placement.Addr, placement.Message)
		}
	}
	if !byOVN {
		message := strings.Join(advertisementTexts(placements, advertised), "; ")
		return &status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced, Message: message}
	}
	want, got := v.Plans[s.Key], v.Programmed[s.Key]
	switch {
	case v.Unreachable != "":
		return v.unreachable()
	case !v.Synced || v.Unread: // Rows stay as they are, and nothing can be written until the connection is back.
		return nil
	case got.Err != nil:
		return notAnnounced(v1alpha1.ReasonDataplaneError, "%v; retrying", got.Err)
	case got.Postponed:
		return postponed(s.Key.Namespace)
	case got.Plan == nil:
		return nil
	case v.awaitsTranslation(got):
		return nil
	case v.World.ApplyErrors[s.Key] != "":
		if silent := v.silentZone(want.VIPs); silent != nil { // It is why; OVN keeps what it has.
			return silent
		}
		return notAnnounced(v1alpha1.ReasonDataplaneError, "%s; retrying", v.World.ApplyErrors[s.Key])
	case !v.appliedByZones(s.Key, want.VIPs):
		return v.silentZone(want.VIPs)
	case !slices.Equal(got.Plan.VIPs, want.VIPs), (got.Plan.Excess.Limit != 0) != (want.Excess.Limit != 0):
		return nil
	}
	if want.Excess.Limit != plan.NoLimit && !v.World.Cluster.OpenShiftSDN {
		return excessVerdict(want, v.World.Cluster.Limits)
	}
	if contested := v.contestedVerdict(placements); contested != nil {
		return contested
	}
	if f := v.flows(s); f.reason != "" {
		return &status.Verdict{Status: f.status, Reason: f.reason, Message: f.message}
	}
	if text := v.unserved(s, placements, want); text != "" {
		return notAnnounced(v1alpha1.ReasonNoEndpoints, "%s", text)
	}
	return v.announcedByOVN(s.Key, placements, advertised, want)
}

// unserved names an address whose traffic no endpoint takes although the Service has endpoints. With OpenShift SDN and
// externalTrafficPolicy: Local, kube-proxy on the node that holds the address sends to no other node.
func (v *Builder) unserved(s *world.Service, placements []place.Placement, p *plan.Service) string {
	if !v.World.Cluster.OpenShiftSDN || !s.LocalPolicy || p.Excess.Limit != plan.NoLimit {
		return ""
	}
	for _, placement := range placements {
		node := v.active[placement.Shard]
		onNode := func(l plan.Listener) bool {
			return slices.ContainsFunc(l.Backends, func(b plan.Backend) bool { return b.Node == node })
		}
		if placement.Reason == "" && node != "" && !slices.ContainsFunc(p.ListenersFor(placement.Addr), onNode) {
			return fmt.Sprintf("spec.externalTrafficPolicy is Local, and node %s, which holds address %s, "+
				"has no usable endpoint", node, placement.Addr)
		}
	}
	return ""
}

// announcedByOVN returns the verdict on addresses that are programmed in OVN.
func (v *Builder) announcedByOVN(key world.Key, placements []place.Placement, advertised []advertisementState,
	p *plan.Service) *status.Verdict {
	// A plan beyond a limit has no backends. With OpenShift SDN, kube-proxy has them all the same.
	served := p.Excess.Limit != plan.NoLimit ||
		slices.ContainsFunc(p.Listeners, func(l plan.Listener) bool { return len(l.Backends) > 0 })
	var parts, unclaimed []string
	for _, placement := range placements {
		if placement.Reason != "" {
			continue
		}
		node := v.active[placement.Shard]
		if node == "" {
			unclaimed = append(unclaimed, fmt.Sprintf("no gateway has claimed shard %d of L2Domain %s, which has address %s",
				placement.Shard.Index, placement.Shard.Domain, placement.Addr))
			continue
		}
		by := "announced by OVN on gateway"
		switch {
		case v.World.Cluster.OpenShiftSDN:
			by = "assigned to node"
		case !served: // The condition is False.
			by = "on gateway"
		}
		parts = append(parts, fmt.Sprintf("address %s is %s %s (L2Domain %s, shard %d)",
			placement.Addr, by, node, placement.Shard.Domain, placement.Shard.Index))
	}
	if len(unclaimed) > 0 {
		return notAnnounced(v1alpha1.ReasonNoActiveGateway, "%s", strings.Join(unclaimed, "; "))
	}
	if !v.Programmed[key].Pending.IsZero() {
		return v.untranslated()
	}
	message := strings.Join(append(parts, advertisementTexts(placements, advertised)...), "; ")
	if n := len(p.Unreachable); n > 0 {
		message += fmt.Sprintf("; no traffic is sent to %s because replies would not return through the gateway "+
			"(neither in the pod subnet of a node of this zone, k8s.ovn.org/node-subnets, nor the address of a node with "+
			"k8s.ovn.org/node-masquerade-subnet): %s", world.Count(n, "endpoint"), joined(p.Unreachable[:min(n, maxOutside)]))
	}
	reason := v1alpha1.ReasonAnnounced
	if f := familyWithoutBackend(p); served && f != 0 && p.Excess.Limit == plan.NoLimit {
		reason = v1alpha1.ReasonPartlyUsable
		message += fmt.Sprintf("; the Service has no usable %s endpoint, so connections over %s are rejected", f, f)
	}
	if hosts := hostsOverUDP(p); len(hosts) > 0 && !v.World.Cluster.OpenShiftSDN {
		message += fmt.Sprintf("; UDP servers on the network of their node must reply from the address that received the "+
			"request, which many servers that are bound to all addresses do not do: %s",
			joined(hosts[:min(len(hosts), maxOutside)]))
	}
	egress := v.egressOf(key)
	message += egress.text(key)
	if egress != (egressState{}) && reason == v1alpha1.ReasonAnnounced {
		reason = v1alpha1.ReasonEgressUnserved
	}
	if !served {
		return &status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoEndpoints,
			Message: "the Service has no usable endpoint, so connections are rejected; " + message}
	}
	return v.reachabilityVerdict(p, reason, message)
}

// hostsOverUDP returns the nodes' own addresses that are backends of UDP ports, sorted. A reply to the hidden client
// (ADR 10) without an explicit source address is sent from the address of the management port, and it matches no
// connection.
func hostsOverUDP(p *plan.Service) []netip.Addr {
	var hosts []netip.Addr
	for _, l := range p.Listeners {
		for _, b := range l.Backends {
			if l.Protocol == world.UDP && b.HostNetwork {
				hosts = append(hosts, b.Addr.Addr())
			}
		}
	}
	slices.SortFunc(hosts, netip.Addr.Compare)
	return slices.Compact(hosts)
}

// Pools returns the statuses of all pools, by name.
func (v *Builder) Pools() map[string]status.Merge[*v1alpha1.IPAddressPool] {
	mode := modeAccepted(&v.World.Cluster.ModeSetting)
	out := make(map[string]status.Merge[*v1alpha1.IPAddressPool], len(v.World.Pools))
	for _, p := range v.World.Pools {
		out[p.Name] = status.Pool(p.Problems, v.Allocation.Pools[p.Name], v.announcedFor(p), mode)
	}
	return out
}

// modeAccepted returns the verdict on the configured mode for the statuses of pools, or nil if there is no mode to
// store.
func modeAccepted(s *world.ModeSetting) *status.Verdict {
	if !convert.MustStore(s) {
		return nil
	}
	v := &status.Verdict{Status: metav1.ConditionTrue, Reason: convert.ModeReason(s.Mode), Message: s.By}
	if s.Refused != "" {
		v.Status, v.Message = metav1.ConditionFalse, s.Refused
	}
	return v
}

// announcedFor returns the verdict whether the addresses of a pool can be announced. It is Unknown while that depends
// on state that OVN has not reported yet: which nodes can be gateways.
func (v *Builder) announcedFor(p *world.Pool) status.Verdict {
	reason, message := v.Layout.Idle(p.Name)
	switch {
	case (reason == place.ReasonNoDomain || reason == place.ReasonDisabledByMode || reason == place.ReasonUnsupported) &&
		v.BGP.TakesPool(p.Name):
	case !v.Synced && reason != place.ReasonUnsupported:
		return status.Verdict{Status: metav1.ConditionUnknown}
	case reason != "":
		message = "addresses of the pool are not announced: " + message
		if reason == place.ReasonNoDomain {
			message += v.notSelected(p.Name)
		}
		return status.Verdict{Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
	case !v.BGP.TakesPool(p.Name):
		switch outside, all := v.Layout.OutsideSubnets(p); {
		case all:
			return status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAddressOutsideSubnets,
				Message: "addresses of the pool are not announced: " + outside}
		case outside != "":
			return status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPartlyUsable,
				Message: "some addresses of the pool are not announced: " + outside}
		}
	}
	return status.Verdict{Status: metav1.ConditionTrue}
}

func joined[T fmt.Stringer](list []T) string {
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = t.String()
	}
	return strings.Join(texts, ", ")
}
