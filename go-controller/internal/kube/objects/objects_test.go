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

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
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
		if got := c.objects.ControllerNamespace(); got != c.want {
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

// Which bridge a new L2Domain on OVN-Kubernetes' own network is on does not depend on a report.
func TestBridgeOfTheGatewayNetwork(t *testing.T) {
	d := &v1alpha1.L2Domain{Spec: v1alpha1.L2DomainSpec{PhysicalNetwork: world.GatewayNetwork}}
	n := &world.Node{Name: "n1", GatewayBridge: "br-ex"}
	if got := bridgeOf(d, n); got != "br-ex" {
		t.Errorf("bridge %q, want that of the gateway", got)
	}
	d.Status.EligibleNodes = 1
	if got := bridgeOf(d, n); got != world.GatewayNetwork {
		t.Errorf("bridge %q after the controller has excluded no node, want any bridge", got)
	}
}

// A manifest of a user replaces the object that the API server would replace, or is refused or ignored.
func TestEditFindsTheObject(t *testing.T) {
	pool := func() *Objects {
		p := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "public", UID: "1"}}
		return &Objects{Pools: []*v1alpha1.IPAddressPool{p}}
	}
	const spec = "\nspec: {addresses: [10.50.0.0/28]}"
	for name, c := range map[string]struct{ manifest, refused, ignored, fails string }{
		"as it is": {manifest: "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: public}" + spec},
		"with a namespace": {manifest: "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\n" +
			"metadata: {name: public, namespace: a}" + spec},
		"after a comment": {manifest: "# note: x\n---\n---\napiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\n" +
			"metadata: {name: public}" + spec + "\n---\n# end\n"},
		"in a list": {manifest: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: slb.k8s.ovn.org/v1alpha1, " +
			"kind: IPAddressPool, metadata: {name: public}, spec: {addresses: [10.50.0.0/28]}}"},
		"of MetalLB": {manifest: "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: public}",
			ignored: "IPAddressPool public: ignored, because it is of metallb.io/v1beta1, not of slb.k8s.ovn.org/v1alpha1"},
		"of another version": {manifest: "apiVersion: slb.k8s.ovn.org/v1\nkind: IPAddressPool\nmetadata: {name: public}",
			refused: "IPAddressPool public: would be refused: apiVersion: slb.k8s.ovn.org/v1 is not slb.k8s.ovn.org/v1alpha1"},
		"of another kind": {manifest: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}",
			ignored: "Deployment web: ignored, because no decision depends on this kind"},
		"a typing error": {manifest: "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAdressPool\nmetadata: {name: x}",
			refused: "IPAdressPool x: would be refused: kind: IPAdressPool is no kind of slb.k8s.ovn.org"},
		"a kind of controllers": {manifest: "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: ServicePlan\nmetadata: {name: x}",
			ignored: "ServicePlan x: ignored, because controllers write this kind"},
		"without a version": {manifest: "kind: IPAddressPool\nmetadata: {name: public}", fails: `apiVersion ""`},
		"no YAML":           {manifest: "a: b: c", fails: "document 1"},
		"without a name": {manifest: "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\n" +
			"metadata: {generateName: b-}", refused: "IPAddressPool b-: would be refused: metadata.name: Required value"},
		"a Service": {manifest: "apiVersion: v1\nkind: Service\nmetadata: {name: public}"},
		"a Service with an unknown field": {manifest: "apiVersion: v1\nkind: Service\nmetadata: {name: public}\nspec: {x: 1}",
			refused: "Service shop/public: would be refused: strict decoding error: unknown field \"spec.x\""},
		"an invalid value": {manifest: "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\n" +
			"metadata: {name: public}\nspec: {addresses: []}",
			refused: "IPAddressPool public: would be refused: spec.addresses"},
	} {
		o := pool()
		edited, err := o.Edit([]byte(c.manifest), "shop", time.Unix(0, 0), crd.Check)
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: error %v, want %q", name, err, c.fails)
			continue
		}
		if edited == nil {
			edited = &Edited{}
		}
		for got, want := range map[string]string{"refused " + strings.Join(edited.Refused, "; "): "refused " + c.refused,
			"ignored " + strings.Join(edited.Ignored, "; "): "ignored " + c.ignored} {
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if len(o.Pools) != 1 || o.Pools[0].UID != "1" || o.Pools[0].Namespace != "" {
			t.Errorf("%s: pools %+v, want the one with UID 1", name, o.Pools)
		}
	}
}

// A pool is refused where the admission policy refuses it (test/api/overlap_test.go).
func TestEditRefusesOverlappingPools(t *testing.T) {
	const old = "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: old}\nspec: " +
		"{addresses: [10.7.0.0/24, 10.7.8.10-10.7.8.99, 'fd00:7::/112'], exclude: [10.7.0.0/28], autoAssign: true, " +
		"sharing: Namespace}"
	for name, c := range map[string]struct{ spec, want string }{
		"an address": {"addresses: [10.0.0.1, 10.7.0.77]", "10.7.0.77 overlaps 10.7.0.0/24 of IPAddressPool old"},
		"other spelling": {"addresses: ['FD00:7:0::1-fd00:7::2:0']",
			"FD00:7:0::1-fd00:7::2:0 overlaps fd00:7::/112 of IPAddressPool old"},
		"partly excluded": {"addresses: [10.7.0.0/27]", "10.7.0.0/27 overlaps 10.7.0.0/24 of IPAddressPool old"},
		"many": {"addresses: [10.7.0.16, 10.7.0.17, 10.7.0.18, 10.7.0.19]", "10.7.0.16 overlaps 10.7.0.0/24, 10.7.0.17 " +
			"overlaps 10.7.0.0/24, 10.7.0.18 overlaps 10.7.0.0/24, ... of IPAddressPool old"},
		"neighbours":                 {spec: "addresses: [10.7.1.0/24, 10.7.8.9, 10.7.8.100-10.7.8.200]"},
		"what the old pool excludes": {spec: "addresses: [10.7.0.0-10.7.0.15]"},
		"what both exclude":          {spec: "addresses: [10.7.8.0/24], exclude: [10.7.8.8-10.7.8.100]"},
	} {
		o := &Objects{}
		if _, err := o.Set([]byte(old)); err != nil {
			t.Fatal(err)
		}
		edited, err := o.Edit([]byte("apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: new}\n"+
			"spec: {"+c.spec+"}"), "shop", time.Unix(0, 0), crd.Check)
		want := ""
		if c.want != "" {
			want = "IPAddressPool new: would be refused: spec.addresses: " + c.want
		}
		if err != nil || strings.Join(edited.Refused, "; ") != want || (len(o.Pools) == 1) != (want != "") {
			t.Errorf("%s: error %v, refused %+v, want %q; %d pools", name, err, edited, want, len(o.Pools))
		}
	}
}

// Of pools that overlap already, all but the spec can be changed.
func TestEditAcceptsPoolsThatOverlapAlready(t *testing.T) {
	const pools = "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: a}\nspec: " +
		"{addresses: [10.7.0.0/24], autoAssign: true, sharing: Namespace}\n"
	o := &Objects{}
	if _, err := o.Set([]byte(pools + "---\n" + strings.ReplaceAll(pools, "name: a", "name: b"))); err != nil {
		t.Fatal(err)
	}
	edited, err := o.Edit([]byte(strings.ReplaceAll(pools, "name: a", "name: b, labels: {x: z}")), "shop",
		time.Unix(0, 0), crd.Check)
	if err != nil || len(edited.Refused) > 0 || o.Pools[1].Labels["x"] != "z" {
		t.Errorf("error %v, refused %+v, pools %+v", err, edited, o.Pools)
	}
}

// The API server keeps what it has set in a Service and the manifest does not have.
func TestEditKeepsFieldsOfServices(t *testing.T) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"},
		Spec: corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}, ExternalIPs: []string{"10.0.0.1"}}}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "::1"}}
	o := &Objects{Services: []*corev1.Service{s}}
	_, err := o.Edit([]byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"+
		"spec: {type: LoadBalancer, externalIPs: null}"), "shop", time.Unix(0, 0), crd.Check)
	if err != nil || len(o.Services) != 1 {
		t.Fatal(err, o.Services)
	}
	got := o.Services[0]
	if got.UID != "1" || len(got.Spec.IPFamilies) != 1 || got.Spec.Type != corev1.ServiceTypeLoadBalancer ||
		len(got.Spec.ExternalIPs) != 0 || len(got.Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("%+v", got)
	}
}
