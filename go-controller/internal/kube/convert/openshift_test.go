// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func network(t *testing.T, manifest string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	unmarshal(t, []byte(manifest), &o.Object)
	return o
}

func TestNetworkConfig(t *testing.T) {
	got := convert.ReadNetworkConfig(network(t, `
spec:
  clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: "fd01::/48", hostPrefix: 64}, {cidr: spoilt}]
  serviceNetwork: [172.30.0.0/16]
  networkType: OVNKubernetes
  externalIP: {autoAssignCIDRs: [192.0.2.0/24]}
status:
  clusterNetwork: [{cidr: 10.132.0.0/14}]
  serviceNetwork: [172.30.0.0/16, "fd02::/112"]
  networkType: OpenShiftSDN
`))
	want := "{[192.0.2.0/24] [10.132.0.0/14 10.128.0.0/14 fd01::/48] [172.30.0.0/16 fd02::/112] OpenShiftSDN}"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := fmt.Sprint(convert.ReadNetworkConfig(network(t,
		"spec: {networkType: OVNKubernetes, clusterNetwork: 7}"))); got != "{[] [] [] OVNKubernetes}" {
		t.Errorf("before there is a status: %s", got)
	}
}

func TestNetworkOperator(t *testing.T) {
	const defaults = "[100.64.0.0/16 fd98::/64 100.88.0.0/16 fd97::/64 169.254.169.0/29 fd69::/125]"
	for manifest, want := range map[string]string{
		"spec: {defaultNetwork: {type: OVNKubernetes}}": defaults,
		"spec: {defaultNetwork: {type: OpenShiftSDN}}":  "[]",
		"{}": "[]",
		`
spec:
  defaultNetwork:
    type: OVNKubernetes
    ovnKubernetesConfig:
      v4InternalSubnet: 100.70.0.0/16
      v6InternalSubnet: fd70::/64
      ipv4: {internalJoinSubnet: 100.99.0.0/16, internalTransitSwitchSubnet: 100.69.0.0/16}
      gatewayConfig: {ipv4: {internalMasqueradeSubnet: 169.254.0.0/17}}`: "[100.99.0.0/16 fd70::/64 100.69.0.0/16 fd97::/64 169.254.0.0/17 fd69::/125]",
	} {
		if got := fmt.Sprint(convert.ReadNetworkOperator(network(t, manifest)).InternalSubnets); got != want {
			t.Errorf("%s: %s, want %s", manifest, got, want)
		}
	}
	got := convert.ReadNetworkOperator(network(t, `
metadata: {annotations: {slb.k8s.ovn.org/mode: BGP, slb.k8s.ovn.org/release-on-disable: "true"}}
spec: {clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}], serviceNetwork: [172.30.0.0/16]}
`))
	if want := "{BGP true true [10.128.0.0/14] [172.30.0.0/16] []}"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestModeSetting applies a sequence of annotations.
func TestModeSetting(t *testing.T) {
	mode := func(text string) *convert.NetworkOperator {
		return &convert.NetworkOperator{Mode: text, HasMode: true, Release: true}
	}
	for _, flag := range []world.Mode{world.Layer2AndBGP, world.Disabled} {
		o := convert.Options{Mode: flag}
		s := convert.DefaultModeSetting(o)
		for _, step := range []struct {
			what    string
			said    *convert.NetworkOperator
			want    world.Mode
			refused string
		}{
			{"no object", nil, flag, ""},
			{"no annotation", &convert.NetworkOperator{}, flag, ""},
			{"a first word that is none", mode("On"), flag,
				`"On" is none of Disabled, Layer2, BGP and Layer2+BGP; the mode stays ` + flag.String()},
			{"a mode", mode("BGP"), world.BGPOnly, ""},
			{"a word that is none", mode("bgp"), world.BGPOnly, `"bgp" is none of`},
			{"an empty word", mode(""), world.BGPOnly, `"" is none of`},
			{"the object is gone", nil, world.BGPOnly, ""},
			{"it is back", mode("Disabled"), world.Disabled, ""},
			{"both", mode("Layer2+BGP"), world.Layer2AndBGP, ""},
			{"layer 2", mode("Layer2"), world.Layer2Only, ""},
			{"the annotation is gone", &convert.NetworkOperator{Release: true}, flag, ""},
		} {
			s = convert.ModeSetting(s, step.said, o)
			if s.Mode != step.want || step.refused == "" && s.Refused != "" || !strings.Contains(s.Refused, step.refused) {
				t.Errorf("%s: %+v, want %s, refused %q", step.what, s, step.want, step.refused)
			}
		}
		if s.Release {
			t.Error("release-on-disable counts without a mode")
		}
	}
}

func TestModeSettingIsRestored(t *testing.T) {
	for _, m := range world.Modes() {
		p := &v1alpha1.IPAddressPool{}
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: "Disabled"},
			{Type: v1alpha1.ConditionModeAccepted, Reason: convert.ModeReason(m)}}
		if s, ok := convert.StoredModeSetting(p); !ok || s.Mode != m || !convert.MustStore(&s) {
			t.Errorf("%s is remembered as %+v", m, s)
		}
	}
	if s, ok := convert.StoredModeSetting(&v1alpha1.IPAddressPool{}); ok {
		t.Errorf("nothing is remembered as %+v", s)
	}
	if s := convert.DefaultModeSetting(convert.Options{}); convert.MustStore(&s) {
		t.Error("a value that no object has is kept")
	}
}
