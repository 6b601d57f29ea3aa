// SPDX-License-Identifier: Apache-2.0

package frr

import (
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

// Read converts an FRRConfiguration.
func Read(c *Configuration, nodes []*corev1.Node) *world.FRRConfiguration {
	out := &world.FRRConfiguration{Name: c.Name, Spec: c.Spec}
	if _, ours := c.Labels[frrapi.LabelPeer]; ours {
		if out.Peer = c.Annotations[frrapi.AnnotationPeer]; out.Peer == "" {
			out.Peer = c.Labels[frrapi.LabelPeer]
		}
		if out.Peer == "" {
			out.Peer = "-" // no BGPPeer has this name, so that the object is not one of others
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(labelSelector(c.Spec.NodeSelector))
	if err != nil {
		out.Invalid = Bounded(err.Error())
		return out
	}
	for _, n := range nodes {
		if selector.Matches(labels.Set(n.Labels)) {
			out.Nodes = append(out.Nodes, n.Name)
		}
	}
	slices.Sort(out.Nodes)
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
	if s.Running, err = frrapi.ParseRunning(s.Status.RunningConfig); err != nil {
		s.Running = frrapi.Running{}
		s.Unread = "frr-k8s reports more of what FRR runs (FRRNodeState) than is read: " + err.Error()
	}
	s.ObjectMeta = identity(&s.ObjectMeta)
	s.Status = NodeStateStatus{LastConversionResult: copyBounded(s.Status.LastConversionResult),
		LastReloadResult: copyBounded(s.Status.LastReloadResult)}
	return s
}

// ReadNode converts a trimmed FRRNodeState.
func ReadNode(s *NodeState) *world.FRRNode {
	out := &world.FRRNode{Running: s.Running, Unread: s.Unread}
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

// Password returns the password in a Secret as frr-k8s would use it, or "".
func Password(s *corev1.Secret) string {
	if s.Type != corev1.SecretTypeBasicAuth {
		return ""
	}
	return string(s.Data[corev1.BasicAuthPasswordKey])
}
