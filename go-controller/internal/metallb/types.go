// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the API group of MetalLB's kinds.
const Group = "metallb.io"

// Kinds of MetalLB that are converted.
const (
	kindPool             = "IPAddressPool"
	kindL2Advertisement  = "L2Advertisement"
	kindPeer             = "BGPPeer"
	kindBGPAdvertisement = "BGPAdvertisement"
	kindBFDProfile       = "BFDProfile"
	kindCommunity        = "Community"
	kindConfigMap        = "ConfigMap"
)

// kindL2Domain is the kind that stands for L2Advertisements.
const kindL2Domain = "L2Domain"

// object is an object of MetalLB with a spec of the type S.
type object[S any] struct {
	kind, name string
	labels     map[string]string
	spec       S
	// incomplete means that the spec lacks fields that findings name. The object is judged and not converted.
	incomplete bool
	// in is the ConfigMap that contains the object, or empty.
	in string
}

// String returns how findings refer to the object.
func (o *object[S]) String() string {
	if o.in != "" {
		return o.in + ": " + o.kind + "/" + o.name
	}
	return o.kind + "/" + o.name
}

type (
	pool             = object[poolSpec]
	l2Advertisement  = object[l2AdvertisementSpec]
	peer             = object[peerSpec]
	bgpAdvertisement = object[bgpAdvertisementSpec]
	bfdProfile       = object[bfdProfileSpec]
	community        = object[communitySpec]
)

type poolSpec struct {
	Addresses         []string           `json:"addresses"`
	AutoAssign        *bool              `json:"autoAssign"`
	AvoidBuggyIPs     bool               `json:"avoidBuggyIPs"`
	ServiceAllocation *serviceAllocation `json:"serviceAllocation"`
}

type serviceAllocation struct {
	Priority           int64                  `json:"priority"`
	Namespaces         []string               `json:"namespaces"`
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors"`
	ServiceSelectors   []metav1.LabelSelector `json:"serviceSelectors"`
}

type l2AdvertisementSpec struct {
	IPAddressPools         []string                `json:"ipAddressPools"`
	IPAddressPoolSelectors []metav1.LabelSelector  `json:"ipAddressPoolSelectors"`
	NodeSelectors          []metav1.LabelSelector  `json:"nodeSelectors"`
	Interfaces             []string                `json:"interfaces"`
	ServiceSelectors       []metav1.LabelSelector  `json:"serviceSelectors"`
	PreferredNodeSelectors []preferredNodeSelector `json:"preferredNodeSelectors"`
}

// selectsAll reports whether the advertisement announces all pools.
func (s *l2AdvertisementSpec) selectsAll() bool {
	return len(s.IPAddressPools) == 0 && len(s.IPAddressPoolSelectors) == 0
}

type preferredNodeSelector struct {
	Weight     int32                `json:"weight"`
	Preference metav1.LabelSelector `json:"preference"`
}

// peerSpec is the spec of a BGPPeer. v1beta1 has some of these fields, with the same names; its node selectors have the
// same form.
type peerSpec struct {
	MyASN                  int64                  `json:"myASN"`
	PeerASN                int64                  `json:"peerASN"`
	LocalASN               int64                  `json:"localASN"`
	DynamicASN             string                 `json:"dynamicASN"`
	PeerAddress            string                 `json:"peerAddress"`
	Interface              string                 `json:"interface"`
	SourceAddress          string                 `json:"sourceAddress"`
	PeerPort               int32                  `json:"peerPort"`
	HoldTime               *metav1.Duration       `json:"holdTime"`
	KeepaliveTime          *metav1.Duration       `json:"keepaliveTime"`
	ConnectTime            *metav1.Duration       `json:"connectTime"`
	RouterID               string                 `json:"routerID"`
	NodeSelectors          []metav1.LabelSelector `json:"nodeSelectors"`
	Password               string                 `json:"password"`
	PasswordSecret         secretReference        `json:"passwordSecret"`
	BFDProfile             string                 `json:"bfdProfile"`
	EnableGracefulRestart  bool                   `json:"enableGracefulRestart"`
	EBGPMultiHop           bool                   `json:"ebgpMultiHop"`
	VRF                    string                 `json:"vrf"`
	DisableMP              bool                   `json:"disableMP"`
	DualStackAddressFamily bool                   `json:"dualStackAddressFamily"`
}

type secretReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// internal reports whether the peer is in the AS of the nodes.
func (s *peerSpec) internal() bool { return s.PeerASN == s.MyASN || s.DynamicASN == "internal" }

type bgpAdvertisementSpec struct {
	AggregationLength      *int32                 `json:"aggregationLength"`
	AggregationLengthV6    *int32                 `json:"aggregationLengthV6"`
	LocalPref              int64                  `json:"localPref"`
	Communities            []string               `json:"communities"`
	IPAddressPools         []string               `json:"ipAddressPools"`
	IPAddressPoolSelectors []metav1.LabelSelector `json:"ipAddressPoolSelectors"`
	NodeSelectors          []metav1.LabelSelector `json:"nodeSelectors"`
	Peers                  []string               `json:"peers"`
	ServiceSelectors       []metav1.LabelSelector `json:"serviceSelectors"`
}

type bfdProfileSpec struct {
	ReceiveInterval  *int32 `json:"receiveInterval"`
	TransmitInterval *int32 `json:"transmitInterval"`
	DetectMultiplier *int32 `json:"detectMultiplier"`
	EchoInterval     *int32 `json:"echoInterval"`
	EchoMode         *bool  `json:"echoMode"`
	PassiveMode      *bool  `json:"passiveMode"`
	MinimumTTL       *int32 `json:"minimumTtl"`
}

type communitySpec struct {
	Communities []communityAlias `json:"communities"`
}

type communityAlias struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
