// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Commands that an explanation names must be for the namespace of this installation.
func TestHome(t *testing.T) {
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ovnkube-node-1"}}
	}
	leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ours", Name: "ovnkube-slb"}}
	for name, c := range map[string]struct {
		objects Objects
		want    string
	}{
		"nothing is known":                {Objects{}, "ovn-kubernetes"},
		"OVN-Kubernetes":                  {Objects{Pods: []*corev1.Pod{pod("ovn-kubernetes")}}, "ovn-kubernetes"},
		"OpenShift":                       {Objects{Pods: []*corev1.Pod{pod("openshift-ovn-kubernetes")}}, "ovnkube-slb"},
		"a controller in other manifests": {Objects{Leader: leader, Pods: []*corev1.Pod{pod("ovn-kubernetes")}}, "ours"},
	} {
		if got := c.objects.Home(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A preview must not invent a gateway among the nodes for which the list of excluded nodes has no room.
func TestBridgesOfNodesThatAStatusMayNotList(t *testing.T) {
	d := &v1alpha1.L2Domain{Spec: v1alpha1.L2DomainSpec{PhysicalNetwork: "provider"}}
	d.Status.Shards = []v1alpha1.ShardStatus{{Gateways: []string{"gateway"}}}
	expect := func(node, want string) {
		t.Helper()
		if got := bridgeOf(d, &world.Node{Name: node}); got != want {
			t.Errorf("%d nodes are excluded: bridge of node %q: %q, want %q", len(d.Status.ExcludedNodes), node, got, want)
		}
	}
	expect("new", "provider")
	for i := range v1alpha1.MaxExcludedNodes {
		d.Status.ExcludedNodes = append(d.Status.ExcludedNodes,
			v1alpha1.ExcludedNode{Name: fmt.Sprint(i), Reason: v1alpha1.ExcludedNotAttached})
	}
	expect("new", "")
	expect("gateway", "provider")
	expect("1", "")
}

// A manifest of a user replaces the object that the API server would replace, or is refused.
func TestEditFindsTheObject(t *testing.T) {
	pool := func() *Objects {
		p := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "public", UID: "1"}}
		return &Objects{Pools: []*v1alpha1.IPAddressPool{p}}
	}
	for name, c := range map[string]struct{ manifest, want string }{
		"as it is": {"apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: public}", ""},
		"with a namespace": {"apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\n" +
			"metadata: {name: public, namespace: a}", ""},
		"of MetalLB": {"apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: public}",
			`document 1: IPAddressPool "public": apiVersion "metallb.io/v1beta1": want "slb.k8s.ovn.org/v1alpha1"`},
		"without a version": {"kind: IPAddressPool\nmetadata: {name: public}", `apiVersion "": want`},
		"a Service": {"apiVersion: v1\nkind: Service\nmetadata: {name: public}",
			`document 1: Service "public": metadata.namespace: missing`},
	} {
		o := pool()
		_, err := o.Edit([]byte(c.manifest), time.Unix(0, 0))
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		case c.want == "" && (err != nil || len(o.Pools) != 1 || o.Pools[0].UID != "1" || o.Pools[0].Namespace != ""):
			t.Errorf("%s: error %v, pools %+v, want the one with UID 1", name, err, o.Pools)
		}
	}
}
