// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb"
)

const (
	operator    = "{apiVersion: metallb.io/v1beta1, kind: MetalLB, metadata: {name: metallb, namespace: metallb-system}}"
	speaker     = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: speaker, namespace: metallb-system}}"
	addressPool = "{apiVersion: metallb.io/v1beta1, kind: AddressPool, metadata: {name: old, namespace: metallb-system}}"
	peer        = "{apiVersion: metallb.io/v1beta2, kind: BGPPeer, metadata: {name: tor, namespace: metallb-system}}"
	configMap   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: metallb-system}}"
	elsewhere   = "{apiVersion: metallb.io/v1beta2, kind: BGPPeer, metadata: {name: x, namespace: other}}"
)

// Whatever a file may contain is read from a cluster, too.
func TestReadMetalLB(t *testing.T) {
	for name, c := range map[string]struct{ objects, want []string }{
		"an AddressPool alone":          {[]string{addressPool, speaker}, []string{"AddressPool", "DaemonSet"}},
		"an AddressPool beside others":  {[]string{addressPool, peer, configMap}, []string{"AddressPool", "BGPPeer"}},
		"the operator with a ConfigMap": {[]string{operator, configMap}, []string{"ConfigMap", "MetalLB"}},
		"no configuration":              {[]string{operator, speaker, elsewhere}, nil},
	} {
		kinds := map[schema.GroupVersionResource]string{
			{Version: "v1", Resource: "configmaps"}:                 "ConfigMapList",
			{Group: "apps", Version: "v1", Resource: "deployments"}: "DeploymentList",
			{Group: "apps", Version: "v1", Resource: "daemonsets"}:  "DaemonSetList",
		}
		for _, r := range resources() {
			for _, version := range r.versions {
				kinds[schema.GroupVersionResource{Group: r.group, Version: version, Resource: r.name}] = "List"
			}
		}
		var objects []runtime.Object
		for _, text := range c.objects {
			list, err := metallb.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, list[0])
		}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
		list, err := ReadMetalLB(t.Context(), client, "metallb-system")
		if err != nil != (c.want == nil) {
			t.Errorf("%s: error %v", name, err)
		}
		var got []string
		for _, o := range list {
			got = append(got, o.GetKind())
		}
		if slices.Sort(got); strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: kinds %v, want %v", name, got, c.want)
		}
	}
}
