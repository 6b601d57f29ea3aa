// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Sessions of FRR are those that frr-k8s reports, with the prefixes that FRR runs.
func TestSessionsOfFRR(t *testing.T) {
	var cluster objects.Objects
	if _, err := cluster.Set([]byte(withFRR)); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	r := bgpReport{Sessions: sessions(&cluster, now), peers: 1}
	const want = `NODE  PEER  ADDRESS    STATE              SINCE  BFD  IPv4  IPv6  REPORTED
n1    tor   10.50.0.1  Established (FRR)  -      -    1     0     -
n2    tor   10.50.0.1  unknown (FRR)      -      -    0     0     -

  n2 with tor: frr-k8s reports nothing of the node (FRRNodeState): does it run there?

`
	var out bytes.Buffer
	if r.print(&out, now, false, 0); out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

// While FRR does not run, its session is not known, whatever frr-k8s reported last. A Pod that is not of the DaemonSet
// does not matter.
func TestSessionsOfFRRThatDoesNotRun(t *testing.T) {
	const pods = `---
apiVersion: v1
kind: Pod
metadata:
  {namespace: frr-k8s-system, name: a, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: frr-k8s, uid: "1",
    controller: true}]}
spec: {nodeName: n1, containers: [{name: frr}]}
status:
  containerStatuses:
  - {name: frr, ready: false, restartCount: 7, image: "", imageID: "", state: {waiting: {reason: CrashLoopBackOff}}}
---
apiVersion: v1
kind: Pod
metadata: {namespace: frr-k8s-system, name: b}
spec: {nodeName: n2, containers: [{name: frr}]}
status:
  containerStatuses: [{name: frr, ready: true, restartCount: 0, image: "", imageID: ""}]
`
	var cluster objects.Objects
	if _, err := cluster.Set([]byte(withFRR + pods)); err != nil {
		t.Fatal(err)
	}
	r := bgpReport{Sessions: sessions(&cluster, time.Unix(1_800_000_000, 0)), peers: 1}
	const want = `NODE  PEER  ADDRESS    STATE                             SINCE  BFD  IPv4  IPv6  REPORTED
n1    tor   10.50.0.1  unknown, was Established (FRR)  -      -    0     0     -
n2    tor   10.50.0.1  unknown (FRR)                     -      -    0     0     -

  n1 with tor: container frr of Pod frr-k8s-system/a is not ready (CrashLoopBackOff), so what frr-k8s reports of
  the node may be out of date
  n2 with tor: frr-k8s has no Pod on the node (of a DaemonSet in namespace frr-k8s-system, with a container frr)

`
	var out bytes.Buffer
	if r.print(&out, time.Unix(1_800_000_000, 0), false, 0); strings.Join(strings.Fields(out.String()), " ") !=
		strings.Join(strings.Fields(want), " ") {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

// withFRR is a cluster in which FRR has the session of n1, and advertises a route.
const withFRR = `
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2}}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {backend: FRRK8s, myASN: 64512, peerASN: 64513, peerAddress: 10.50.0.1}
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRNodeState
metadata: {name: n1}
status:
  lastConversionResult: success
  runningConfig: |
    ip prefix-list 10.50.0.1-allowed-ipv4 seq 1 permit 203.0.113.1/32
    route-map 10.50.0.1-out permit 1
     match ip address prefix-list 10.50.0.1-allowed-ipv4
    exit
    router bgp 64512
     no bgp network import-check
     address-family ipv4 unicast
      network 203.0.113.1/32
      neighbor 10.50.0.1 activate
      neighbor 10.50.0.1 route-map 10.50.0.1-out out
     exit-address-family
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: BGPSessionState
metadata: {namespace: frr-k8s-system, name: n1-abc}
status: {node: n1, peer: 10.50.0.1, bgpStatus: Established}
`

// What a drain reads again and again shows the same of its node as the whole cluster does.
func TestDrainWaitsForRoutesOfFRR(t *testing.T) {
	manifests, err := manifest.Parse([]byte(withFRR))
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{items: map[string]string{}}
	for _, u := range manifests {
		text, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		resource := strings.ToLower(u.GetKind()) + "s"
		s.items[resource] = strings.TrimPrefix(s.items[resource]+","+string(text), ",")
	}
	o := connection{kubeconfig: s.serve(t)}
	clients, err := o.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	for node, want := range map[string]string{"n1": "routes of FRR to BGPPeer tor",
		"n2": "routes of FRR to BGPPeer tor, if any: frr-k8s reports nothing of the node (FRRNodeState): does it run " +
			"there?"} {
		cluster, err := clients.load(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		is, err := clients.loadNode(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := remaining(cluster, node, now)
		if left, _ := remaining(is, node, now); left != want || all != want {
			t.Errorf("%s: %q, of the whole cluster %q, want %q", node, left, all, want)
		}
	}
}

// A route of FRR that a node should not have is named, for the address and while the node drains; a route of others is
// not.
func TestRoutesThatAreNotWithdrawn(t *testing.T) {
	var cluster objects.Objects
	if _, err := cluster.Set([]byte(withFRR + `---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: far}
spec: {addresses: [203.0.113.0/24]}
---
{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: BGPAdvertisement, metadata: {name: far}, spec: {}}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web, uid: web}
spec: {type: LoadBalancer, ipFamilies: [IPv4], ports: [{name: http, port: 80}]}
status:
  loadBalancer: {ingress: [{ip: 203.0.113.1}]}
  conditions:
  - {type: slb.k8s.ovn.org/Allocated, status: "True", reason: Allocated, message: "203.0.113.1 from pool far"}
`)); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	r := bgpReport{Routes: explain.Routes(&cluster, now)}
	const want = `ADDRESS      SERVICE   ADVERTISED BY  TO  WITHOUT SESSION  NOT WITHDRAWN BY
203.0.113.1  shop/web  -              -   -                n1
`
	var out bytes.Buffer
	if r.printRoutes(&out, false); out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	for _, backend := range []v1alpha1.Backend{v1alpha1.BackendGoBGP, v1alpha1.BackendFRRK8s} { // FRR may have it still
		cluster.Peers[0].Spec.Backend = backend
		if left, stays := remaining(&cluster, "n1", now); left != "routes of FRR to BGPPeer tor" || stays {
			t.Errorf("a drain with backend %s waits for %q, stays: %t", backend, left, stays)
		}
	}
	if _, err := cluster.Set([]byte(`
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {namespace: frr-k8s-system, name: fabric}
spec: {bgp: {routers: [{asn: 64512, prefixes: [203.0.113.1/32]}]}}
`)); err != nil {
		t.Fatal(err)
	}
	if left, _ := remaining(&cluster, "n1", now); left != "" {
		t.Errorf("a drain waits for %q, which others have", left)
	}
	const unknown = "routes of FRR to BGPPeer tor, if any: frr-k8s reports nothing of the node (FRRNodeState): does it " +
		"run there?"
	if left, stays := remaining(&cluster, "n2", now); left != unknown || stays {
		t.Errorf("a drain of a node without reports waits for %q, stays: %t", left, stays)
	}
}
