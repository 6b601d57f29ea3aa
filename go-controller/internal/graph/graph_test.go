// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
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
status: {loadBalancer: {ingress: [{ip: 10.50.0.100}, {ip: 10.50.0.101}, {ip: 10.50.0.102}]}}
`

// The picture is well-formed XML and has every object once, with the lines from shards to gateways.
func TestRender(t *testing.T) {
	var o objects.Objects
	if _, err := o.Set([]byte(cluster)); err != nil {
		t.Fatal(err)
	}
	picture := Render(&o, time.Unix(0, 0))
	if again := Render(o.Clone(), time.Unix(0, 0)); again != picture {
		t.Error("two pictures of one cluster differ")
	}
	d := xml.NewDecoder(strings.NewReader(picture))
	elements, texts := map[string]int{}, map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
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
	for _, want := range []string{"L2Domain lan: network a<b&c, VLAN 7", "shard 0", "on n1", "shard 1", "on no gateway",
		"n1", "n2", "n3", "NotAttached", "1 shard", "standby", "10.50.0.100  shop/web", "10.50.0.101  shop/web",
		"10.50.0.102  shop/web"} {
		if texts[want] != 1 {
			t.Errorf("%d texts %q, want one", texts[want], want)
		}
	}
	for element, want := range map[string]int{"path.carries": 1, "path.standby": 3, "rect.active": 2, "rect.broken": 2} {
		if elements[element] != want {
			t.Errorf("%d of %s, want %d", elements[element], element, want)
		}
	}
	if empty := Render(&objects.Objects{}, time.Unix(0, 0)); !strings.Contains(empty, "There is no L2Domain.") {
		t.Errorf("a cluster without L2Domains:\n%s", empty)
	}
}
