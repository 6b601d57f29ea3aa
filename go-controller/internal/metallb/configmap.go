// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// extrasName is the name of the ConfigMap with additional configuration of FRR.
const extrasName = "bgpextras"

// configKey is the key of the ConfigMap with the configuration of MetalLB up to 0.12.
const configKey = "config"

// config is that configuration.
type config struct {
	Peers          []configPeer      `json:"peers"`
	BGPCommunities map[string]string `json:"bgp-communities"`
	AddressPools   []configPool      `json:"address-pools"`
	BFDProfiles    []configProfile   `json:"bfd-profiles"`
}

type configPeer struct {
	MyASN         int64            `json:"my-asn"`
	PeerASN       int64            `json:"peer-asn"`
	PeerAddress   string           `json:"peer-address"`
	SourceAddress string           `json:"source-address"`
	PeerPort      int32            `json:"peer-port"`
	HoldTime      string           `json:"hold-time"`
	KeepaliveTime string           `json:"keepalive-time"`
	RouterID      string           `json:"router-id"`
	NodeSelectors []configSelector `json:"node-selectors"`
	Password      string           `json:"password"`
	BFDProfile    string           `json:"bfd-profile"`
	EBGPMultiHop  bool             `json:"ebgp-multihop"`
}

type configSelector struct {
	MatchLabels      map[string]string `json:"match-labels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"match-expressions"`
}

type configPool struct {
	Protocol          string                `json:"protocol"`
	Name              string                `json:"name"`
	Addresses         []string              `json:"addresses"`
	AutoAssign        *bool                 `json:"auto-assign"`
	AvoidBuggyIPs     bool                  `json:"avoid-buggy-ips"`
	BGPAdvertisements []configAdvertisement `json:"bgp-advertisements"`
}

type configAdvertisement struct {
	AggregationLength   *int32   `json:"aggregation-length"`
	AggregationLengthV6 *int32   `json:"aggregation-length-v6"`
	LocalPref           int64    `json:"localpref"`
	Communities         []string `json:"communities"`
}

type configProfile struct {
	Name             string `json:"name"`
	ReceiveInterval  *int32 `json:"receive-interval"`
	TransmitInterval *int32 `json:"transmit-interval"`
	DetectMultiplier *int32 `json:"detect-multiplier"`
	EchoInterval     *int32 `json:"echo-interval"`
	EchoMode         *bool  `json:"echo-mode"`
	PassiveMode      *bool  `json:"passive-mode"`
	MinimumTTL       *int32 `json:"minimum-ttl"`
}

// readConfigMap reads the configuration in a ConfigMap as the objects that MetalLB 0.13 has for it. Unnamed objects get
// the names that MetalLB's own conversion gives them: peer1, bgpadvertisement1, l2advertisement1.
func (s *source) readConfigMap(o *unstructured.Unstructured, fs *findings) {
	in := kindConfigMap + "/" + text(o.Object, "metadata", "name")
	if text(o.Object, "metadata", "name") == extrasName {
		fs.add(Error, in, "data", "the additional FRR configuration of MetalLB has no equivalent")
		return
	}
	content := text(o.Object, "data", configKey)
	if content == "" {
		fs.add(Error, in, "data."+configKey, "is missing: MetalLB up to 0.12 reads its configuration there")
		return
	}
	var c config
	_, err := yaml.YAMLToJSONStrict([]byte(content)) // refuses cyclic aliases and duplicate keys
	if err == nil {
		err = (&lenientDecoder{fs, in}).decode(content, &c)
	}
	if err != nil {
		fs.add(Error, in, "data."+configKey, "%v", err)
		return
	}
	profiles := newNames(in, fs)
	profiles.add("bfd-profiles", "bfdprofile", namesOf(c.BFDProfiles, func(p configProfile) string { return p.Name }))
	for _, p := range c.BFDProfiles {
		name := profiles.valid[p.Name]
		if !s.isNew(kindBFDProfile+"/"+name, in+" (bfd-profiles: "+p.Name+")", "", fs) {
			continue
		}
		s.profiles = append(s.profiles, &bfdProfile{kind: kindBFDProfile, name: name, in: in,
			spec: bfdProfileSpec{ReceiveInterval: p.ReceiveInterval, TransmitInterval: p.TransmitInterval,
				DetectMultiplier: p.DetectMultiplier, EchoInterval: p.EchoInterval, EchoMode: p.EchoMode,
				PassiveMode: p.PassiveMode, MinimumTTL: p.MinimumTTL}})
	}
	if len(c.BGPCommunities) > 0 {
		all := &community{kind: kindCommunity, name: "communities", in: in}
		for _, name := range slices.Sorted(maps.Keys(c.BGPCommunities)) {
			all.spec.Communities = append(all.spec.Communities, communityAlias{name, c.BGPCommunities[name]})
		}
		if s.isNew(kindCommunity+"/"+all.name, in+" (bgp-communities)", "", fs) {
			s.communities = append(s.communities, all)
		}
	}
	for i, p := range c.Peers {
		profile := cmp.Or(profiles.valid[p.BFDProfile], p.BFDProfile)
		name := fmt.Sprintf("peer%d", i+1)
		if !s.isNew(kindPeer+"/"+name, fmt.Sprintf("%s (peers[%d])", in, i), "", fs) {
			continue
		}
		duration := func(field, text string) *metav1.Duration {
			d, err := time.ParseDuration(text)
			switch {
			case text == "":
				return nil
			case err != nil:
				fs.add(Error, in, fmt.Sprintf("peers[%d].%s", i, field), "%v", err)
				return nil
			}
			return &metav1.Duration{Duration: d}
		}
		s.peers = append(s.peers, &peer{kind: kindPeer, name: name, in: in,
			spec: peerSpec{MyASN: p.MyASN, PeerASN: p.PeerASN, PeerAddress: p.PeerAddress, SourceAddress: p.SourceAddress,
				PeerPort: p.PeerPort, HoldTime: duration("hold-time", p.HoldTime),
				KeepaliveTime: duration("keepalive-time", p.KeepaliveTime), RouterID: p.RouterID,
				NodeSelectors: selectors(p.NodeSelectors), Password: p.Password, BFDProfile: profile,
				EBGPMultiHop: p.EBGPMultiHop}})
	}
	s.readPools(c.AddressPools, in, fs)
}

// namesOf returns the names of the objects of a list.
func namesOf[T any](list []T, name func(T) string) []string {
	var out []string
	for _, o := range list {
		out = append(out, name(o))
	}
	return out
}

// readPools reads address pools, each of which also says how it is advertised.
func (s *source) readPools(pools []configPool, in string, fs *findings) {
	layer2, routed := 0, 0
	poolNames := newNames(in, fs)
	poolNames.add("address-pools", "pool", namesOf(pools, func(p configPool) string { return p.Name }))
	for old, name := range poolNames.valid {
		if old != name {
			s.renamedPools[old] = name
		}
	}
	for _, p := range pools {
		name := poolNames.valid[p.Name]
		here := in + " (address-pools: " + p.Name + ")"
		if !s.isNew(kindPool+"/"+name, here, "", fs) {
			continue
		}
		s.pools = append(s.pools, &pool{kind: kindPool, name: name, in: in,
			spec: poolSpec{Addresses: p.Addresses, AutoAssign: p.AutoAssign, AvoidBuggyIPs: p.AvoidBuggyIPs}})
		switch p.Protocol {
		case "layer2":
			layer2++
			of := fmt.Sprintf("l2advertisement%d", layer2)
			if s.isNew(kindL2Advertisement+"/"+of, here, "", fs) {
				s.l2Advertisements = append(s.l2Advertisements, &l2Advertisement{kind: kindL2Advertisement, in: in, name: of,
					spec: l2AdvertisementSpec{IPAddressPools: []string{name}}})
			}
		case "bgp":
			advertisements := p.BGPAdvertisements
			if len(advertisements) == 0 {
				advertisements = []configAdvertisement{{}}
			}
			for _, a := range advertisements {
				routed++
				of := fmt.Sprintf("bgpadvertisement%d", routed)
				if !s.isNew(kindBGPAdvertisement+"/"+of, here, "", fs) {
					continue
				}
				s.advertisements = append(s.advertisements, &bgpAdvertisement{kind: kindBGPAdvertisement, in: in, name: of,
					spec: bgpAdvertisementSpec{AggregationLength: a.AggregationLength, AggregationLengthV6: a.AggregationLengthV6,
						LocalPref: a.LocalPref, Communities: a.Communities, IPAddressPools: []string{name}}})
			}
		default:
			fs.add(Error, in, "address-pools."+p.Name+".protocol", "%q is neither layer2 nor bgp", p.Protocol)
		}
	}
}

func selectors(in []configSelector) []metav1.LabelSelector {
	var out []metav1.LabelSelector
	for _, s := range in {
		to := metav1.LabelSelector{MatchLabels: s.MatchLabels}
		for _, e := range s.MatchExpressions {
			to.MatchExpressions = append(to.MatchExpressions, metav1.LabelSelectorRequirement{Key: e.Key,
				Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values})
		}
		out = append(out, to)
	}
	return out
}
