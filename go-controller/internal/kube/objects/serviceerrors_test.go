// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
)

// What the API server refuses in a Service is refused with the field and the value.
func TestEditRefusesInvalidServices(t *testing.T) {
	for spec, want := range map[string]string{
		`ports: [{port: 99999}]`:                    `spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive`,
		`ports: [{port: 80, protocol: ICMP}]`:       `spec.ports[0].protocol: Unsupported value: "ICMP"`,
		`ports: [{port: 80}, {port: 80, name: x}]`:  `spec.ports[1]: Duplicate value: "80/TCP"`,
		`sessionAffinity: Foo`:                      `spec.sessionAffinity: Unsupported value: "Foo"`,
		`externalTrafficPolicy: Lokal`:              `spec.externalTrafficPolicy: Unsupported value: "Lokal"`,
		`loadBalancerSourceRanges: ["10.0.0.0/33"]`: `spec.loadBalancerSourceRanges[0]: Invalid value: "10.0.0.0/33"`,
		`externalIPs: [10.0.0.256]`:                 `spec.externalIPs[0]: Invalid value: "10.0.0.256"`,
		`type: Loadbalancer`:                        `spec.type: Unsupported value: "Loadbalancer"`,
	} {
		o := &Objects{}
		edited, err := o.Edit([]byte("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {"+spec+"}}"), "shop",
			time.Unix(0, 0), crd.Check)
		if err != nil || len(edited.Refused) != 1 ||
			!strings.HasPrefix(edited.Refused[0], "Service shop/web: would be refused: "+want) {
			t.Errorf("%s: error %v, edit %+v; want %s", spec, err, edited, want)
		}
	}
}

// Ranges that are stored already do not have to be mended, and a Service with valid fields is not refused.
func TestEditAdmitsStoredRanges(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: LoadBalancer, " +
		"loadBalancerSourceRanges: [010.0.0.0/8, ' 192.0.2.0/24'], sessionAffinity: ClientIP, ports: [{port: 53, protocol: " +
		"UDP}, {port: 53, name: tcp}], externalTrafficPolicy: Local}}\n"
	edited(t, service, service)
	// API servers before 1.36 admit leading zeros in new ones, too.
	edited(t, service, strings.Replace(service, "spec: {", "spec: {externalIPs: [010.000.000.005], ", 1))
}

// Of two new Services, the first one in the file is created first.
func TestEditCreatesInTheOrderOfTheFile(t *testing.T) {
	o, _ := edited(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", `
{apiVersion: v1, kind: Service, metadata: {name: z}, spec: {type: LoadBalancer}}
---
{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}
`)
	created := map[string]time.Time{}
	for _, s := range o.Services {
		created[s.Name] = s.CreationTimestamp.Time
	}
	if len(created) != 2 || !created["z"].Before(created["a"]) {
		t.Errorf("created %v", created)
	}
}
