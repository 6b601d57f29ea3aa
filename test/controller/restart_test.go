// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
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
