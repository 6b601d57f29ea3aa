// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// ReasonNorthdStopped is the reason of rows that ovn-northd does not translate.
const ReasonNorthdStopped = "NorthdStopped"

// addDataplane adds whether the dataplane has what the controller wants it to have.
func (p *path) addDataplane() {
	if !p.layer2 {
		p.add(Link{Name: LinkDataplane, State: Unused, Message: "no L2Domain announces " + p.subject()})
		return
	}
	object := "OVN"
	if p.world.Cluster.OpenShiftSDN {
		object = "annotations of nodes"
	}
	if c := p.verdict(v1alpha1.ReasonDatabaseUnreachable); c != nil {
		link := Link{Name: LinkDataplane, Object: object, State: stateOf(c), Message: c.Message}
		name, northd := p.unwritableGateway()
		p.addUnchangeable(&link, name, northd)
		p.add(link)
		return
	}
	if s := p.stoppedOf(northdNames()...); s != nil {
		link := Link{Name: LinkDataplane, Object: object, State: Broken, Reason: ReasonNorthdStopped,
			Message: "ovn-northd translates no changes: " + s.String(), Command: s.command()}
		if p.announced != nil && p.announced.Status == metav1.ConditionTrue {
			link.State = Warning
			link.Message += "; OVN keeps what it has"
		}
		p.add(link)
		return
	}
	if c := p.verdict(v1alpha1.ReasonDataplaneError, v1alpha1.ReasonMisplacedFlow, v1alpha1.ReasonTooManyBackends,
		v1alpha1.ReasonTooManySourceRanges, v1alpha1.ReasonProgramming, v1alpha1.ReasonNotTranslated); c != nil {
		link := Link{Name: LinkDataplane, Object: object, State: stateOf(c), Reason: c.Reason, Message: c.Message,
			Command: p.mendRows(c.Reason)}
		if c.Reason == v1alpha1.ReasonNotTranslated {
			name, _ := p.unwritableGateway()
			p.addUnchangeable(&link, name, true)
		}
		p.add(link)
		return
	}
	if c := p.verdict(v1alpha1.ReasonNodeSilent); c != nil && p.hasAgents() {
		p.add(Link{Name: LinkDataplane, Object: object, State: stateOf(c), Reason: c.Reason, Message: c.Message,
			Command: p.ownPods("")})
		return
	}
	p.add(p.programmed(object))
}

// addUnchangeable adds why the databases that a message is about can't be changed: the northbound database, or
// ovn-northd, without which changes never take effect.
func (p *path) addUnchangeable(link *Link, node string, northd bool) {
	var s *stopped
	if link.Reason, link.Command, s = p.mendChange(node, northd); s != nil {
		link.Message += "; " + s.String()
	}
}

// unwritableGateway returns the first active gateway of the addresses whose zone can't be changed, and whether
// ovn-northd is why; empty if there is none, as without interconnect.
func (p *path) unwritableGateway() (name string, northd bool) {
	for _, n := range p.gateways() {
		if p.hasAgents() && n.Agent != nil && n.Agent.Unwritable != "" {
			return n.Name, n.Agent.Northd
		}
	}
	return "", false
}

// programmed returns the link for rows about which no condition complains.
func (p *path) programmed(object string) Link {
	link := Link{Name: LinkDataplane, Object: object}
	// The controller gives these reasons only for Services that OVN has.
	later := []string{v1alpha1.ReasonSeveralActiveGateways, v1alpha1.ReasonGatewayFaulty,
		v1alpha1.ReasonStaleFlow, v1alpha1.ReasonNoGuard, v1alpha1.ReasonNoEndpoints, v1alpha1.ReasonNoActiveGateway}
	switch {
	case p.announced == nil:
		link.State, link.Reason = Unknown, v1alpha1.ReasonProgramming
		link.Message = "the controller has not written condition " + v1alpha1.ConditionAnnounced
	case p.announced.Reason == v1alpha1.ReasonUnsteady:
		link.State, link.Reason, link.Message = Warning, p.announced.Reason, p.announced.Message
	case p.announced.Status != metav1.ConditionTrue && !p.concerns(p.announced, p.asked()):
		// OVN had the rows before the addresses were in the status. The condition has the first fault only, so it does not
		// show what is wrong with these addresses besides what their own objects show.
		link.State, link.Reason, link.Message = Warning, p.announced.Reason, aboutOther+p.announced.Message
	case p.mayLackRows:
		link.State, link.Reason = Unknown, v1alpha1.ReasonProgramming
		link.Message = "whether OVN has the rows of shards that no gateway has claimed is not known"
	case p.announced.Status == metav1.ConditionTrue || slices.Contains(later, p.announced.Reason):
		link.State, link.Message = OK, "programmed"
		if p.service.ConnectionsMayEnd && !p.service.SessionAffinity && !p.world.Cluster.OpenShiftSDN {
			link.Message += "; with several endpoints, connections end at a failover: " + v1alpha1.AnnotationKeepConnections +
				" is false"
		}
		p.addUnwritable(&link)
	default:
		link.State, link.Message = Unused, "not announced: "+p.announced.Reason
		if asked := p.asked(); len(namedIn(p.announced, asked)) < len(asked) { // Others may be announced.
			for _, a := range slices.Backward(namedIn(p.announced, asked)) {
				link.Message = fmt.Sprintf("%s: %s", a, link.Message)
			}
		}
	}
	return link
}

// addUnwritable adds a gateway whose zone can't be changed.
func (p *path) addUnwritable(link *Link) {
	if name, northd := p.unwritableGateway(); name != "" {
		link.State = Warning
		n := p.objects.Node(objects.Named(p.objects.Nodes, name), p.Now)
		link.Message = fmt.Sprintf("node %s applies no changes: %s; OVN keeps what it has", name, n.Agent.Unwritable)
		p.addUnchangeable(link, name, northd)
	}
}

// stoppedOf is stopped for the databases that program the Service: with interconnect those of its active gateways.
func (p *path) stoppedOf(containers ...string) *stopped {
	if !p.hasAgents() {
		return p.stopped("", containers...)
	}
	for _, n := range p.gateways() {
		if s := p.stopped(n.Name, containers...); s != nil {
			return s
		}
	}
	return nil
}

func (p *path) hasAgents() bool { return p.world.Cluster.NoDatabase }

func (p *path) mendRows(reason string) string {
	switch reason {
	case v1alpha1.ReasonTooManyBackends:
		return "raise the flag that the message names, if it names one, or split the Service"
	case v1alpha1.ReasonTooManySourceRanges:
		return "list fewer ranges in spec.loadBalancerSourceRanges"
	case v1alpha1.ReasonMisplacedFlow:
		return "ovn-appctl -t ovn-northd inc-engine/recompute   # docs/failures.md, Failure modes"
	}
	return p.controllerLog()
}

// controllerLog returns the command that shows the log of the controller that leads. It names the Pod, by a Lease that
// kubelets cannot write: a kubelet can create mirror Pods with the controller's label, and writes their logs.
func (p *path) controllerLog() string {
	if l := p.objects.Leader; l != nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" {
		return printable.Command("kubectl -n %s logs %s --tail=100", l.Namespace, *l.Spec.HolderIdentity)
	}
	return printable.Command("kubectl -n %s get pods -o wide -l app.kubernetes.io/name=ovnkube-slb",
		p.objects.ControllerNamespace()) + "   # see the log of the one that works"
}

// gateways returns the active gateways of the addresses that the question is about.
func (p *path) gateways() []*world.Node {
	var list []*world.Node
	for _, a := range p.asked() {
		id, ok := p.layout.ConfiguredShardFor(p.service.Labels, p.allocation.PoolOf(a), a)
		d := objects.Named(p.objects.Domains, id.Domain)
		if !ok || d == nil {
			continue
		}
		for _, s := range d.Status.Shards {
			if n := objects.Named(p.objects.Nodes, s.Active); int(s.Index) == id.Index && n != nil {
				list = append(list, p.objects.Node(n, p.Now))
			}
		}
	}
	return list
}
