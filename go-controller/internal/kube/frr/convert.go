// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// success is the result that frr-k8s writes if there is no error.
const success = "success"

// Bounded returns a text of frr-k8s, or of its webhook, for messages.
func Bounded(text string) string { return convert.Bounded(text) }

// Foreign is what is kept of an FRRConfiguration of others.
type Foreign struct {
	converted *frrapi.Converted
	selector  labels.Selector
	// invalid is why the selector matches no node.
	invalid string
}

// IsOurs reports whether an object may be changed and deleted.
func IsOurs(c *Configuration) bool {
	_, ours := c.Labels[frrapi.LabelPeer]
	return ours
}

// TrimmedConfiguration converts an FRRConfiguration of others, and keeps a bounded part of it: whoever may write one
// may write many. It changes an object only once, and none of ours, which are written as they are.
func TrimmedConfiguration(c *Configuration) *Configuration {
	if c.Foreign == nil && !IsOurs(c) {
		c.Foreign = readForeign(&c.Spec)
		c.ObjectMeta, c.Spec = identity(&c.ObjectMeta), frrapi.Spec{}
	}
	return c
}

func readForeign(spec *frrapi.Spec) *Foreign {
	out := &Foreign{converted: frrapi.ConvertForeign(spec)}
	text, err := json.Marshal(spec.NodeSelector)
	if err != nil || len(text) > frrapi.MaxSelector {
		out.selector = labels.Everything()
		out.converted = &frrapi.Converted{Digest: out.converted.Digest, Unread: fmt.Sprintf("%d bytes of nodeSelector, at "+
			"most %d are read, so that it may be for any node", len(text), frrapi.MaxSelector)}
		return out
	}
	if out.selector, err = metav1.LabelSelectorAsSelector(labelSelector(spec.NodeSelector)); err != nil {
		out.selector, out.invalid = labels.Nothing(), copyBounded(err.Error())
	}
	return out
}

// SameContent reports whether two versions of an object have the same content.
func SameContent(a, b *Configuration) bool {
	if a.Foreign != nil && b.Foreign != nil {
		return a.Foreign.converted.Digest == b.Foreign.converted.Digest
	}
	return a.Foreign == nil && b.Foreign == nil && frrapi.Equal(&a.Spec, &b.Spec) && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations)
}

// Read converts an FRRConfiguration, and adds the nodes for which it is.
func Read(c *Configuration, nodes []*corev1.Node) *world.FRRConfiguration {
	out := &world.FRRConfiguration{Name: c.Name}
	if !IsOurs(c) {
		foreign := c.Foreign
		if foreign == nil {
			foreign = readForeign(&c.Spec)
		}
		out.Foreign, out.Invalid = foreign.converted, foreign.invalid
		out.Nodes = selected(foreign.selector, nodes)
		return out
	}
	// No BGPPeer is named "-": without a name, the object is not one of others, either.
	out.Spec, out.Peer = c.Spec, cmp.Or(c.Annotations[frrapi.AnnotationPeer], c.Labels[frrapi.LabelPeer], "-")
	selector, err := metav1.LabelSelectorAsSelector(labelSelector(c.Spec.NodeSelector))
	if err != nil {
		out.Invalid = Bounded(err.Error())
		return out
	}
	out.Nodes = selected(selector, nodes)
	return out
}

// selected returns the names of the nodes that a selector matches, sorted.
func selected(selector labels.Selector, nodes []*corev1.Node) []string {
	var out []string
	for _, n := range nodes {
		if selector.Matches(labels.Set(n.Labels)) {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}

func labelSelector(s frrapi.Selector) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, r := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key,
			Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values})
	}
	return out
}

// Trimmed reads the configuration in an FRRNodeState, and keeps a bounded part of the object: the account of frr-k8s'
// daemon, which each node has, can write those of all nodes. It changes an FRRNodeState only once.
func Trimmed(s *NodeState) *NodeState {
	if s.Running != nil {
		return s
	}
	var err error
	if s.Running, s.Restrictions, err = frrapi.ParseRunning(s.Status.RunningConfig); err != nil {
		s.Running = frrapi.Running{}
		s.Unread = "frr-k8s reports more of what FRR runs (FRRNodeState) than is read: " + err.Error()
	}
	for id, r := range s.Restrictions {
		r.Unclear = copyBounded(r.Unclear)
		s.Restrictions[id] = r
	}
	s.ObjectMeta = identity(&s.ObjectMeta)
	s.Status = NodeStateStatus{LastConversionResult: copyBounded(s.Status.LastConversionResult),
		LastReloadResult: copyBounded(s.Status.LastReloadResult)}
	return s
}

// ReadNode converts a trimmed FRRNodeState.
func ReadNode(s *NodeState) *world.FRRNode {
	out := &world.FRRNode{Running: s.Running, Restrictions: s.Restrictions, Unread: s.Unread}
	switch {
	case s.Status.LastConversionResult != "" && s.Status.LastConversionResult != success:
		out.Problem = "frr-k8s does not use the present FRRConfigurations: " + s.Status.LastConversionResult
	case s.Status.LastReloadResult != "" && s.Status.LastReloadResult != success:
		out.Problem = "FRR did not load its configuration: " + s.Status.LastReloadResult
	}
	return out
}

// TrimmedSession keeps a bounded part of a BGPSessionState. A node or peer with a longer name does not exist.
func TrimmedSession(s *SessionState) *SessionState {
	s.ObjectMeta = identity(&s.ObjectMeta)
	for _, text := range []*string{&s.Status.BGPStatus, &s.Status.BFDStatus, &s.Status.Node, &s.Status.Peer,
		&s.Status.VRF} {
		*text = copyBounded(*text)
	}
	return s
}

// identity returns what identifies an object and its version.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

// copyBounded is Bounded, but its result does not keep a longer text in memory.
func copyBounded(text string) string { return strings.Clone(Bounded(text)) }

// Sessions are the states of the sessions in the default VRF that frr-k8s reports of a node, by name of the object.
type Sessions map[string]SessionStateStatus

// MaxSessions is the maximum number of BGPSessionStates of a node that are read. A node has one per neighbor.
const MaxSessions = 256

// read returns the states by frrapi.SessionID. Of more than MaxSessions it returns why none is read.
func (s Sessions) read() (states map[string]string, unread string) {
	if len(s) > MaxSessions {
		return nil, fmt.Sprintf("frr-k8s reports more sessions of the node than are read: %d BGPSessionStates, at most %d",
			len(s), MaxSessions)
	}
	states = make(map[string]string, len(s))
	for _, name := range slices.Sorted(maps.Keys(s)) {
		// Of duplicates, which frr-k8s deletes, a session counts that is not Established.
		if was, ok := states[s[name].Peer]; !ok || was == "Established" {
			states[s[name].Peer] = s[name].BGPStatus
		}
	}
	return states, ""
}

// AddReports adds what frr-k8s reports of a node, whose state may be missing.
func AddReports(out *world.FRR, node string, state *world.FRRNode, sessions Sessions) {
	states, unread := sessions.read()
	if unread != "" {
		state = &world.FRRNode{Unread: unread}
	}
	if state != nil {
		out.Nodes[node] = state
	}
	if len(states) > 0 && (state == nil || state.Unread == "") {
		out.Sessions[node] = states
	}
}

// Password returns the password in a Secret as frr-k8s would use it, and false if it uses none of it. An empty one is
// no password.
func Password(s *corev1.Secret) (string, bool) {
	password, is := s.Data[corev1.BasicAuthPasswordKey]
	return string(password), is && s.Type == corev1.SecretTypeBasicAuth
}
