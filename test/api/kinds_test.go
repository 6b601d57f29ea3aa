// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func badObjects() map[string][]badCase {
	const network, subnets = "physicalNetwork: provider\n",
		"physicalNetwork: provider\nsubnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.1}]\n"
	return map[string][]badCase{
		"L2Domain": {
			{"no network", "subnets: [{cidr: 10.50.0.0/24}]", []string{"spec.physicalNetwork", "Required"}},
			{"network with a bridge", "physicalNetwork: provider:br-ex\nsubnets: [{cidr: 10.50.0.0/24}]",
				[]string{"spec.physicalNetwork", "provider:br-ex is no name"}},
			{"no subnet", network + "subnets: []", []string{"spec.subnets"}},
			{"no CIDR", network + "subnets: [{cidr: 10.50.0.0}]", []string{"spec.subnets[0].cidr", "10.50.0.0 is no CIDR"}},
			{"host bits", network + "subnets: [{cidr: 10.50.0.1/24}]", []string{"spec.subnets[0].cidr",
				"10.50.0.1/24 has host bits set"}},
			{"multicast", network + "subnets: [{cidr: 224.0.0.0/24}]", []string{"spec.subnets[0].cidr",
				"224.0.0.0/24 is no subnet of hosts"}},
			{"gateway elsewhere", network + "subnets: [{cidr: 10.50.0.0/24, gateway: 10.51.0.1}]",
				[]string{"spec.subnets[0].gateway", "10.51.0.1 is not in 10.50.0.0/24"}},
			{"gateway of the other family", network + `subnets: [{cidr: 10.50.0.0/24, gateway: "fe80::1"}]`,
				[]string{"spec.subnets[0].gateway", "fe80::1 is not in 10.50.0.0/24"}},
			{"IPv4 gateway of IPv6", network + `subnets: [{cidr: "fd00:50::/64", gateway: 169.254.1.1}]`,
				[]string{"spec.subnets[0].gateway", "169.254.1.1 is not in fd00:50::/64"}},
			{"gateway no address", network + "subnets: [{cidr: 10.50.0.0/24, gateway: router}]",
				[]string{"spec.subnets[0].gateway", "router is no IPv4 or IPv6 address"}},
			{"gateway is the network", network + "subnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.0}]",
				[]string{"spec.subnets[0].gateway", "10.50.0.0 is the network address of 10.50.0.0/24"}},
			{"same subnet twice", network + "subnets: [{cidr: 10.50.0.0/24}, {cidr: 10.50.0.0/24}]",
				[]string{"spec.subnets[1]", "Duplicate", "10.50.0.0/24"}},
			{"subnet in subnet", network + "subnets: [{cidr: 10.50.0.0/16}, {cidr: 10.50.3.0/24}]",
				[]string{"spec.subnets", "10.50.3.0/24 lies in another of 10.50.0.0/16, 10.50.3.0/24"}},
			{"VLAN 0", subnets + "vlan: 0", []string{"spec.vlan", "0", "greater than or equal to 1"}},
			{"VLAN 4095", subnets + "vlan: 4095", []string{"spec.vlan", "4095", "less than or equal to 4094"}},
			{"no gateways", subnets + "gateways: {max: 0}", []string{"spec.gateways.max", "0"}},
			{"too many shards", subnets + "gateways: {shards: 65}", []string{"spec.gateways.shards", "65"}},
			{"no weight", subnets + "gateways: {preferred: [{preference: {}}]}",
				[]string{"spec.gateways.preferred[0].weight", "Required"}},
			{"weight 0", subnets + "gateways: {preferred: [{weight: 1, preference: {}}, {weight: 0, preference: {}}]}",
				[]string{"spec.gateways.preferred[1].weight", "0", "greater than or equal to 1"}},
			{"weight 101", subnets + "gateways: {preferred: [{weight: 101, preference: {}}]}",
				[]string{"spec.gateways.preferred[0].weight", "101", "less than or equal to 100"}},
			{"no preference", subnets + "gateways: {preferred: [{weight: 1}]}",
				[]string{"spec.gateways.preferred[0].preference", "Required"}},
			{"too many preferences", subnets + "gateways: {preferred: [" +
				strings.Repeat("{weight: 1, preference: {}}, ", 17) + "]}",
				[]string{"spec.gateways.preferred", "17", "at most 16"}},
			{"detection too fast", subnets + "failover: {detectInterval: 10ms}",
				[]string{"spec.failover.detectInterval", "10ms is no duration between 50ms and 10s"}},
			{"detection without unit", subnets + "failover: {detectInterval: \"200\"}",
				[]string{"spec.failover.detectInterval", "200 is no duration"}},
			{"announced too often", subnets + "announceInterval: 5s",
				[]string{"spec.announceInterval", "5s is no duration between 10s and 1h"}},
			{"one missed packet", subnets + "failover: {multiplier: 1}", []string{"spec.failover.multiplier", "1"}},
			{"pool twice", subnets + "ipAddressPools: [a, a]", []string{"spec.ipAddressPools[1]", "Duplicate", `"a"`}},
		},
		"BGPPeer": {
			{"no ASN of ours", "peerASN: 65001\npeerAddress: 10.0.0.1", []string{"spec.myASN", "Required"}},
			{"ASN too large", "myASN: 4294967296\npeerASN: 65001\npeerAddress: 10.0.0.1",
				[]string{"spec.myASN", "4294967296", "4294967295"}},
			{"no ASN of theirs", "myASN: 65000\npeerAddress: 10.0.0.1", []string{"spec",
				"exactly one of peerASN and dynamicASN"}},
			{"two ASNs of theirs", "myASN: 65000\npeerASN: 65001\ndynamicASN: external\npeerAddress: 10.0.0.1",
				[]string{"spec", "exactly one of peerASN and dynamicASN"}},
			{"odd dynamicASN", "myASN: 65000\ndynamicASN: any\npeerAddress: 10.0.0.1", []string{"spec.dynamicASN", `"any"`}},
			{"no address to dial", "myASN: 65000\npeerASN: 65001",
				[]string{"peerAddress: one of peerAddress and interface is required"}},
			{"address and interface", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\ninterface: eth0",
				[]string{"peerAddress: 10.0.0.1 and interface: eth0 exclude each other"}},
			{"no address", "myASN: 65000\npeerASN: 65001\npeerAddress: tor1",
				[]string{"spec.peerAddress", "tor1 is no IPv4 or IPv6 address"}},
			{"families differ", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\nsourceAddress: \"fd00::1\"",
				[]string{"sourceAddress: fd00::1 and peerAddress: 10.0.0.1 are of different families"}},
			{"hold time too short", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\nholdTime: 2s",
				[]string{"spec.holdTime", "2s is no duration of whole seconds, 0s or 3s to 65535s"}},
			{"keepalive too long", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\nholdTime: 9s\nkeepaliveTime: 4s",
				[]string{"holdTime: 9s is less than three times keepaliveTime: 4s"}},
			{"keepalive too long for the default", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\nkeepaliveTime: 31s",
				[]string{"keepaliveTime: 31s is more than a third of the default holdTime, 90s"}},
			{"local AS of the peer", "myASN: 65000\npeerASN: 65001\nlocalASN: 65001\npeerAddress: 10.0.0.1",
				[]string{"localASN and peerASN are the same"}},
			{"local AS inside", "myASN: 65000\npeerASN: 65000\nlocalASN: 65001\npeerAddress: 10.0.0.1",
				[]string{"localASN is for external peers only"}},
			{"local AS inside, dynamic", "myASN: 65000\ndynamicASN: internal\nlocalASN: 65001\npeerAddress: 10.0.0.1",
				[]string{"localASN is for external peers only"}},
			{"multihop inside", "myASN: 65000\npeerASN: 65000\nebgpMultiHop: true\npeerAddress: 10.0.0.1",
				[]string{"multihopTTL and ttlSecurityHops are for external peers only"}},
			{"TTL security inside", "myASN: 65000\ndynamicASN: internal\nttlSecurityHops: 1\npeerAddress: 10.0.0.1",
				[]string{"are for external peers only"}},
			{"VRF", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\nvrf: red", []string{"vrf: red is not supported"}},
			{"one family and both", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\ndisableMP: " +
				"true\ndualStackAddressFamily: true",
				[]string{"disableMP: true excludes dualStackAddressFamily: true"}},
			{"interface beyond the link", "myASN: 65000\npeerASN: 65001\nmultihopTTL: 3\ninterface: eth0",
				[]string{"interface: eth0 excludes ebgpMultiHop, multihopTTL"}},
			{"interface with a password", "myASN: 65000\npeerASN: 65001\npassword: a\ninterface: eth0",
				[]string{"interface: eth0 excludes", "password"}},
			{"link-local peer", "myASN: 65000\npeerASN: 65001\npeerAddress: \"fe80::1\"",
				[]string{"peerAddress: fe80::1 is on any link: name the interface"}},
			{"multicast peer", "myASN: 65000\npeerASN: 65001\npeerAddress: 239.1.1.1",
				[]string{"peerAddress: 239.1.1.1 is no unicast address"}},
			{"IPv6 multicast peer", "myASN: 65000\npeerASN: 65001\npeerAddress: \"ff05::1\"",
				[]string{"peerAddress: ff05::1 is no unicast address"}},
			{"Secret elsewhere", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\npasswordSecret: {name: b, namespace: " +
				"kube-system}",
				[]string{"spec.passwordSecret.namespace", "kube-system: only Secrets of namespace ovnkube-slb-bgp are read"}},
			{"Secret without a name", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\npasswordSecret: {}",
				[]string{"spec.passwordSecret.name", "Required"}},
			{"router ID IPv6", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\nrouterID: \"fd00::1\"",
				[]string{"spec.routerID", "fd00::1 is no IPv4 address"}},
			{"two passwords", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\npassword: a\npasswordSecret: {name: b}",
				[]string{"password and passwordSecret exclude each other"}},
			{"TTL both ways", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\nttlSecurityHops: 1\nebgpMultiHop: true",
				[]string{"ttlSecurityHops"}},
			{"port", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1\npeerPort: 65536", []string{"spec.peerPort", "65536"}},
		},
		"BGPAdvertisement": {
			{"aggregate IPv4", "aggregationLength: 33", []string{"spec.aggregationLength", "33"}},
			{"aggregate IPv6", "aggregationLengthV6: 129", []string{"spec.aggregationLengthV6", "129"}},
			{"aggregate of some Services", "aggregationLength: 24\nserviceSelectors: [{matchLabels: {a: b}}]",
				[]string{"aggregationLength", "serviceSelectors"}},
			{"aggregate of several gateways", "aggregationLengthV6: 64\nnextHop: Gateway",
				[]string{"nextHop: the addresses of an aggregate have several gateways"}},
			{"next hop", "nextHop: 10.0.0.1", []string{"spec.nextHop", `"10.0.0.1"`}},
			{"community too large", `communities: ["65536:1"]`, []string{"spec.communities[0]", "65536:1 is no community"}},
			{"large community of two", `communities: ["large:1:2"]`, []string{"spec.communities[0]",
				"large:1:2 is no community"}},
			{"prepend", "asPathPrepend: 17", []string{"spec.asPathPrepend", "17"}},
			{"MED", "med: 4294967296", []string{"spec.med", "4294967296"}},
		},
		"BFDProfile": {
			{"interval", "receiveInterval: 5", []string{"spec.receiveInterval", "5"}},
			{"multiplier", "detectMultiplier: 1", []string{"spec.detectMultiplier", "1"}},
			{"TTL", "minimumTtl: 255", []string{"spec.minimumTtl", "255"}},
			{"echo mode", "echoMode: true", []string{"echoMode: true is not supported"}},
			{"echo interval", "echoInterval: 50", []string{"spec.echoInterval", "50", "echoInterval is not supported"}},
		},
		"Community": {
			{"no value", "communities: [{name: a}]", []string{"spec.communities[0].value", "Required"}},
			{"bad value", `communities: [{name: a, value: "1:2:3"}]`, []string{"spec.communities[0].value",
				"1:2:3 is no community"}},
			{"well-known name", `communities: [{name: no-export, value: "1:2"}]`,
				[]string{"spec.communities[0].name", "no-export is a well-known name"}},
			{"name twice", `communities: [{name: a, value: "1:2"}, {name: a, value: "1:3"}]`,
				[]string{"spec.communities[1]", "Duplicate", `"a"`}},
		},
	}
}

func (s *server) testBadObjects(t *testing.T) {
	for kind, cases := range badObjects() {
		for _, c := range cases {
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				refused(t, s.create(t.Context(), object(kind, "bad", c.spec)), c.says)
			})
		}
	}
}

func goodObjects() map[string]string {
	return map[string]string{
		"pool of all forms": object("IPAddressPool", "good", `
addresses: [10.0.0.0/24, 10.0.1.0-10.0.1.255, 10.0.2.1, "fd00:1::/64", "fd00:2::1-fd00:2::ffff", "fd00:3::1", "10.0.3.1 - 10.0.3.9"]
exclude: [10.0.0.0, 10.0.1.128/25, "fd00:2::100-fd00:2::1ff"]
autoAssign: false
avoidBuggyIPs: true
disabled: true
serviceAllocation: {priority: 10, namespaces: [a, b], namespaceSelectors: [{matchLabels: {c: d}}], serviceSelectors: [{matchExpressions: [{key: e, operator: Exists}]}]}
quotaPerNamespace: 5
reuseDelay: 1m30s
reservations: [{namespace: a, name: b, addresses: [10.0.0.7, "fd00:1::7"]}]
externalIPs: true`),
		"pool of a provider": object("IPAddressPool", "good", `
externalPool: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: pool.1, ipFamily: IPv6}
avoidBuggyIPs: false
externalIPs: false
quotaPerNamespace: 5
sharing: Cluster`),
		"pool of neighbours":  pool("good", `[10.0.0.0/25, 10.0.0.128/25, 10.0.1.0-10.0.1.3, 10.0.1.4]`),
		"pool of a whole /48": pool("good", `["2001:db8:7::/48"]`),
		"pool of one long text": pool("good",
			`["fd00:aaaa:bbbb:cccc:dddd:eeee:ffff:0001 - fd00:aaaa:bbbb:cccc:dddd:eeee:ffff:ffff"]`),
		"domain, least": object("L2Domain", "good", "physicalNetwork: physnet\nsubnets: [{cidr: 10.50.0.0/24}]"),
		"domain, all": object("L2Domain", "good", `
ipAddressPools: [public]
ipAddressPoolSelectors: [{matchLabels: {a: b}}]
nodeSelectors: [{matchLabels: {rack: one}}]
physicalNetwork: physnet_1
vlan: 4094
subnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.254}, {cidr: "fd00:50::/64", gateway: "fe80::1"}, {cidr: 192.0.2.0/31, gateway: 192.0.2.0}]
gateways: {max: 3, shards: 8, preferred: [{weight: 100, preference: {matchLabels: {rack: one}}}]}
failover: {detectInterval: 1.5s, multiplier: 5, preempt: true}`),
		"peer, least": object("BGPPeer", "good", "myASN: 65000\npeerASN: 65001\npeerAddress: 10.0.0.1"),
		"peer, all": object("BGPPeer", "good", `
myASN: 4200000000
dynamicASN: external
localASN: 65010
peerAddress: "fd00::1"
sourceAddress: "fd00::2"
peerPort: 1179
holdTime: 9s
keepaliveTime: 3s
connectTime: 1s
routerID: 10.0.0.9
nodeSelectors: [{matchLabels: {rack: one}}]
passwordSecret: {name: bgp, namespace: ovnkube-slb-bgp}
bfdProfile: fast
enableGracefulRestart: true
ebgpMultiHop: true
multihopTTL: 4
dualStackAddressFamily: true`),
		"peer at an IPv4 link-local address": object("BGPPeer", "good",
			"myASN: 65000\npeerASN: 65001\npeerAddress: 169.254.255.1"),
		"peer, unnumbered": object("BGPPeer", "good", "myASN: 65000\npeerASN: 65001\ninterface: eth1\nttlSecurityHops: 1"),
		"advertisement, all": object("BGPAdvertisement", "good", `
aggregationLength: 24
aggregationLengthV6: 64
localPref: 100
med: 4294967295
asPathPrepend: 3
communities: ["65000:100", "large:4200000000:1:2", no-export, mine]
ipAddressPools: [public]
nodeSelectors: [{matchLabels: {rack: one}}]
peers: [tor1]`),
		"peer with timers that just fit": object("BGPPeer", "good",
			"myASN: 65000\npeerASN: 65000\npeerAddress: 10.0.0.1\nholdTime: 9s\nkeepaliveTime: 3s"),
		"advertisement, none": object("BGPAdvertisement", "good", "{}"),
		"advertisement of gateways": object("BGPAdvertisement", "good",
			"nextHop: Gateway\nserviceSelectors: [{matchLabels: {a: b}}]"),
		"advertisement of some Services": object("BGPAdvertisement", "good", "serviceSelectors: [{matchLabels: {a: b}}]"),
		"profile": object("BFDProfile", "good",
			"receiveInterval: 100\ntransmitInterval: 100\ndetectMultiplier: 3\npassiveMode: true\nminimumTtl: 250"),
		"community": object("Community", "good",
			`communities: [{name: mine, value: "65000:100"}, {name: wide, value: "large:1:2:3"}]`),
		"node status": "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: BGPNodeStatus\nmetadata: {name: n1}\n",
	}
}

func (s *server) testGoodObjects(t *testing.T) {
	for name, manifest := range goodObjects() {
		t.Run(name, func(t *testing.T) {
			created, err := s.created(t.Context(), manifest)
			if err != nil {
				t.Fatal(err)
			}
			if errs := validate(t, created); len(errs) > 0 {
				t.Errorf("Validate refuses it: %v", errs.ToAggregate())
			}
		})
	}
}

// validate validates an object of the API server with the Go types.
func validate(t *testing.T, o *unstructured.Unstructured) field.ErrorList {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	var judge interface{ Validate() field.ErrorList }
	switch o.GetKind() {
	case "IPAddressPool":
		judge = &v1alpha1.IPAddressPool{}
	case "L2Domain":
		judge = &v1alpha1.L2Domain{}
	case "BGPPeer":
		judge = &v1alpha1.BGPPeer{}
	case "BGPAdvertisement":
		judge = &v1alpha1.BGPAdvertisement{}
	default:
		return nil
	}
	if err := yaml.UnmarshalStrict(text, judge); err != nil {
		t.Fatal(err)
	}
	return judge.Validate()
}

func (s *server) testDefaults(t *testing.T) {
	for _, c := range []struct {
		kind, spec, want string
	}{
		{"IPAddressPool", "addresses: [10.0.0.1]", "addresses: [10.0.0.1]\nautoAssign: true\nsharing: Namespace"},
		{"IPAddressPool", "externalPool: {apiGroup: a.io, kind: Pool, name: p}",
			"externalPool: {apiGroup: a.io, kind: Pool, name: p, ipFamily: IPv4}\nautoAssign: true\nsharing: Namespace"},
		{"L2Domain", "physicalNetwork: p\nsubnets: [{cidr: 10.0.0.0/24}]", `
physicalNetwork: p
subnets: [{cidr: 10.0.0.0/24}]
gateways: {max: 5, shards: 8}
failover: {detectInterval: 200ms, multiplier: 3}`},
		{"BFDProfile", "{}", "{receiveInterval: 300, transmitInterval: 300, detectMultiplier: 3, minimumTtl: 254}"},
		{"BGPPeer", "{myASN: 1, peerASN: 2, peerAddress: 10.0.0.1}",
			"{myASN: 1, peerASN: 2, peerAddress: 10.0.0.1, peerPort: 179}"},
		{"BGPAdvertisement", "{}", "{aggregationLength: 32, aggregationLengthV6: 128, nextHop: Node}"},
	} {
		created, err := s.created(t.Context(), object(c.kind, "defaults", c.spec))
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(created.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := yaml.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(text) {
			t.Errorf("%s with defaults is\n%swant\n%s", c.kind, got, text)
		}
	}
}
