// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
)

const cluster = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: public}
spec: {addresses: [10.50.0.100-10.50.0.109]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: lan}
spec:
  physicalNetwork: "a<b&c"
  vlan: 7
  gateways: {shards: 2}
  subnets: [{cidr: 10.50.0.0/24}]
status:
  eligibleNodes: 2
  shards:
  - {index: 0, gateways: [n1, n2], active: n1, addresses: 1}
  - {index: 1, gateways: [n2, n1], addresses: 1}
  excludedNodes: [{name: n3, reason: NotAttached, message: none}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, ports: [{port: 80}]}
status:
  loadBalancer: {ingress: [{ip: 10.50.0.100}, {ip: 10.50.0.101}, {ip: 10.50.0.102}]}
  conditions:
  - type: slb.k8s.ovn.org/Allocated
    status: "True"
    reason: Allocated
    message: 10.50.0.100, 10.50.0.101, 10.50.0.102 from pool public
`

// read returns how many elements of each name, and of each name and class ("path.carries"), and how many texts of each
// value a picture has. It fails if the picture is no well-formed XML.
func read(t *testing.T, picture string) (elements, texts map[string]int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(picture))
	elements, texts = map[string]int{}, map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, texts
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
			for _, a := range token.Attr {
				if a.Name.Local == "class" {
					elements[token.Name.Local+"."+a.Value]++
				}
			}
		case xml.CharData:
			texts[string(token)]++
		}
	}
}

func render(t *testing.T, cluster string) string {
	t.Helper()
	var o objects.Objects
	if _, err := o.Set([]byte(cluster)); err != nil {
		t.Fatal(err)
	}
	picture := Render(&o, time.Unix(0, 0))
	if again := Render(o.Clone(), time.Unix(0, 0)); again != picture {
		t.Error("two pictures of one cluster differ")
	}
	return picture
}

// The picture in the documentation is that of a small cluster.
func TestPictureOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "../../../docs/img/graph.svg", render(t, string(text)))
}

// The picture has every object once, and lines from shards to the active and to the next gateway.
func TestRender(t *testing.T) {
	elements, texts := read(t, render(t, cluster))
	for _, want := range []string{"L2Domain lan: network a<b&c, VLAN 7", "shard 0", "on n1", "shard 1", "on no gateway",
		"n1", "n2", "n3", "NotAttached", "1 shard", "standby", "10.50.0.100  shop/web", "10.50.0.101  shop/web",
		"10.50.0.102  shop/web"} {
		if texts[want] != 1 {
			t.Errorf("%d texts %q, want one", texts[want], want)
		}
	}
	for element, want := range map[string]int{"path.carries": 1, "path.standby": 2, "rect.active": 2, "rect.broken": 2} {
		if elements[element] != want {
			t.Errorf("%d of %s, want %d", elements[element], element, want)
		}
	}
	if empty := Render(&objects.Objects{}, time.Unix(0, 0)); !strings.Contains(empty, "There is no L2Domain.") {
		t.Errorf("a cluster without L2Domains:\n%s", empty)
	}
}

// routers returns two BGPPeers, and the BGPAdvertisement of the pool to them.
func routers() string {
	return golden.Peer("tor", "10.50.0.1") + golden.Peer("spine", "10.50.0.2") + golden.Advertisement("public")
}

func node(name, spine string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %[1]s}
status:
  addresses: [{type: InternalIP, address: 10.50.1.%[3]s}]
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPNodeStatus
metadata: {name: %[1]s}
status:
  sessions:
  - {peer: tor, peerAddress: 10.50.0.1, state: Established, families: [IPv4]}
  - {peer: spine, peerAddress: 10.50.0.2, state: %[2]s, families: [IPv4]}
`, name, spine, name[1:])
}

// Nodes with equal sessions and addresses share a box; a session that is not established is red.
func TestRenderBGP(t *testing.T) {
	const endpoints = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80, protocol: TCP}]
endpoints: [{addresses: [10.244.0.5], nodeName: n1, conditions: {ready: true}}]
`
	text := cluster + routers() + endpoints
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		text += node(name, "Established")
	}
	text += node("n5", "Active")
	elements, texts := read(t, render(t, text))
	for _, want := range []string{"BGP", "n1, n2, n3 and 1 more", "advertise 3 addresses", "n5", "advertises 3 addresses",
		"tor  10.50.0.1", "5 of 5 sessions established", "spine  10.50.0.2", "4 of 5 sessions established"} {
		if texts[want] != 1 {
			t.Errorf("%d texts %q, want one; texts: %v", texts[want], want, texts)
		}
	}
	for element, want := range map[string]int{"path.carries": 4, "path.down": 1} {
		if elements[element] != want {
			t.Errorf("%d of %s, want %d", elements[element], element, want)
		}
	}
}

// Long lists and texts are cut.
func TestRenderLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString(strings.Replace(cluster, "10.50.0.109", "10.50.0.250", 1) + routers() + node("n1", "Established"))
	for i := range 90 {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Service
metadata: {name: service-with-a-name-that-is-long-%d, namespace: namespace-of-a-team}
spec: {type: LoadBalancer, ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 10.50.0.%d}]}}
`, i, 103+i)
	}
	picture := render(t, b.String())
	_, texts := read(t, picture)
	cut := 0
	for text := range texts {
		if n := len([]rune(text)); n > maxText && strings.HasSuffix(text, "…") {
			t.Errorf("a text of %d characters: %s", n, text)
		}
		if strings.HasPrefix(text, "and ") && strings.HasSuffix(text, " more") {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no list is cut")
	}
}
