// SPDX-License-Identifier: Apache-2.0

package controller

// ownerCases are about the owner of an address: conflicts with older Services, other namespaces and other controllers.
func ownerCases() map[string][]stage {
	const shared, lists = "slb.k8s.ovn.org/allow-shared-ip: key", "externalIPs: [10.61.0.9]"
	return map[string][]stage{
		"owner: the holder of an external address keeps it": {
			{apply: ips("lan", "10.60.0.0/24") + ips("own", "10.61.0.0/24", "autoAssign: false, externalIPs: true") +
				lb("bank/older", "", ""), want: map[string]string{"bank/older": "10.60.0.* Allocated*"}},
			{apply: lb("cafe/holder", "", lists), want: map[string]string{"cafe/holder": "10.60.0.* Allocated*"}},
			{kubectl: `get service -n cafe holder -o jsonpath={.status.conditions[?(@.type=="slb.k8s.ovn.org/ExternalIPs")].message}`, says: "10.61.0.9"},
			{kubectl: `patch service -n bank older --type=merge -p={"spec":{"externalIPs":["10.61.0.9"]}}`,
				want: map[string]string{
					"bank/older": "10.60.0.* AddressInUse: *spec.externalIPs: address 10.61.0.9 belongs to Service cafe/holder"}},
			{kubectl: `patch service -n cafe holder --type=merge -p={"spec":{"externalIPs":[]}}`, want: map[string]string{
				"bank/older": "10.60.0.* Allocated: 10.60.0.* from pool lan", "cafe/holder": "10.60.0.* Allocated*"}},
		},
		"owner: a key of another namespace opens nothing": {
			{apply: ips("lan", "10.60.0.1-10.60.0.2") + lb("bank/web", shared+", slb.k8s.ovn.org/load-balancer-ips: 10.60.0.1",
				"ports: [{port: 443}]")},
			{apply: lb("cafe/web", shared+", slb.k8s.ovn.org/load-balancer-ips: 10.60.0.1", ""), want: map[string]string{
				"bank/web": "10.60.0.1 Allocated*",
				"cafe/web": ` AddressInUse: *belongs to Service bank/web; it is not shared: pool "lan" shares addresses within one namespace (spec.sharing: Namespace)`}},
			{kubectl: `patch ippool lan --type=merge -p={"spec":{"sharing":"Cluster"}}`,
				want: map[string]string{"cafe/web": "10.60.0.1 Allocated*"}},
			{kubectl: `patch ippool lan --type=merge -p={"spec":{"sharing":"Namespace"}}`},
			{apply: lb("cafe/more", shared+", slb.k8s.ovn.org/load-balancer-ips: 10.60.0.1", "ports: [{port: 81}]"),
				want: map[string]string{
					"cafe/more": " AddressInUse: *belongs to Service bank/web*", "cafe/web": "10.60.0.1 Allocated*"}},
		},
		"owner: what another controller wrote": {
			{apply: lb("shop/in-pool", "", "") + lb("shop/elsewhere", "", "") +
				lb("shop/named", "", "loadBalancerClass: slb.k8s.ovn.org/ovn")},
			{kubectl: `patch service -n shop in-pool --subresource=status --type=merge -p={"status":{"loadBalancer":{"ingress":[{"ip":"10.60.0.7"}]}}}`},
			{kubectl: `patch service -n shop elsewhere --subresource=status --type=merge -p={"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.7"}]}}}`,
				want: map[string]string{"shop/elsewhere": "203.0.113.7 ForeignAddress: *address 203.0.113.7 is in no pool; " +
					"another controller wrote it*"}},
			{kubectl: `patch service -n shop named --subresource=status --type=merge -p={"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.8"}]}}}`},
			{apply: ips("lan", "10.60.0.0/24"), want: map[string]string{"shop/in-pool": "10.60.0.7 Allocated*",
				"shop/named":     "10.60.0.* *",
				"shop/elsewhere": "203.0.113.7 ForeignAddress: *"}},
			{kubectl: `patch service -n shop elsewhere --subresource=status --type=merge -p={"status":{"loadBalancer":{"ingress":[]}}}`,
				want: map[string]string{"shop/elsewhere": "10.60.0.* Allocated*"}},
			// An address that we assigned is kept even if no pool contains it any more.
			{kubectl: "delete ippool lan", want: map[string]string{"shop/in-pool": "10.60.0.7 AddressRetained*",
				"shop/elsewhere": "10.60.0.* AddressRetained*"}},
		},
		"owner: the host name that another controller wrote": {
			{apply: lb("shop/web", "", "")},
			{kubectl: `patch service -n shop web --subresource=status --type=merge -p={"status":{"loadBalancer":{"ingress":[{"hostname":"lb.example.org"}]}}}`,
				want: map[string]string{"shop/web": " ForeignAddress: *host name lb.example.org is in no pool; another*"}},
			{apply: ips("lan", "10.60.0.0/24") + lb("shop/other", "", ""),
				want: map[string]string{"shop/other": "10.60.0.* Allocated*", "shop/web": " ForeignAddress: *"}},
			{kubectl: `get service -n shop web -o jsonpath={.status.loadBalancer.ingress[*].hostname}`, says: "lb.example.org"},
			{kubectl: `patch service -n shop web --subresource=status --type=merge -p={"status":{"loadBalancer":{"ingress":[]}}}`,
				want: map[string]string{"shop/web": "10.60.0.* Allocated*"}},
		},
	}
}
