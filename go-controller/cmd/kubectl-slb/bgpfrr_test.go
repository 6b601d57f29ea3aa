// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
)

// Sessions of FRR are those that frr-k8s reports, with the prefixes that FRR runs.
func TestSessionsOfFRR(t *testing.T) {
	var cluster objects.Objects
	if _, err := cluster.Set([]byte(`
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
    router bgp 64512
     address-family ipv4 unicast
      network 203.0.113.1/32
     exit-address-family
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: BGPSessionState
metadata: {namespace: frr-k8s-system, name: n1-abc}
status: {node: n1, peer: 10.50.0.1, bgpStatus: Established}
`)); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	r := bgpReport{Sessions: sessions(&cluster, now), peers: 1}
	const want = `NODE  PEER  ADDRESS    STATE                    SINCE  BFD  IPv4  IPv6  REPORTED
n1    tor   10.50.0.1  Established (FRR)        -      -    1     0     -
n2    tor   10.50.0.1  unknown, was Idle (FRR)  -      -    0     0     -

  n2 with tor: frr-k8s reports nothing of the node (FRRNodeState): does it run there?

`
	var out bytes.Buffer
	if r.print(&out, now, false, 0); out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
