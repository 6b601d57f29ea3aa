// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// other has an address of this controller, one that another controller has written, and an external IP.
const other = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: public, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {addresses: [10.50.0.100-10.50.0.109], externalIPs: true}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, uid: web, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  type: LoadBalancer
  ipFamilies: [IPv4]
  externalIPs: [10.50.0.109, 10.50.0.108]
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}]
status:
  loadBalancer: {ingress: [{ip: 10.50.0.100}, {ip: 10.50.0.105}]}
  conditions:
  - {type: slb.k8s.ovn.org/Allocated, status: "True", reason: Allocated, message: "10.50.0.100 from pool public"}
  - {type: slb.k8s.ovn.org/ExternalIPs, status: "True", reason: Allocated, message: "10.50.0.109"}
`

// advertising returns a cluster with other, whose pool is advertised to a BGPPeer, and with more objects.
func advertising(t *testing.T, more string) *objects.Objects {
	t.Helper()
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := &objects.Objects{}
	routers := golden.Peer("tor", "172.18.0.1") + golden.Advertisement("public")
	for _, documents := range []string{string(base), other, routers + more} {
		if _, err := o.Set([]byte(documents)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// Routes are those that nodes advertise: not the addresses of other controllers, and the external IPs that a Service
// holds.
func TestRoutesAreThoseOfNodes(t *testing.T) {
	o := advertising(t, "")
	var got []string
	for _, r := range Routes(o, time.Unix(1767225700, 0)) {
		got = append(got, fmt.Sprintf("%s %s %s", r.Address, r.Service, r.Idle))
	}
	const want = "10.50.0.100 shop/web [n1 n2 n3]\n10.50.0.109 shop/web [n1 n2 n3]"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("routes\n%s\nwant\n%s", text, want)
	}
	for _, l := range Explain(o, Question{Service: world.Key{Namespace: "shop", Name: "web"}}).Links {
		if strings.Contains(l.Object+l.Message, "10.50.0.105") {
			t.Errorf("the path to another controller's address is explained: %+v", l)
		}
	}
}

// The next hops of a route are the addresses of the nodes whose sessions carry it.
func TestRoutesHaveNextHops(t *testing.T) {
	const sessions = `
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPNodeStatus
metadata: {name: n1}
status: {sessions: [{peer: tor, peerAddress: 172.18.0.1, state: Established}]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPNodeStatus
metadata: {name: n3}
status: {sessions: [{peer: tor, peerAddress: 172.18.0.1, state: Established}]}
`
	o := advertising(t, sessions)
	for _, r := range Routes(o, time.Unix(1767225700, 0)) {
		if got := strings.Join(r.NextHops, " "); got != "172.18.0.11 172.18.0.13" {
			t.Errorf("%s: next hops %q", r.Address, got)
		}
	}
}
