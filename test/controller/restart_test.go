// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// wide is a pool for thousands of Services, and a second domain with one gateway at a time.
const wide = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: wide}
spec: {addresses: ["10.60.16.0/20"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: wide}
spec: {physicalNetwork: physnet, ipAddressPools: [wide], subnets: [{cidr: 10.60.0.0/16, gateway: 10.60.0.1}]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: narrow}
spec: {addresses: [10.61.0.100], autoAssign: false}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: narrow}
spec:
  physicalNetwork: other
  ipAddressPools: [narrow]
  subnets: [{cidr: 10.61.0.0/16}]
  gateways: {max: 1, shards: 1}
`

// A restarted controller finds 600 Services and their domains as its predecessor left them, and writes nothing.
func restartWritesNothing(t *testing.T, c *cluster) {
	const n = 600
	o := databases(t)
	c.apply(t, wide)
	c.services(t, n-1)
	c.service(t, "narrow", func(s *corev1.Service) {
		s.Annotations = map[string]string{v1alpha1.AnnotationAddressPool: "narrow"}
	})
	c.endpoints(t, "narrow", "10.244.200.1")
	p := c.controller(t, o)
	eventually(t, "every shard has a router", func() bool { return len(o.gatewayPorts(t)) == 8+1 })
	// In the domain with one gateway at a time, this chassis is not the first choice: the controller knows the excluded
	// nodes only from OVN.
	o.claim(t, "chassis-1")
	c.allAnnounced(t, o, n)

	kinds := []string{"Service", "IPAddressPool", "L2Domain"}
	counts := func() [2]int {
		var writes int
		for _, kind := range kinds {
			writes += p.writes(t, kind)
		}
		return [2]int{writes, o.transactions(t)}
	}
	c.settled(t, counts)
	for range 2 {
		p.stop()
		before, transactions := c.versions(t), o.transactions(t)
		p = c.controller(t, o)
		eventually(t, "the new process is ready", func() bool { return p.Healthy() == nil })
		c.settled(t, counts)
		for _, kind := range kinds {
			if n := p.writes(t, kind); n != 0 {
				t.Errorf("%d status writes to kind %s after a restart, want none", n, kind)
			}
		}
		if n := o.transactions(t) - transactions; n != 0 {
			t.Errorf("%d transactions in the northbound database after a restart, want none", n)
		}
		if diff := cmp.Diff(before, c.versions(t)); diff != "" {
			t.Errorf("resource versions before - and after + a restart:\n%s", diff)
		}
	}
}

func northboundRestarts(t *testing.T, c *cluster) {
	o := databases(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	eventually(t, "load balancers", func() bool { return len(o.loadBalancers(t)) > 0 })
	kill(t, o, "nb")
	c.endpoints(t, "late", "10.244.1.11")
	c.service(t, "late")
	late := c.addresses(t, "late")[0]
	o.serve(t, "nb")
	eventually(t, "load balancers of both", func() bool {
		return slices.Equal(o.backends(t, late+":80"), []string{"10.244.1.11 8080"}) && len(o.loadBalancers(t)) == 2
	})
	o.nbctl(t, "lb-del", o.loadBalancers(t)[0])
	eventually(t, "a row that another client deleted is back", func() bool { return len(o.loadBalancers(t)) == 2 })
}
