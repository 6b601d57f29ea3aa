// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Overview is the state of the service load balancers of a cluster. Lists are sorted by name.
type Overview struct {
	Domains []DomainOverview `json:"l2Domains,omitempty"`
	Pools   []PoolOverview   `json:"ipAddressPools,omitempty"`
	Peers   []PeerOverview   `json:"bgpPeers,omitempty"`
	// Services are the Services that we serve, and Announced those whose condition Announced is True.
	Services  int `json:"services"`
	Announced int `json:"announced"`
	// Unread are the resources that the API server does not allow to be read: the fields above do not count their objects.
	Unread []string `json:"unread,omitempty"`
	// Findings are what is wrong: what is Broken first.
	Findings []Finding `json:"findings,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
}

// DomainOverview is an L2Domain and its shards with addresses.
type DomainOverview struct {
	Name            string                 `json:"name"`
	PhysicalNetwork string                 `json:"physicalNetwork"`
	VLAN            int32                  `json:"vlan,omitempty"`
	State           State                  `json:"state"`
	Reason          string                 `json:"reason,omitempty"`
	EligibleNodes   int32                  `json:"eligibleNodes"`
	Shards          []v1alpha1.ShardStatus `json:"shards,omitempty"`
}

// PoolOverview is the usage of a pool.
type PoolOverview struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	IPv4   Usage  `json:"ipv4"`
	IPv6   Usage  `json:"ipv6"`
	// External is set if a provider chooses the addresses, so that it is not known how many there are.
	External bool `json:"external,omitempty"`
}

// Usage counts the addresses of a family in a pool.
type Usage struct {
	Assigned    int64 `json:"assigned"`
	CoolingDown int64 `json:"coolingDown,omitempty"`
	Available   int64 `json:"available"`
}

// PeerOverview is a BGPPeer and the number of its sessions.
type PeerOverview struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	ASN     int64  `json:"asn,omitempty"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	// Message names the nodes that may be dead or drain, if that is why sessions are not established.
	Message     string `json:"message,omitempty"`
	Established int    `json:"established"`
	Sessions    int    `json:"sessions"`
}

// Finding is something that is wrong with an object.
type Finding struct {
	State State `json:"state"`
	// Object is KIND NAME.
	Object  string `json:"object"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Command string `json:"command,omitempty"`
}

// ReasonControllerSilent is the reason of findings about a controller that does not renew its Lease.
const ReasonControllerSilent = "ControllerSilent"

// ReasonSessionsOutdated is the reason of findings about a BGPPeer whose edit has not reached all sessions.
const ReasonSessionsOutdated = "SessionsOutdated"

// ReasonAddressContested is the reason of findings about a node that reports the address of another one as its own.
const ReasonAddressContested = "AddressContested"

// Summarize returns the overview of a cluster.
func Summarize(o *objects.Objects, now time.Time) *Overview {
	accepted := []string{v1alpha1.ConditionAccepted}
	v := &overview{path: clusterPath(o, Question{Now: now}), out: &Overview{}}
	v.computeDecisions()
	v.addLeader() // everything else may be out of date without it
	v.addNodes()
	for _, d := range sorted(o.Domains) {
		v.addDomain(d)
	}
	for _, p := range sorted(o.Pools) {
		v.addPool(p)
	}
	keepers := v.survey.SessionNodes()
	for _, p := range sorted(o.Peers) {
		v.addPeer(p, keepers[p.Name])
	}
	for _, a := range sorted(o.Advertisements) {
		v.judge("BGPAdvertisement", a.Name, a.Status.Conditions, accepted, nil)
	}
	v.addStopped()
	v.addServices()
	v.addUnread()
	slices.SortStableFunc(v.out.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	v.out.Notes = slices.Concat(v.possibleMistakes(), v.otherClasses(), v.noLeader())
	printable.Clean(v.out)
	return v.out
}

// overview collects an Overview. The path in it is that of no Service.
type overview struct {
	*path
	out *Overview
}

func rank(s State) int { return slices.Index([]State{Broken, Unknown, Warning}, s) }

func sorted[T metav1.Object](list []T) []T {
	return slices.SortedFunc(slices.Values(list), func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

func acceptedAndReady() []string {
	return []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReady}
}

// judge returns the state of an object by its conditions, and the reason if it is not OK, and adds a finding then: for
// the worst condition, or the first of equal ones. replace returns the finding to add instead, or false for none; nil
// replaces none.
func (v *overview) judge(kind, name string, conditions []metav1.Condition, types []string,
	replace func(Finding) (Finding, bool)) (State, string) {
	worst := Finding{State: OK}
	for _, t := range types {
		c := meta.FindStatusCondition(conditions, t)
		switch {
		case c == nil:
			return Unknown, ReasonNotProcessed
		case c.Status == metav1.ConditionTrue && !weak(c.Reason):
			continue
		}
		f := Finding{State: Warning, Object: kind + " " + name, Reason: c.Reason, Message: c.Message,
			Command: v.mendObject(kind, name, c)}
		if c.Status != metav1.ConditionTrue {
			f.State = stateOf(c)
		}
		if worst.State == OK || rank(f.State) < rank(worst.State) {
			worst = f
		}
	}
	if worst.State == OK {
		return OK, ""
	}
	shown := true
	if replace != nil {
		worst, shown = replace(worst)
	}
	if shown {
		v.out.Findings = append(v.out.Findings, worst)
	}
	return worst.State, worst.Reason
}

// weak reports whether a reason of a condition that is True is worth the attention of an administrator.
func weak(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonTooFewGateways, v1alpha1.ReasonGatewaysDraining,
		v1alpha1.ReasonPartlyUsable, v1alpha1.ReasonProfileNotFound, v1alpha1.ReasonPeerNotFound,
		v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonDuplicatePeer, v1alpha1.ReasonAttributesDiffer,
		v1alpha1.ReasonAggregateTooWide}, reason)
}

func (v *overview) addDomain(d *v1alpha1.L2Domain) {
	is := DomainOverview{Name: d.Name, PhysicalNetwork: d.Spec.PhysicalNetwork, VLAN: d.Spec.VLAN,
		EligibleNodes: d.Status.EligibleNodes, Shards: d.Status.DeepCopy().Shards}
	var shown *v1alpha1.ExcludedNode // The finding of the L2Domain has the cause and the command.
	is.State, is.Reason = v.judge("L2Domain", d.Name, d.Status.Conditions, acceptedAndReady(),
		func(f Finding) (Finding, bool) {
			switch {
			case f.Reason == v1alpha1.ReasonNoGateway && len(d.Status.ExcludedNodes) > 0:
				shown = nearest(d)
				f.Command = v.mend(d, shown)
			case f.Reason == v1alpha1.ReasonNoGateway:
				f.Command = selectGateways(d)
			case f.Reason == v1alpha1.ReasonTooFewGateways && len(d.Status.ExcludedNodes) > 0 && isNoMember(nearest(d)):
				shown = nearest(d)
				f.Command = v.mend(d, shown)
			}
			// In these cases the finding of the Node says so.
			return f, (f.Reason != v1alpha1.ReasonTooFewGateways || !v.lacksDead(d)) &&
				(f.Reason != v1alpha1.ReasonPartlyUsable || !v.lacksTunnels(d))
		})
	add := func(f Finding) {
		f.Object = "L2Domain " + d.Name
		v.out.Findings = append(v.out.Findings, f)
		if is.State == OK || rank(f.State) < rank(is.State) {
			is.State, is.Reason = f.State, f.Reason
		}
	}
	for i := range d.Status.ExcludedNodes {
		out := &d.Status.ExcludedNodes[i]
		switch {
		case out == shown:
		case out.Reason == v1alpha1.ExcludedEnoughGateways || out.Reason == v1alpha1.ExcludedNotAttached:
		case v.unreachable(out.Name), v.saysNode(d, out): // A finding of its own says so.
			if is.State == OK {
				is.State, is.Reason = Warning, out.Reason
			}
		default:
			add(Finding{State: Warning, Reason: out.Reason, Message: out.Message, Command: v.mend(d, out)})
		}
	}
	for _, s := range d.Status.Shards {
		if s.Active == "" && !v.announces(world.ShardID{Domain: d.Name, Index: int(s.Index)}) {
			command, why := v.whyUnclaimed(d, &s)
			add(Finding{State: Broken, Reason: v1alpha1.ReasonNoActiveGateway, Command: command,
				Message: fmt.Sprintf("no gateway has claimed shard %d, which has %s", s.Index,
					world.Count(int(s.Addresses), "address")) + why})
		}
	}
	v.out.Domains = append(v.out.Domains, is)
}

// isNoMember reports whether an excluded node on the segment is none of the gateways: the condition Ready names why.
func isNoMember(n *v1alpha1.ExcludedNode) bool {
	return slices.Contains([]string{v1alpha1.ExcludedNoGuard, v1alpha1.ExcludedNoAgent, v1alpha1.ExcludedPortMissing,
		v1alpha1.ExcludedNoChassis}, n.Reason)
}

// saysNode reports whether the finding of a Node, whose tunnels are down, has the fault that excludes it from a domain.
func (v *overview) saysNode(d *v1alpha1.L2Domain, out *v1alpha1.ExcludedNode) bool {
	_, down := v.layout.TunnelsDown[out.Name]
	return down && out.Reason == v1alpha1.ExcludedFaulty &&
		v.fault(out.Name, d.Spec.PhysicalNetwork) == v.anyFault(out.Name)
}

// lacksDead reports whether a domain would have enough gateways if those were alive whose kubelets do not report.
func (v *overview) lacksDead(d *v1alpha1.L2Domain) bool {
	return len(d.Status.Shards) > 0 && !slices.ContainsFunc(d.Status.Shards, func(s v1alpha1.ShardStatus) bool {
		return len(s.Gateways) < v1alpha1.MinGatewaysForFailover || len(v.deadOf(s.Gateways)) == 0
	})
}

// lacksTunnels reports whether tunnels that are down are all that is wrong with a domain that is partly usable.
func (v *overview) lacksTunnels(d *v1alpha1.L2Domain) bool {
	accepted := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionAccepted)
	return len(v.layout.TunnelsDown) > 0 && accepted != nil && accepted.Reason != v1alpha1.ReasonPartlyUsable
}

func (v *overview) addPool(p *v1alpha1.IPAddressPool) {
	is := PoolOverview{Name: p.Name, External: p.Spec.ExternalPool != nil,
		IPv4: Usage{p.Status.AssignedIPv4, p.Status.CoolingDownIPv4, p.Status.AvailableIPv4},
		IPv6: Usage{p.Status.AssignedIPv6, p.Status.CoolingDownIPv6, p.Status.AvailableIPv6}}
	is.State, is.Reason = v.judge("IPAddressPool", p.Name, p.Status.Conditions, acceptedAndReady(),
		func(f Finding) (Finding, bool) {
			if f.Reason == v1alpha1.ReasonNoDomain && v.announcesPool(p.Name) {
				f = Finding{State: Unknown, Object: f.Object, Reason: ReasonNotProcessed,
					Message: "the condition is older than the L2Domain or BGPAdvertisement of the pool"}
			}
			// The finding of the L2Domain says so, or that of the BGPAdvertisement.
			return f, f.Reason != v1alpha1.ReasonNoGateway &&
				(f.Reason != v1alpha1.ReasonNoDomain || v.bgp.IneffectiveOn(p.Name) == nil)
		})
	v.out.Pools = append(v.out.Pools, is)
}

// possibleMistakes returns notes about what may be a mistake in L2Domains: subnets that do not look like those of their
// segment, and preferences without effect. They may be right, so they are no findings.
func (v *overview) possibleMistakes() []string {
	var notes []string
	for _, d := range v.layout.Domains {
		for _, text := range slices.Concat(place.ForeignSubnets(d.Spec, v.world), d.Unmatched) {
			notes = append(notes, fmt.Sprintf("L2Domain %s: %s", d.Spec.Name, text))
		}
	}
	return notes
}

// addStopped adds the parts of OVN that do not run, and our own daemons on nodes.
func (v *overview) addStopped() {
	add := func(pod *corev1.Pod, s *stopped, consequence string) {
		if s != nil {
			v.out.Findings = append(v.out.Findings, Finding{State: Warning, Object: "Pod " + pod.Namespace + "/" + pod.Name,
				Reason: "NotReady", Message: s.String() + consequence, Command: s.command()})
		}
	}
	for _, pod := range sorted(v.objects.Pods) {
		if v.unreachable(pod.Spec.NodeName) {
			continue // A finding of its own says so.
		}
		only := path{objects: &objects.Objects{}}
		only.objects.Pods = append(only.objects.Pods, pod)
		for _, names := range [][]string{northboundNames(), northdNames(), controllerNames()} {
			add(pod, only.stopped("", names...), "")
		}
		add(pod, only.stoppedDaemon(""), "; until it is, what its node has reported may be out of date")
		if slices.ContainsFunc(v.world.Peers, func(p *world.Peer) bool { return p.FRRK8s }) {
			add(pod, only.stoppedFRR(""), "; until it is, what frr-k8s reports of the node may be out of date")
		}
	}
}

// addLeader adds a controller that does not renew its Lease: whatever it would write to statuses is not known.
func (v *overview) addLeader() {
	if silent := ControllerSilent(v.objects, v.Now); silent != "" {
		l := v.objects.Leader
		v.out.Findings = append(v.out.Findings, Finding{State: Unknown, Object: LeaseName(l),
			Reason: ReasonControllerSilent, Message: silent,
			Command: controllerPods(l)})
	}
}

// addUnread adds the resources that could not be read: whatever is wrong with them is not known.
func (v *overview) addUnread() {
	if unread := v.objects.Unread; len(unread) > 0 {
		v.out.Unread = unread
		v.out.Findings = append(v.out.Findings, Finding{State: Unknown, Object: "Resources " + joined(unread),
			Reason: ReasonNotRead, Message: "the API server does not allow them to be read"})
	}
}
