// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// addNodes adds the nodes that may be dead, what guards and agents report, and those that are silent. All that follows
// from a dead node is one finding.
func (v *overview) addNodes() {
	add := func(node, reason, message, command string) {
		v.out.Findings = append(v.out.Findings, Finding{State: Warning, Object: "Node " + node, Reason: reason,
			Message: message, Command: command})
	}
	counts := v.countByNode()
	for _, n := range sorted(v.objects.Nodes) {
		if v.unreachable(n.Name) {
			add(n.Name, v1alpha1.ReasonNodeSilent, mayBeDead+counts[n.Name].fail("connections", ifDead), lookAt(n.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.layout.TunnelsDown)) {
		reason, why, command := v.whyTunnelsDown(name)
		if reason == v1alpha1.ReasonNodeSilent {
			why += counts[name].fail("connections", ifDead)
		} else {
			why += counts[name].fail("connections through other gateways", "")
		}
		add(name, reason, why, command)
	}
	for _, l := range sorted(v.objects.Leases) {
		n := objects.Named(v.objects.Nodes, l.Name)
		if n == nil || v.unreachable(l.Name) || v.unanswered(l.Name) != "" {
			continue // The findings above say so.
		}
		if silent := v.silentSince(l.Name); silent != "" {
			add(l.Name, v1alpha1.ReasonNodeSilent, silent+counts[l.Name].fail("connections", ifDead+" or cut off"),
				v.ownPods(l.Name))
			continue
		}
		is := v.objects.Node(n, v.Now)
		if v.hasAgents() && is.Agent != nil && is.Agent.Unwritable != "" {
			reason, command, _ := v.mendChange(l.Name, is.Agent.Northd)
			add(l.Name, reason, is.Agent.Unwritable+counts[l.Name].fail("connections", ifNewer), command)
		}
	}
	for _, c := range world.ContestedHosts(v.world.Nodes) {
		for _, n := range c.Nodes[1:] {
			add(n.Name, ReasonAddressContested, contested(c, n), lookAtAddresses(c, n))
		}
	}
	if nodes, why := v.outdatedDaemons(); len(nodes) > 0 {
		add(joined(nodes), ReasonNotRead, why, v.ownPods(""))
	}
	if stopped := v.stoppedDaemons(); len(stopped) > 0 {
		add(joined(stopped), v1alpha1.ReasonStopped, "the BGP daemon was stopped; routers with graceful restart keep its "+
			"routes for up to "+world.Count(int(world.GracefulRestartTime/time.Minute), "minute"), v.ownPods("")+withSpeakers)
	}
}

// contested describes an address of a node that another one, which comes before it, reports as well.
func contested(c world.ContestedHost, n *world.Node) string {
	why, first := "is older", c.Nodes[0]
	if n.Deleting || n.Unreachable {
		why = "is neither being deleted nor silent"
	}
	consequence := "endpoints with this address get traffic on " + first.Name + " only"
	if n.HasOwnZone() {
		consequence = "endpoints with this address whose EndpointSlice names neither get traffic on " + first.Name
	}
	return fmt.Sprintf("it reports %s as its own address, as node %s does, which %s: %s", c.Addr, first.Name, why,
		consequence)
}

// lookAtAddresses returns the command about an address of a node that another one has as well.
func lookAtAddresses(c world.ContestedHost, n *world.Node) string {
	return printable.Command("kubectl get nodes %s %s -o wide   # one of both kubelets reports a wrong address, or the "+
		"machine has two Nodes", c.Nodes[0].Name, n.Name)
}

// stoppedDaemons returns the nodes whose BGP daemon was stopped, if there is a BGPPeer.
func (v *overview) stoppedDaemons() []string {
	var stopped []string
	for _, s := range sorted(v.objects.NodeStatuses) {
		if s.Status.StopTime != nil && len(v.objects.Peers) > 0 && !v.unreachable(s.Name) {
			stopped = append(stopped, s.Name)
		}
	}
	return stopped
}

// outdatedDaemons returns the nodes whose BGP daemons can't read a kind any more, and what the first of them reports.
func (v *overview) outdatedDaemons() (nodes []string, why string) {
	for _, s := range sorted(v.objects.NodeStatuses) {
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		if c != nil && c.Reason == v1alpha1.ReasonNotRead && !v.unreachable(s.Name) {
			nodes, why = append(nodes, s.Name), cmp.Or(why, c.Message)
		}
	}
	return nodes, why
}

// silentSince returns for how long the guard or agent of a node has not reported; empty if it reports, or none runs.
func (p *path) silentSince(node string) string {
	l := objects.Named(p.objects.Leases, node)
	if l == nil || !p.objects.Expired(l, p.Now) {
		return ""
	}
	return "its guard or agent has not reported for " + duration.HumanDuration(max(p.Now.Sub(l.Spec.RenewTime.Time), 0))
}

// announces reports whether a Service shows that a gateway has claimed the shard of its address: then the status of the
// L2Domain, which is written at most once in a second, does not show yet which gateway has claimed it.
func (v *overview) announces(id world.ShardID) bool {
	return slices.ContainsFunc(v.objects.Services, func(s *corev1.Service) bool {
		announced := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
		return slices.ContainsFunc(convert.Assigned(s), func(a netip.Addr) bool {
			of, ok := v.layout.ConfiguredShardFor(s.Labels, v.allocation.PoolOf(a), a)
			return ok && of == id && showsGateway(announced, a)
		})
	})
}

// announcesPool reports whether an L2Domain has a pool, or a BGPAdvertisement that has an effect selects it.
func (v *overview) announcesPool(pool string) bool {
	return slices.ContainsFunc(v.world.Domains, func(d *world.Domain) bool { return slices.Contains(d.Pools, pool) }) ||
		v.bgp.SelectsPool(pool)
}

// ifDead is when connections to a silent node fail.
const ifDead = " if it is dead"

// ifNewer is when connections fail to endpoints on a node whose zone can't be changed.
const ifNewer = " if the endpoint or the Service is newer than this"

// lookAt returns the command about a node that may be dead.
func lookAt(node string) string {
	return printable.Command("kubectl describe node %s   # then look at its power, its network and its kubelet", node)
}
