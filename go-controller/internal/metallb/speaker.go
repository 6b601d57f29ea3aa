// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// kindOperator is the kind by which MetalLB's operator is told how to run MetalLB.
const kindOperator = "MetalLB"

// workload is how MetalLB runs, as far as it decides which nodes announce, and which Services have addresses.
type workload struct {
	// ref is the object, and path the field that the other fields are in.
	ref, path string
	// speaks is set for speakers, which announce from the nodes on which they run.
	speaks       bool
	nodeSelector map[string]string
	affinity     *corev1.NodeSelector
	tolerations  []corev1.Toleration
	// The fields that these are in.
	affinityField, tolerationsField string
	// class is the only class of Services that MetalLB serves, and classField where it is set.
	class, classField string
	// backend is the mode of BGP, and backendField where it is set.
	backend, backendField string
	// includesExcluded is set if nodes with the label that excludes them from load balancers announce, too.
	includesExcluded bool
}

// operatorSpec is the spec of the operator's kind, without fields that decide nothing, such as resources and images.
type operatorSpec struct {
	NodeSelector       map[string]string   `json:"nodeSelector"`
	SpeakerTolerations []corev1.Toleration `json:"speakerTolerations"`
	LoadBalancerClass  string              `json:"loadBalancerClass"`
	BGPBackend         string              `json:"bgpBackend"`
	SpeakerConfig      *struct {
		Affinity    *corev1.Affinity    `json:"affinity"`
		Tolerations []corev1.Toleration `json:"tolerations"`
	} `json:"speakerConfig"`
}

// readOperator reads an object of the operator's kind.
func (s *source) readOperator(ref string, o *unstructured.Unstructured, fs *findings) {
	var spec operatorSpec
	content, _ := o.Object["spec"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec); err != nil {
		fs.add(Error, ref, "spec", "%v", err)
		return
	}
	w := &workload{ref: ref, path: "spec", speaks: true, nodeSelector: spec.NodeSelector,
		tolerations: spec.SpeakerTolerations, class: spec.LoadBalancerClass, classField: "spec.loadBalancerClass",
		affinityField: "spec.speakerConfig.affinity", tolerationsField: "spec.speakerTolerations",
		backend: spec.BGPBackend, backendField: "spec.bgpBackend"}
	if c := spec.SpeakerConfig; c != nil {
		w.tolerations = append(w.tolerations, c.Tolerations...)
		w.affinity = required(c.Affinity)
	}
	s.workloads = append(s.workloads, w)
}

// readWorkload reads MetalLB's Deployment or DaemonSet. It returns false for those of others.
func (s *source) readWorkload(ref string, o *unstructured.Unstructured, fs *findings) bool {
	kind := text(o.Object, "kind")
	if text(o.Object, "apiVersion") != appsv1.SchemeGroupVersion.String() || kind != "DaemonSet" && kind != "Deployment" {
		return false
	}
	l := labels.Set(o.GetLabels())
	if l["app"] != "metallb" && l["app.kubernetes.io/name"] != "metallb" {
		return false
	}
	content, _ := o.Object["spec"].(map[string]any)
	var spec struct {
		Template corev1.PodTemplateSpec `json:"template"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec); err != nil {
		fs.add(Error, ref, "spec", "%v", err)
		return true
	}
	pod := &spec.Template.Spec
	w := &workload{ref: ref, path: "spec.template.spec", speaks: kind == "DaemonSet",
		affinityField: "spec.template.spec.affinity", tolerationsField: "spec.template.spec.tolerations"}
	if w.speaks {
		w.nodeSelector, w.affinity, w.tolerations = pod.NodeSelector, required(pod.Affinity), pod.Tolerations
	}
	for i := range pod.Containers {
		for _, e := range pod.Containers[i].Env {
			if e.Name == backendVariable {
				w.backend, w.backendField = e.Value, w.path+".containers.env"
			}
		}
		for _, arg := range slices.Concat(pod.Containers[i].Command, pod.Containers[i].Args) {
			flag, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			switch flag {
			case "lb-class":
				w.class, w.classField = value, w.path+".containers.args"
			case "ignore-exclude-lb":
				w.includesExcluded = value != "false"
			}
		}
	}
	s.workloads = append(s.workloads, w)
	return true
}

func required(a *corev1.Affinity) *corev1.NodeSelector {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// readSpeakers finds the nodes on which speakers run, to which L2Domains and BGPPeers are limited, and names what else
// decides which Services and nodes MetalLB announces.
func (c *conversion) readSpeakers() {
	classes := map[string]bool{}
	for _, w := range c.source.workloads {
		if w.class != "" && !classes[w.class] {
			classes[w.class] = true
			c.add(Warning, w.ref, w.classField, "%s: MetalLB serves Services of this class only, which they keep. ovnkube-slb "+
				"serves those of class %s, and those without a class unless it runs with --require-load-balancer-class",
				w.class, v1alpha1.LoadBalancerClass)
		}
	}
	speakers := slices.DeleteFunc(slices.Clone(c.source.workloads), func(w *workload) bool { return !w.speaks })
	slices.SortStableFunc(speakers, func(a, b *workload) int { // The operator makes a DaemonSet of its object.
		return strings.Compare(a.ref, b.ref)
	})
	if len(speakers) == 0 {
		return
	}
	w := speakers[0]
	for _, other := range speakers[1:] {
		if strings.HasPrefix(other.ref, "DaemonSet/") {
			c.add(Warning, other.ref, "", "the nodes of %s are those to which objects are limited; this one is ignored", w.ref)
		}
	}
	c.readNodes(w)
	if w.includesExcluded {
		c.add(Warning, w.ref, w.path+".containers.args", "--ignore-exclude-lb has no equivalent: nodes with the label %s "+
			"announce nothing%s", corev1.LabelNodeExcludeBalancers, c.nodesWith(func(n *corev1.Node) bool {
			_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
			return excluded
		}))
	}
	c.checkTolerations(w)
}

// readNodes converts the node selector and the node affinity of a speaker.
func (c *conversion) readNodes(w *workload) {
	own := map[string]string{}
	for key, value := range w.nodeSelector {
		if !strings.HasSuffix(key, "kubernetes.io/os") {
			own[key] = value
		}
	}
	var fields []string
	if len(own) > 0 {
		fields = append(fields, w.path+".nodeSelector")
		c.speakerNodes = []metav1.LabelSelector{{MatchLabels: own}}
	}
	if w.affinity != nil {
		var terms []metav1.LabelSelector
		for _, term := range w.affinity.NodeSelectorTerms {
			t, ok := c.nodeSelector(term)
			if !ok {
				c.add(Warning, w.ref, w.affinityField, "has no equivalent in nodeSelectors: nodes on which no speaker runs "+
					"announce. Set nodeSelectors of L2Domains and BGPPeers")
				terms = nil
				break
			}
			if len(t.MatchExpressions) == 0 { // all nodes
				terms = nil
				break
			}
			terms = append(terms, t)
		}
		if len(terms) > 0 {
			fields = append(fields, w.affinityField)
			c.speakerNodes = intersectSelectors(c.speakerNodes, terms)
		}
	}
	if len(fields) > 0 {
		c.add(Note, w.ref, strings.Join(fields, ", "), "speakers run on nodes with %s only: nodeSelectors of L2Domains and "+
			"BGPPeers are limited to them", formatSelectors(c.speakerNodes))
	}
}

// nodeSelector returns a term of a node affinity as a selector, without the labels by which nodes are migrated
// (docs/migrate-from-metallb.md). It returns false if there is no equal selector.
func (c *conversion) nodeSelector(t corev1.NodeSelectorTerm) (metav1.LabelSelector, bool) {
	var out metav1.LabelSelector
	for _, e := range t.MatchExpressions {
		_, migrated := c.input.PeerNodes[e.Key]
		ours := strings.HasPrefix(e.Key, v1alpha1.GroupVersion().Group+"/")
		if e.Operator == corev1.NodeSelectorOpDoesNotExist && (migrated || ours) {
			continue
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: e.Key,
			Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values})
	}
	_, err := metav1.LabelSelectorAsSelector(&out) // Gt and Lt are no operators of labels.
	return out, err == nil && len(t.MatchFields) == 0
}

// checkTolerations names nodes from which MetalLB announces nothing because of their taints.
func (c *conversion) checkTolerations(w *workload) {
	if len(c.input.Nodes) == 0 {
		if len(w.tolerations) > 0 {
			c.add(Warning, w.ref, w.tolerationsField, "have no equivalent: nodes with other taints announce nothing with "+
				"MetalLB. Exclude them with nodeSelectors of L2Domains and BGPPeers")
		}
		return
	}
	untolerated := func(n *corev1.Node) bool {
		return c.selected(n) && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			// The controller of DaemonSets tolerates taints that report the state of a node.
			return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") &&
				!slices.ContainsFunc(w.tolerations, func(o corev1.Toleration) bool {
					return o.ToleratesTaint(klog.Background(), &t, true)
				})
		})
	}
	if names := c.nodesWith(untolerated); names != "" {
		c.add(Warning, w.ref, w.tolerationsField, "no speaker tolerates the taints of some nodes, which announce nothing "+
			"with MetalLB and are not excluded here: set nodeSelectors of L2Domains and BGPPeers%s", names)
	}
}

// selected reports whether the labels of a node are those of a node with a speaker.
func (c *conversion) selected(n *corev1.Node) bool {
	return selectsNode(c.speakerNodes, n)
}

// selectsNode reports whether one of some selectors selects a node. An empty list selects all nodes.
func selectsNode(selectors []metav1.LabelSelector, n *corev1.Node) bool {
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(n.Labels))
	})
}

// nodesWith returns the end of a message with the names of nodes; empty if there are none.
func (c *conversion) nodesWith(has func(*corev1.Node) bool) string {
	var list []string
	for _, n := range c.input.Nodes {
		if has(n) {
			list = append(list, n.Name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	const most = 10
	return ": " + world.Some(list, most)
}

// intersectSelectors returns selectors for the nodes that one of a and one of b selects. An empty list selects all
// nodes.
func intersectSelectors(a, b []metav1.LabelSelector) []metav1.LabelSelector {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	var out []metav1.LabelSelector
	for _, x := range a {
		for _, y := range b {
			s := *x.DeepCopy()
			for _, key := range slices.Sorted(maps.Keys(y.MatchLabels)) {
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key,
					Operator: metav1.LabelSelectorOpIn, Values: []string{y.MatchLabels[key]}})
			}
			s.MatchExpressions = append(s.MatchExpressions, y.MatchExpressions...)
			out = append(out, s)
		}
	}
	return out
}
