// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// advice returns a command with what it is good for. What only shows more is not promised to mend anything.
func advice(command string) string {
	changesNothing := regexp.MustCompile(`^(kubectl( -n \S+)? (get|describe|logs|api-resources|` +
		`slb (bgp|explain|status))|ip (link show|route get)|ovs-vsctl (list-ports|--columns=\S+ find))\b`)
	if changesNothing.MatchString(command) && !strings.Contains(command, "| kubectl ") {
		return "to see more: " + command
	}
	return "to mend it: " + command
}

// kubectl returns a command about the namespace of the Service.
func (p *path) kubectl(format string, values ...any) string {
	return printable.Command("kubectl -n %s "+format, append([]any{p.Service.Namespace}, values...)...)
}

// enable returns the command that enables what a message of a world.ModeSetting reports as disabled.
func enable(message string) string {
	if strings.Contains(message, v1alpha1.AnnotationMode) {
		return "kubectl annotate networks.operator.openshift.io cluster " + v1alpha1.AnnotationMode + "=" +
			world.Layer2AndBGP.String() + " --overwrite"
	}
	return "set --enable-service-load-balancers=true (config file: enabled=true) and restart the controller"
}

// undrain returns the command that ends the outage that was announced for a node.
func (p *path) undrain(name string) string {
	n := objects.Named(p.objects.Nodes, name)
	if n == nil {
		return "kubectl get nodes"
	}
	if _, ok := n.Labels[corev1.LabelNodeExcludeBalancers]; ok {
		return printable.Command("kubectl label node %s "+corev1.LabelNodeExcludeBalancers+"-", name)
	}
	if _, ok := n.Annotations[v1alpha1.AnnotationDrain]; ok {
		return printable.Command("kubectl slb undrain %s", name)
	}
	for _, t := range n.Spec.Taints {
		if slices.Contains(convert.DefaultDrainTaints(), t.Key) {
			return printable.Command("kubectl taint node %s %s-", name, t.Key)
		}
	}
	return printable.Command("kubectl describe node %s", name)
}

// mend returns the command that lets an excluded node be a gateway again.
func (p *path) mend(d *v1alpha1.L2Domain, out *v1alpha1.ExcludedNode) string {
	switch out.Reason {
	case v1alpha1.ExcludedNotAttached:
		if p.world.Cluster.OpenShiftSDN {
			return printable.Command("kubectl edit l2domain %s   # spec.subnets: those of an interface of node %s", d.Name,
				out.Name)
		}
		if hasGateway(d) { // Others have the mapping: an edit of the domain would take it away from them.
			return printable.Command("ovs-vsctl set Open_vSwitch . external_ids:ovn-bridge-mappings=MAPPINGS,%s:BRIDGE   # on "+
				"node %s; MAPPINGS are those that it has (docs/tasks/segment.md)", d.Spec.PhysicalNetwork, out.Name)
		}
		return printable.Command("kubectl edit l2domain %s   # spec.physicalNetwork: a network in ovn-bridge-mappings of "+
			"node %s; or add %s:BRIDGE to those (docs/tasks/segment.md)", d.Name, out.Name, d.Spec.PhysicalNetwork)
	case v1alpha1.ExcludedDraining:
		return p.undrain(out.Name)
	case v1alpha1.ExcludedFaulty:
		return p.mendFault(out.Name, p.excludingFault(out.Name, d.Spec.PhysicalNetwork))
	case v1alpha1.ExcludedNoGuard:
		return p.ownPods(out.Name) + withGuards
	case v1alpha1.ExcludedNoAgent:
		return p.ownPods(out.Name) + withAgents
	case v1alpha1.ExcludedNoChassis, v1alpha1.ExcludedPortMissing:
		return printable.Command("kubectl get pods -A -o wide --field-selector spec.nodeName=%s   # those of OVN-Kubernetes",
			out.Name)
	case v1alpha1.ExcludedSharedGateway:
		return printable.Command("kubectl edit l2domain %s   # physicalNetwork: one with a bridge of its own", d.Name)
	case v1alpha1.ExcludedOtherZone:
		return "kubectl get nodes -o custom-columns=NAME:.metadata.name,ZONE:.metadata.annotations.k8s\\.ovn\\.org/zone-name"
	}
	return describe(d)
}

func describe(d *v1alpha1.L2Domain) string {
	return printable.Command("kubectl describe l2domain %s", d.Name)
}

// What to do if ownPods shows no Pod. Which manifests or chart installed the product is not known, and applying others
// would remove what they do not contain, for example BGP.
const (
	withGuards = "   # none: the flavour that was installed must contain guards (docs/install.md)"
	withAgents = "   # none: the flavour that was installed must contain agents (docs/install.md)"

	withSpeakers = "   # none, or without --enable-bgp: the flavour must contain BGP (docs/install.md)"
)

// ownPods returns the command that shows the Pods of this product on nodes, or only on the node that is given.
func (p *path) ownPods(node string) string {
	name := nodeDaemons
	if p.world.Cluster.OpenShiftSDN {
		name = "ovnkube-slb-sdn"
	}
	command := printable.Command("kubectl -n %s get pods -o wide -l app.kubernetes.io/name=%s",
		p.objects.ControllerNamespace(), name)
	if node != "" {
		command += printable.Command(" --field-selector spec.nodeName=%s", node)
	}
	return command
}

// controllerPods returns the command that shows the Pods of the controller that has a Lease.
func controllerPods(l *coordinationv1.Lease) string {
	return printable.Command("kubectl -n %s get pods -o wide -l app.kubernetes.io/name=ovnkube-slb", l.Namespace)
}

// mendObject returns the command against what a condition of an object of ours reports.
func (p *path) mendObject(kind, name string, c *metav1.Condition) string {
	resource := strings.ToLower(kind) + "s.slb.k8s.ovn.org"
	switch c.Reason {
	case v1alpha1.ReasonDisabledByMode:
		return p.mendDomain(c.Reason, c.Message, name, netip.Addr{})
	case v1alpha1.ReasonNoDomain:
		const orAdvertise = "or select the pool by a BGPAdvertisement"
		switch add := p.addToDomain(name, netip.Addr{}); {
		case add.advertises:
			return add.command
		case add.hasComment:
			return add.command + "; " + orAdvertise
		default:
			return add.command + "   # " + orAdvertise
		}
	case v1alpha1.ReasonUnsupported: // of an L2Domain, or of the pool that it announces
		if strings.Contains(c.Message, "--enable-l2") {
			return p.ownPods("") + withAgents
		}
	case v1alpha1.ReasonExhausted, v1alpha1.ReasonAddressOutsideSubnets:
		return printable.Command("kubectl edit "+resource+" %s   # spec.addresses", name)
	case v1alpha1.ReasonNoClaims:
		return claimKinds
	case v1alpha1.ReasonClaimRefused, v1alpha1.ReasonClaimUnusable:
		if command := p.mendClaimOf(name, c.Reason); command != "" {
			return command
		}
		return printable.Command("kubectl -n %s describe ipaddressclaims.ipam.cluster.x-k8s.io",
			p.objects.ControllerNamespace())
	case v1alpha1.ReasonSecretNotFound:
		if peer := objects.Named(p.objects.Peers, name); peer != nil {
			if namespace, secret, ok := strings.Cut(p.objects.PasswordOf(peer), "/"); ok {
				return printable.Command("kubectl -n %s create secret generic %s --type=kubernetes.io/basic-auth "+
					"--from-literal=username= --from-literal=password=PASSWORD", namespace, secret)
			}
		}
	case v1alpha1.ReasonPeerNotFound:
		return printable.Command("kubectl edit "+resource+" %s   # spec.peers; existing: %s", name, names(p.objects.Peers))
	case v1alpha1.ReasonNoNodes:
		if kind == "BGPAdvertisement" {
			return printable.Command("kubectl edit "+resource+" %s   # spec.nodeSelectors; kubectl get nodes --show-labels",
				name)
		}
	case v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonNoPools:
		return printable.Command("kubectl edit "+resource+" %s   # the pools that it selects, or create them; existing: %s",
			name, p.existingPools())
	case v1alpha1.ReasonNoSession, v1alpha1.ReasonSessionsDown:
		if len(p.objects.NodeStatuses) == 0 {
			return p.ownPods("") + withSpeakers
		}
		return "kubectl slb bgp"
	}
	return printable.Command("kubectl describe "+resource+" %s", name)
}

// mendFault returns the command against a fault that the guard or agent of a node reports.
func (p *path) mendFault(node string, f world.Fault) string {
	switch f.Kind {
	case world.FaultVswitchd:
		return printable.Command("systemctl restart ovs-vswitchd   # on node %s; where Open vSwitch runs in Pods instead: "+
			"kubectl delete pods -A --field-selector spec.nodeName=%s -l app=ovs-node", node, node)
	case world.FaultOVNController:
		return p.restartNode(node)
	case world.FaultUnwritable, world.FaultNorthd:
		_, command, _ := p.mendChange(node, f.Kind == world.FaultNorthd)
		return command
	case world.FaultAgent: // The databases are those of the node, with interconnect.
		return printable.Command("kubectl get pods -A -o wide --field-selector spec.nodeName=%s   # those of OVN-Kubernetes",
			node)
	case world.FaultUplink:
		if f.Links != "" {
			return printable.Command("ip link show %s   # on node %s; check cable, bond and switch port", f.Links, node)
		}
		if f.Bridge != "" {
			return printable.Command("ovs-vsctl list-ports %s   # on node %s; the interface of the segment must be one "+
				"(docs/tasks/segment.md)", f.Bridge, node)
		}
	}
	return printable.Command("kubectl describe node %s", node)
}

// names lists the names of objects.
func names[T metav1.Object](list []T) string {
	var out []string
	for _, o := range list {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return cmp.Or(joined(out), "none")
}

// maxNamed is the maximum number of names in a message.
const maxNamed = 5

// joined formats names, the first of them if there are many.
func joined(names []string) string { return world.Some(names, maxNamed) }
