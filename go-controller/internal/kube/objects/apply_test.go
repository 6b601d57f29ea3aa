// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
)

// edited returns the objects after an edit, which must not be refused, and its notes.
func edited(t *testing.T, present, manifests string) (*Objects, string) {
	t.Helper()
	o := &Objects{}
	if _, err := o.Set([]byte(present)); err != nil {
		t.Fatal(err)
	}
	edited, err := o.Edit([]byte(manifests), "shop", time.Unix(0, 0), crd.Check)
	if err != nil || len(edited.Refused) > 0 {
		t.Fatal(err, edited)
	}
	return o, strings.Join(edited.Notes, "\n")
}

// A manifest that the API server has answered is the whole object: what it lacks is removed.
func TestEditReplacesWholeObjects(t *testing.T) {
	const present = `{apiVersion: v1, kind: Node, metadata: {name: n1, uid: "1", labels: {rack: r1, uplink: 100g}},
  spec: {taints: [{key: a, effect: NoSchedule}]}, status: {addresses: [{type: InternalIP, address: 172.18.0.11}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: "2", annotations: {a: b}},
  spec: {type: LoadBalancer, ipFamilies: [IPv4], loadBalancerSourceRanges: [192.0.2.0/24]},
  status: {loadBalancer: {ingress: [{ip: 10.50.0.100}]}}}
`
	o, notes := edited(t, present, `{apiVersion: v1, kind: Node, metadata: {name: n1, uid: "1", labels: {rack: r1}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, resourceVersion: "7"},
  spec: {type: LoadBalancer, ipFamilies: [IPv4]}}
`)
	n, s := o.Nodes[0], o.Services[0]
	if len(n.Labels) != 1 || n.Labels["rack"] != "r1" || len(n.Spec.Taints) != 0 || len(n.Status.Addresses) != 1 {
		t.Errorf("Node %+v", n)
	}
	if s.UID != "2" || len(s.Annotations) != 0 || len(s.Spec.LoadBalancerSourceRanges) != 0 ||
		len(s.Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("Service %+v", s)
	}
	if notes != "" {
		t.Errorf("notes %s", notes)
	}
}

// kubectl apply removes what the last manifest had, and keeps what others have set.
func TestEditRemovesWhatTheLastManifestHad(t *testing.T) {
	const present = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: "2", labels: {by: others},
  annotations: {a: b, by: others, kubectl.kubernetes.io/last-applied-configuration: '{"metadata":{"name":"web",
  "namespace":"shop","annotations":{"a":"b"}},"spec":{"type":"LoadBalancer","externalIPs":["10.0.0.1"],
  "ipFamilies":["IPv6"],"loadBalancerSourceRanges":["192.0.2.0/24"]}}'}},
  spec: {type: LoadBalancer, ipFamilies: [IPv6], externalIPs: [10.0.0.1], loadBalancerSourceRanges: [192.0.2.0/24]},
  status: {loadBalancer: {ingress: [{ip: 10.50.0.100}]}}}
---
{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: IPAddressPool, metadata: {name: public, labels: {by: others},
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"addresses":["10.50.0.0/28"],
  "exclude":["10.50.0.1"]}}'}},
  spec: {addresses: [10.50.0.0/28], exclude: [10.50.0.1], disabled: true, autoAssign: true, sharing: Namespace}}
`
	const (
		meta  = "{apiVersion: v1, kind: Service, metadata: {name: web}, "
		web   = meta + "spec: {type: LoadBalancer, externalIPs: [10.0.0.2]}}\n"
		other = meta + "spec: {type: LoadBalancer}}\n"
	)
	o, notes := edited(t, present, web+`---
{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: IPAddressPool, metadata: {name: public}, spec: {addresses: [10.50.0.0/27]}}
`)
	s, p := o.Services[0], o.Pools[0]
	if _, removed := s.Annotations["a"]; removed || s.Annotations["by"] != "others" || s.Labels["by"] != "others" ||
		len(s.Spec.LoadBalancerSourceRanges) != 0 || s.Spec.ExternalIPs[0] != "10.0.0.2" ||
		s.Spec.IPFamilies[0] != corev1.IPv6Protocol || len(s.Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("Service %+v", s)
	}
	if len(p.Spec.Exclude) != 0 || p.Spec.Addresses[0] != "10.50.0.0/27" || !p.Spec.Disabled ||
		p.Labels["by"] != "others" {
		t.Errorf("IPAddressPool %+v", p)
	}
	if notes != "" {
		t.Errorf("notes %s", notes)
	}
	// The manifest is the last one for the next.
	o, _ = edited(t, present, web+"---\n"+other)
	if s = o.Services[0]; len(s.Spec.ExternalIPs) != 0 {
		t.Errorf("Service %+v after the second manifest", s)
	}
}

// kubectl apply merges spec.ports of a Service by their keys: what others have added stays, whether or not the last
// manifest is known.
func TestEditMergesListsOfKubernetes(t *testing.T) {
	const last = `kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"ports":[{"port":80},{"port":81}]}}'`
	const web = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop"
	const ports = "spec: {ports: [{port: 80, nodePort: 30080}, {port: 81}, {port: 443}]}}\n"
	for annotations, want := range map[string][]int32{last: {80, 443}, "": {80, 81, 443}} {
		o, _ := edited(t, web+", annotations: {"+annotations+"}}, "+ports, web+"}, spec: {ports: [{port: 80, name: http}]}}")
		var got []int32
		for _, p := range o.Services[0].Spec.Ports {
			got = append(got, p.Port)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("with annotations {%s}: ports %v, want %v", annotations, got, want)
		}
		if p := o.Services[0].Spec.Ports[0]; p.Port == 80 && (p.Name != "http" || p.NodePort != 30080) {
			t.Errorf("port 80 is %+v", p)
		}
	}
}

// An annotation that kubectl apply can't read is an error there, too.
func TestEditRefusesAnUnreadableLastManifest(t *testing.T) {
	o := &Objects{}
	if _, err := o.Set([]byte("{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: " +
		"{kubectl.kubernetes.io/last-applied-configuration: x}}}")); err != nil {
		t.Fatal(err)
	}
	edited, err := o.Edit([]byte("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), "shop", time.Unix(0, 0),
		crd.Check)
	if err != nil || len(edited.Refused) != 1 || !strings.HasPrefix(edited.Refused[0], "Namespace a: would be refused: "+
		"annotation kubectl.kubernetes.io/last-applied-configuration: ") {
		t.Errorf("error %v, edit %+v", err, edited)
	}
}

// Without the last manifest, what becomes of the fields that this one lacks depends on how it is applied.
func TestEditNamesWhatMayStay(t *testing.T) {
	const service = "apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop"
	const pool = "apiVersion: slb.k8s.ovn.org/v1alpha1, kind: IPAddressPool, metadata: {name: public"
	const why = "): the object has no annotation kubectl.kubernetes.io/last-applied-configuration"
	for name, c := range map[string]struct{ present, manifest, want string }{
		"a Service": {"{" + service + ", labels: {a: b}, annotations: {c: d}}, spec: {type: LoadBalancer, " +
			"clusterIP: 10.96.0.9, loadBalancerSourceRanges: [192.0.2.0/24]}}", "{" + service + "}, spec: {type: LoadBalancer}}",
			"Service shop/web: what the manifest lacks is taken to stay (annotation c, label a, " +
				"spec.loadBalancerSourceRanges" + why},
		"an explicit null": {"{" + service + "}, spec: {type: LoadBalancer, externalIPs: [10.0.0.1]}}",
			"{" + service + "}, spec: {type: LoadBalancer, externalIPs: null}}", ""},
		"what the API server sets": {"{" + service + "}, spec: {type: LoadBalancer, clusterIP: 10.96.0.9, clusterIPs: " +
			"[10.96.0.9], ipFamilies: [IPv4], externalTrafficPolicy: Cluster, sessionAffinity: None, " +
			"allocateLoadBalancerNodePorts: true}}", "{" + service + "}, spec: {type: LoadBalancer}}", ""},
		"no default": {"{" + service + "}, spec: {type: LoadBalancer, externalTrafficPolicy: Local}}",
			"{" + service + "}, spec: {type: LoadBalancer}}",
			"Service shop/web: what the manifest lacks is taken to stay (spec.externalTrafficPolicy" + why},
		"a pool": {"{" + pool + ", labels: {a: b}}, spec: {addresses: [10.50.0.0/28], disabled: true, autoAssign: true}}",
			"{" + pool + "}, spec: {addresses: [10.50.0.0/28]}}",
			"IPAddressPool public: what the manifest lacks is taken to be removed (label a, spec.disabled" + why},
		"a Namespace": {"{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a, " +
			"kubernetes.io/metadata.name: shop}}, spec: {finalizers: [kubernetes]}}",
			"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
			"Namespace shop: what the manifest lacks is taken to stay (label team" + why},
		"many fields": {"{" + service + ", labels: {a: b, c: d, e: f, g: h}}, spec: {}}", "{" + service + "}, spec: {}}",
			"Service shop/web: what the manifest lacks is taken to stay (label a, label c, label e and 1 more" + why},
	} {
		if _, notes := edited(t, c.present, c.manifest); notes != c.want {
			t.Errorf("%s: notes %q, want %q", name, notes, c.want)
		}
	}
}
