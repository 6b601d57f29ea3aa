// SPDX-License-Identifier: Apache-2.0

package frrapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Group, Version are those of frr-k8s' kinds.
const (
	Group   = "frrk8s.metallb.io"
	Version = "v1beta1"
)

// LabelPeer is the label of FRRConfigurations of ours. The value is the name of the BGPPeer, or as much of it as a
// label can have; AnnotationPeer always has the name.
const (
	LabelPeer      = "slb.k8s.ovn.org/bgp-peer"
	AnnotationPeer = "slb.k8s.ovn.org/bgp-peer"
)

// Spec is the spec of an FRRConfiguration.
type Spec struct {
	BGP          BGP      `json:"bgp,omitzero"`
	Raw          Raw      `json:"raw,omitzero"`
	NodeSelector Selector `json:"nodeSelector,omitzero"`
}

// Raw is text that is appended to FRR's configuration.
type Raw struct {
	Priority int    `json:"priority,omitempty"`
	Config   string `json:"rawConfig,omitempty"`
}

// Selector is a label selector of Kubernetes. An empty one selects all nodes.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty"`
}

// Requirement is a requirement of a Selector.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// BGP is the configuration of BGP.
type BGP struct {
	Routers     []Router     `json:"routers,omitempty"`
	BFDProfiles []BFDProfile `json:"bfdProfiles,omitempty"`
}

// Router is a BGP instance, at most one per VRF and object.
type Router struct {
	ASN       uint32     `json:"asn"`
	ID        string     `json:"id,omitempty"`
	VRF       string     `json:"vrf,omitempty"`
	Neighbors []Neighbor `json:"neighbors,omitempty"`
	Prefixes  []string   `json:"prefixes,omitempty"`
	Imports   []Import   `json:"imports,omitempty"`
}

// Import is a VRF whose routes a router imports.
type Import struct {
	VRF string `json:"vrf,omitempty"`
}

// Session are the fields of a neighbor that all objects that define it for a node must agree on.
type Session struct {
	ASN           uint32    `json:"asn,omitempty"`
	DynamicASN    string    `json:"dynamicASN,omitempty"`
	LocalASN      uint32    `json:"localASN,omitempty"`
	SourceAddress string    `json:"sourceaddress,omitempty"`
	Address       string    `json:"address,omitempty"`
	Interface     string    `json:"interface,omitempty"`
	Port          *uint16   `json:"port,omitempty"`
	Password      string    `json:"password,omitempty"`
	Secret        SecretRef `json:"passwordSecret,omitzero"`
	HoldTime      *Duration `json:"holdTime,omitempty"`
	KeepaliveTime *Duration `json:"keepaliveTime,omitempty"`
	ConnectTime   *Duration `json:"connectTime,omitempty"`
	EBGPMultiHop  bool      `json:"ebgpMultiHop,omitempty"`
	BFDProfile    string    `json:"bfdProfile,omitempty"`
	// GracefulRestart is not compared by frr-k8s: the first object counts.
	GracefulRestart bool `json:"enableGracefulRestart,omitempty"`
	// DisableMP has no effect. RouteAdvertisements of some releases demand it.
	DisableMP bool `json:"disableMP,omitempty"`
	DualStack bool `json:"dualStackAddressFamily,omitempty"`
}

// SecretRef refers to a Secret in the namespace of frr-k8s.
type SecretRef struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Neighbor is a neighbor, and what is advertised to it.
type Neighbor struct {
	Session
	Advertise Advertise `json:"toAdvertise,omitzero"`
	// Other are the fields that are not known here, toReceive among them, by name.
	Other map[string]json.RawMessage `json:"-"`
}

// ID identifies a neighbor in a VRF.
func (s *Session) ID() string {
	if s.Interface != "" {
		return s.Interface
	}
	return s.Address
}

// Advertise is what a neighbor receives.
type Advertise struct {
	Allowed   Allowed             `json:"allowed,omitzero"`
	LocalPref []LocalPrefPrefixes `json:"withLocalPref,omitempty"`
	Community []CommunityPrefixes `json:"withCommunity,omitempty"`
}

// The values of Allowed.Mode. AllowFiltered is the default.
const (
	AllowAll      = "all"
	AllowFiltered = "filtered"
)

// Allowed are the prefixes that a neighbor receives: those listed, or all of the same router in the same object.
type Allowed struct {
	Prefixes []string `json:"prefixes,omitempty"`
	Mode     string   `json:"mode,omitempty"`
}

// LocalPrefPrefixes are the prefixes with a local preference.
type LocalPrefPrefixes struct {
	Prefixes  []string `json:"prefixes,omitempty"`
	LocalPref uint32   `json:"localPref,omitempty"`
}

// CommunityPrefixes are the prefixes with a community: N:N, or large:N:N:N.
type CommunityPrefixes struct {
	Prefixes  []string `json:"prefixes,omitempty"`
	Community string   `json:"community,omitempty"`
}

// BFDProfile has the parameters of BFD, in milliseconds.
type BFDProfile struct {
	Name             string  `json:"name"`
	ReceiveInterval  *uint32 `json:"receiveInterval,omitempty"`
	TransmitInterval *uint32 `json:"transmitInterval,omitempty"`
	DetectMultiplier *uint32 `json:"detectMultiplier,omitempty"`
	EchoInterval     *uint32 `json:"echoInterval,omitempty"`
	EchoMode         *bool   `json:"echoMode,omitempty"`
	PassiveMode      *bool   `json:"passiveMode,omitempty"`
	MinimumTTL       *uint32 `json:"minimumTtl,omitempty"`
}

// Duration is a time.Duration that JSON has as text, for example "1m30s".
type Duration struct{ time.Duration }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("read a duration: %w", err)
	}
	var err error
	d.Duration, err = time.ParseDuration(text)
	return err
}

// plain is a Neighbor without methods.
type plain struct {
	Session
	Advertise Advertise `json:"toAdvertise,omitzero"`
}

// MarshalJSON implements json.Marshaler.
func (n Neighbor) MarshalJSON() ([]byte, error) {
	known, err := json.Marshal(plain{n.Session, n.Advertise})
	if err != nil || len(n.Other) == 0 {
		return known, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(known, &fields); err != nil {
		return nil, fmt.Errorf("merge fields: %w", err)
	}
	for name, value := range n.Other {
		fields[name] = value
	}
	return json.Marshal(fields)
}

// knownFields returns the fields of a neighbor that Neighbor has.
func knownFields() []string {
	return []string{"asn", "dynamicASN", "localASN", "sourceaddress", "address", "interface", "port",
		"password", "passwordSecret", "holdTime", "keepaliveTime", "connectTime", "ebgpMultiHop", "bfdProfile",
		"enableGracefulRestart", "disableMP", "dualStackAddressFamily", "toAdvertise"}
}

// Equal reports whether two values are the same in JSON.
func Equal[T any](a, b *T) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Neighbor) UnmarshalJSON(data []byte) error {
	var known plain
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &known); err != nil {
		return fmt.Errorf("read a neighbor: %w", err)
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("read a neighbor: %w", err)
	}
	for _, name := range knownFields() {
		delete(fields, name)
	}
	*n = Neighbor{Session: known.Session, Advertise: known.Advertise}
	if len(fields) > 0 {
		n.Other = fields
	}
	return nil
}
