// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// ServiceOptions returns the settings with which Services are converted: those of a controller without flags, except
// for the classes that it serves, which the conditions of Services show.
func (o *Objects) ServiceOptions() convert.Options {
	options := o.options()
	options.Classes = o.classes()
	return options
}

func (o *Objects) options() convert.Options {
	return convert.Options{DefaultClass: true, MetalLBAnnotations: true, DrainTaints: convert.DefaultDrainTaints(),
		OpenShiftSDN: o.onOpenShiftSDN()}
}

// onOpenShiftSDN reports whether the controller serves L2Domains by the kernels of nodes, as their statuses say. The
// Leases of agents count only while no status says a mode, and no node has a chassis: each node can write its own.
func (o *Objects) onOpenShiftSDN() bool {
	served := false
	for _, d := range o.Domains {
		if world.ServingMode(d.Status.Mode) == world.ServedByKernels {
			return true
		}
		served = served || d.Status.Mode != ""
	}
	return !served && !slices.ContainsFunc(o.Nodes, convert.HasChassis) &&
		slices.ContainsFunc(o.Leases, func(l *coordinationv1.Lease) bool {
			return l.Annotations[v1alpha1.AnnotationAgent] != ""
		})
}

// classes returns the classes of Services that have our conditions. A Service that the controller does not serve any
// more loses them.
func (o *Objects) classes() []string {
	var classes []string
	for _, s := range o.Services {
		if class := s.Spec.LoadBalancerClass; class != nil && !slices.Contains(classes, *class) &&
			meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated) != nil {
			classes = append(classes, *class)
		}
	}
	return classes
}

// Snapshot converts the objects as the controller does.
func (o *Objects) Snapshot(now time.Time) *world.Snapshot {
	options := o.ServiceOptions()
	w := &world.Snapshot{Now: now, PrimaryNetworks: map[string]bool{}, ShardStates: map[world.ShardID]world.ShardState{},
		Communities: map[string][]world.Finding{}, Leaving: map[netip.Addr]world.Key{}, Claims: o.Claims,
		EgressIPs: map[string][]netip.Addr{}}
	w.Cluster.OpenShiftSDN = options.OpenShiftSDN
	namespaces := convert.Namespaces{}
	for _, n := range o.Namespaces {
		namespaces[n.Name] = n.Labels
		if _, primary := n.Labels[convert.LabelPrimaryNetwork]; primary {
			w.PrimaryNetworks[n.Name] = true
		}
	}
	for _, p := range o.Pools {
		w.Pools = append(w.Pools, convert.Pool(p, namespaces))
	}
	for _, n := range o.Nodes {
		w.Nodes = append(w.Nodes, o.Node(n, now))
	}
	zones := world.ZonesOf(w.Nodes, true)
	for i, n := range w.Nodes {
		if zones.Interconnect {
			w.Nodes[i] = n.WithAgentFault()
		} else if n.Agent != nil { // what the agent reported before the cluster left interconnect
			bare := *n
			bare.Agent = nil
			w.Nodes[i] = &bare
		}
	}
	for _, d := range o.Domains {
		w.Domains = append(w.Domains, convert.Domain(d, o.Pools, o.Nodes))
	}
	var lists world.Lists
	for _, s := range o.Services {
		key := world.Key{Namespace: s.Namespace, Name: s.Name}
		ours, ok := convert.Service(s, convert.Slices(o.SlicesOf(key)), options)
		if ok {
			w.Services = append(w.Services, ours)
		}
		lists.Set(key, convert.ListedExternalIPs(s, ours))
	}
	w.Listed, _ = lists.Listed(w.Services)
	for _, e := range o.EgressIPs {
		w.EgressIPs[e.GetName()] = convert.EgressIPAddrs(e)
	}
	w.Cluster.NoDatabase = zones.Interconnect
	w.Cluster.ModeSetting = o.mode()
	o.addShards(w)
	o.addBridges(w)
	o.addBGP(w)
	return w
}

// Node converts a node with the report of its guard or agent, if that has not expired.
func (o *Objects) Node(n *corev1.Node, now time.Time) *world.Node {
	out := convert.Node(n, o.options())
	l := Named(o.Leases, n.Name)
	if l == nil {
		return out
	}
	r := convert.ReadReport(l)
	if o.Expired(l, now) {
		if r.Zone == nil {
			return out
		}
		silent := *r.Zone
		silent.Silent = true
		r = convert.Report{Zone: &silent}
	}
	return convert.WithReport(out, r)
}

// maxClockSkew is how much the clocks of the user's machine and of the cluster may differ.
const maxClockSkew = time.Minute

// Expired reports whether a guard or an agent has not renewed its Lease in time, by the clock of the cluster. now is
// the time on the user's machine.
func (o *Objects) Expired(l *coordinationv1.Lease, now time.Time) bool {
	return Expired(l, o.clock(now))
}

// clock returns the time of the cluster: that of the last renewal by the leading controller, which renews its Lease
// every few seconds. Nodes can't write that Lease. If the renewal is too far away, no controller works, and now counts.
func (o *Objects) clock(now time.Time) time.Time {
	if o.Leader == nil || o.Leader.Spec.RenewTime == nil {
		return now
	}
	if renewed := o.Leader.Spec.RenewTime.Time; now.Sub(renewed).Abs() <= maxClockSkew {
		return renewed
	}
	return now
}

// Expired reports whether the holder of a Lease has not renewed it in time.
func Expired(l *coordinationv1.Lease, now time.Time) bool {
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) > convert.ReportTime(l)
}

// mode returns the setting in force, as far as conditions show it.
func (o *Objects) mode() world.ModeSetting {
	for _, p := range o.Pools {
		if s, ok := convert.StoredModeSetting(p); ok {
			return s
		}
	}
	off := func(conditions []metav1.Condition) bool {
		c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == v1alpha1.ReasonDisabledByMode
	}
	is := convert.DefaultModeSetting(convert.Options{})
	for _, p := range o.Pools {
		if off(p.Status.Conditions) {
			is.Mode = world.Disabled
			return is
		}
	}
	for _, d := range o.Domains {
		if off(d.Status.Conditions) {
			is.Mode = world.BGPOnly
		}
	}
	for _, p := range o.Peers {
		if off(p.Status.Conditions) {
			is.Mode = world.Layer2Only
		}
	}
	return is
}

// addShards adds what the statuses of L2Domains report of the shards.
func (o *Objects) addShards(w *world.Snapshot) {
	known := map[string]bool{}
	for _, n := range w.Nodes {
		known[n.Name] = n.Chassis != ""
	}
	unknown := func(name string) bool { return !known[name] }
	for _, d := range o.Domains {
		for _, s := range d.Status.Shards {
			state := world.ShardState{Settled: true, Order: slices.DeleteFunc(slices.Clone(s.Gateways), unknown)}
			if known[s.Active] {
				state.Active = s.Active
			}
			w.ShardStates[world.ShardID{Domain: d.Name, Index: int(s.Index)}] = state
		}
	}
}

// addBridges adds the bridges of the nodes: those that agents report, otherwise those that follow from the statuses of
// L2Domains. A node is taken as attached to a network unless a status says that it is not, or may have no room to.
func (o *Objects) addBridges(w *world.Snapshot) {
	w.Bridges = map[string]world.Bridges{}
	for _, n := range w.Nodes {
		if n.Chassis == "" {
			continue
		}
		if n.Agent != nil && n.Agent.Bridges != nil {
			w.Bridges[n.Chassis] = n.Agent.Bridges
			continue
		}
		bridges := world.Bridges{}
		for _, d := range o.Domains {
			if bridge := bridgeOf(d, n); bridge != "" {
				bridges[d.Spec.PhysicalNetwork] = bridge
			}
		}
		w.Bridges[n.Chassis] = bridges
	}
}

// bridgeOf returns the bridge of a node on the network of a domain, empty if there is none. A bridge whose name is not
// known has that of the network. If the status says nothing about nodes yet, the bridge of OVN-Kubernetes' own network
// is known all the same: a domain there needs guards.
func bridgeOf(d *v1alpha1.L2Domain, n *world.Node) string {
	if port, ok := n.Localnets[plan.LocalnetPort(d.Name)]; ok {
		return port.Bridge
	}
	for _, out := range d.Status.ExcludedNodes {
		if out.Name != n.Name {
			continue
		}
		switch out.Reason {
		case v1alpha1.ExcludedNotAttached:
			return ""
		case v1alpha1.ExcludedSharedGateway, v1alpha1.ExcludedNoGuard, v1alpha1.ExcludedPortMissing:
			return n.GatewayBridge
		}
		return d.Spec.PhysicalNetwork
	}
	silent := d.Status.EligibleNodes == 0 && len(d.Status.ExcludedNodes) == 0
	if silent && d.Spec.PhysicalNetwork == world.GatewayNetwork && n.GatewayBridge != "" {
		return n.GatewayBridge
	}
	isGateway := func(s v1alpha1.ShardStatus) bool { return slices.Contains(s.Gateways, n.Name) }
	if len(d.Status.ExcludedNodes) >= v1alpha1.MaxExcludedNodes && !slices.ContainsFunc(d.Status.Shards, isGateway) {
		return ""
	}
	return d.Spec.PhysicalNetwork
}

// addBGP adds the BGP objects, and the sessions that nodes report.
func (o *Objects) addBGP(w *world.Snapshot) {
	related := convert.RelatedObjects{Nodes: o.Nodes, Pools: o.Pools, Peers: map[string]*v1alpha1.BGPPeer{},
		Profiles: map[string]*v1alpha1.BFDProfile{}}
	for _, p := range o.Peers {
		related.Peers[p.Name] = p
	}
	for _, p := range o.Profiles {
		related.Profiles[p.Name] = p
		w.Profiles = append(w.Profiles, p.Name)
	}
	related.Aliases, w.Communities = convert.ReadAliases(o.Communities)
	for _, p := range o.Peers {
		of := related
		if p.Spec.Backend == v1alpha1.BackendFRRK8s && o.lacksSecret(p) {
			of.FRR = &world.FRR{Namespace: o.FRRNamespace()}
		}
		w.Peers = append(w.Peers, convert.Peer(o.withoutSecret(p), of))
	}
	for _, a := range o.Advertisements {
		w.Advertisements = append(w.Advertisements, convert.Advertisement(a, related))
	}
	w.Sessions = map[string]map[string]world.PeerSession{}
	for _, s := range o.NodeStatuses {
		sessions := convert.Sessions(s, w.Now)
		if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); c != nil &&
			c.Status == metav1.ConditionUnknown {
			for peer := range sessions {
				sessions[peer] = world.PeerSession{Unknown: true, Problem: c.Message}
			}
		} else if why := o.ReportExpired(s.Name, w.Now); why != "" {
			for peer := range sessions {
				sessions[peer] = world.PeerSession{Unknown: true, Problem: why}
			}
		}
		w.Sessions[s.Name] = sessions
	}
	w.FRR = o.frr()
	w.AddFRRSessions()
}

// withoutSecret returns a peer whose password stands for its Secret, unless that is missing. A Secret that an edit sets
// is taken for another password.
func (o *Objects) withoutSecret(p *v1alpha1.BGPPeer) *v1alpha1.BGPPeer {
	r := p.Spec.PasswordSecret
	if r == nil || o.lacksSecret(p) || p.Spec.Backend == v1alpha1.BackendFRRK8s {
		return p
	}
	out := p.DeepCopy()
	if out.Spec.PasswordSecret, out.Spec.Password = nil, "Secret "+r.Name; o.EditedSecrets[o.PasswordOf(p)] {
		out.Spec.Password += ", edited"
	}
	return out
}

// lacksSecret reports whether the Secret of a peer is absent, or the controller has reported that, unless an edit sets
// it.
func (o *Objects) lacksSecret(p *v1alpha1.BGPPeer) bool {
	secret := o.PasswordOf(p)
	if p.Spec.PasswordSecret == nil || o.EditedSecrets[secret] {
		return false
	}
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAccepted)
	return o.AbsentSecrets[secret] || c != nil && c.Reason == v1alpha1.ReasonSecretNotFound
}

// PasswordOf returns the Secret with the password of a peer as NAMESPACE/NAME; empty if there is none, or if it is in
// the namespace of frr-k8s and that is not known.
func (o *Objects) PasswordOf(p *v1alpha1.BGPPeer) string {
	namespace := v1alpha1.PasswordsNamespace
	if p.Spec.Backend == v1alpha1.BackendFRRK8s {
		namespace = o.FRRNamespace()
	}
	if p.Spec.PasswordSecret == nil || namespace == "" {
		return ""
	}
	return namespace + "/" + p.Spec.PasswordSecret.Name
}

// passwordNamespaces returns the namespaces whose Secrets have passwords.
func (o *Objects) passwordNamespaces() []string {
	return []string{v1alpha1.PasswordsNamespace, o.FRRNamespace()}
}
