// SPDX-License-Identifier: Apache-2.0

// Package frr has the kinds of frr-k8s as API objects, limited to the fields that are used, and their conversion to
// facts.
//
// Invariants:
//   - An object is ours if it has the label frrapi.LabelPeer. Only such objects are written and deleted.
//   - Of an FRRConfiguration of others, what frr-k8s makes of it is kept, within bounds, and no rawConfig. Of one
//     beyond the bounds it is known for which nodes it is, and why it is not read.
//   - Of an FRRNodeState, the text of FRR's configuration is not kept: it may have megabytes on each node. What is kept
//     of the reports of frr-k8s is bounded per object, and no string of it refers to a larger one. What is beyond the
//     bound makes the state of the node unknown; a part of a report never counts as the whole.
package frr

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// Configuration is an FRRConfiguration.
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec frrapi.Spec `json:"spec,omitempty"`
	// Foreign is what TrimmedConfiguration reads of an object of others.
	Foreign *Foreign `json:"-"`
}

// ConfigurationList is a list of FRRConfigurations.
type ConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Configuration `json:"items"`
}

// NodeState is an FRRNodeState.
type NodeState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status NodeStateStatus `json:"status,omitempty"`
	// Running and Restrictions are what Trimmed reads from the status, and Unread is why it does not.
	Running      frrapi.Running      `json:"-"`
	Restrictions frrapi.Restrictions `json:"-"`
	Unread       string              `json:"-"`
}

// NodeStateStatus is what frr-k8s reports of a node.
type NodeStateStatus struct {
	RunningConfig        string `json:"runningConfig,omitempty"`
	LastConversionResult string `json:"lastConversionResult,omitempty"`
	LastReloadResult     string `json:"lastReloadResult,omitempty"`
}

// NodeStateList is a list of FRRNodeStates.
type NodeStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeState `json:"items"`
}

// SessionState is a BGPSessionState.
type SessionState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status SessionStateStatus `json:"status,omitempty"`
}

// SessionStateStatus is the state of a session of FRR. The Peer is a frrapi.SessionID.
type SessionStateStatus struct {
	BGPStatus string `json:"bgpStatus,omitempty"`
	BFDStatus string `json:"bfdStatus,omitempty"`
	Node      string `json:"node,omitempty"`
	Peer      string `json:"peer,omitempty"`
	VRF       string `json:"vrf,omitempty"`
}

// SessionStateList is a list of BGPSessionStates.
type SessionStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SessionState `json:"items"`
}

// copied returns a deep copy of a value that JSON can hold.
func copied[T any](from *T) *T {
	out := new(T)
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		panic(err) // the types of this package are all values that JSON holds
	}
	return out
}

// DeepCopyObject implements runtime.Object.
func (c *Configuration) DeepCopyObject() runtime.Object { return copied(c) }

// DeepCopyObject implements runtime.Object.
func (l *ConfigurationList) DeepCopyObject() runtime.Object { return copied(l) }

// DeepCopyObject implements runtime.Object. Running and Restrictions are shared: they are never changed.
func (s *NodeState) DeepCopyObject() runtime.Object {
	out := copied(s)
	out.Running, out.Restrictions, out.Unread = s.Running, s.Restrictions, s.Unread
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *NodeStateList) DeepCopyObject() runtime.Object {
	out := copied(l)
	for i := range out.Items {
		from := &l.Items[i]
		out.Items[i].Running, out.Items[i].Restrictions, out.Items[i].Unread = from.Running, from.Restrictions, from.Unread
	}
	return out
}

// DeepCopyObject implements runtime.Object.
func (s *SessionState) DeepCopyObject() runtime.Object { return copied(s) }

// DeepCopyObject implements runtime.Object.
func (l *SessionStateList) DeepCopyObject() runtime.Object { return copied(l) }

// The resources of frr-k8s, as in paths.
const (
	Configurations = "frrconfigurations"
	NodeStates     = "frrnodestates"
	SessionStates  = "bgpsessionstates"
)

// GroupVersion is that of the kinds of frr-k8s.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: frrapi.Group, Version: frrapi.Version}
}

// KindConfiguration is the kind of a Configuration.
const KindConfiguration = "FRRConfiguration"
