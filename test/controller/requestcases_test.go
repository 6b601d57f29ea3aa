// SPDX-License-Identifier: Apache-2.0

package controller

// requestCases are about what Services request.
func requestCases() map[string][]stage {
	const prefer, require = "ipFamilyPolicy: PreferDualStack", "ipFamilyPolicy: RequireDualStack"
	const shared = "slb.k8s.ovn.org/allow-shared-ip: key"
	return map[string][]stage{
		"request: a second family when the pool gains it": {
			{apply: ips("lan", "10.60.0.1-10.60.0.9") + lb("shop/prefers", "", prefer) + lb("shop/requires", "", require),
				want: map[string]string{
					"shop/prefers":  `10.60.0.* PartlyAllocated: *pool "lan" has no IPv6 addresses`,
					"shop/requires": " FamilyUnavailable*IPv6*"}},
			{kubectl: "annotate service -n shop prefers slb.k8s.ovn.org/load-balancer-ips=10.60.0.5",
				want: map[string]string{"shop/prefers": "10.60.0.5 *"}},
			{kubectl: `patch ippool lan --type=merge -p={"spec":{"addresses":["10.60.0.1-10.60.0.9","fd00:60::/64"]}}`,
				want: map[string]string{
					"shop/prefers": "10.60.0.5,fd00:60::* Allocated*", "shop/requires": "10.60.0.*,fd00:60::* Allocated*"}},
		},
		"request: a second family from who admits the Service": {
			{apply: ips("fenced", "fd00:60::/64", "serviceAllocation: {namespaces: [bank]}") + ips("four", "10.60.0.0/24") +
				lb("shop/a", "", prefer) + lb("shop/b", "", require) + lb("bank/a", "", prefer), want: map[string]string{
				"shop/a": "10.60.0.* PartlyAllocated*", "shop/b": ` FamilyUnavailable: pool "four" has no IPv6*`,
				"bank/a": "10.60.0.*,fd00:60::* Allocated*"}},
		},
		"request: in one field or in two": {
			{apply: ips("lan", "10.60.0.0/24 fd00:60::/64") +
				lb("shop/field", "", "loadBalancerIP: 10.60.0.7") +
				lb("shop/same", "slb.k8s.ovn.org/load-balancer-ips: 10.60.0.8", "loadBalancerIP: 10.60.0.8") +
				lb("shop/differ", "slb.k8s.ovn.org/load-balancer-ips: 10.60.0.9", "loadBalancerIP: 10.60.0.10") +
				lb("shop/both", `slb.k8s.ovn.org/load-balancer-ips: "10.60.0.11,fd00:60::11"`, require) +
				lb("shop/twice", `slb.k8s.ovn.org/load-balancer-ips: "10.60.0.12,10.60.0.13"`, ""),
				want: map[string]string{
					"shop/field": "10.60.0.7 Allocated*", "shop/same": "10.60.0.8 Allocated*",
					"shop/both":   "10.60.0.11,fd00:60::11 Allocated*",
					"shop/differ": ` InvalidRequest: spec.loadBalancerIP: "10.60.0.10" asks for other addresses than *load-balancer-ips]: "10.60.0.9"; keep one of them`,
					"shop/twice":  " InvalidRequest: *more than one IPv4 address",
				}},
			{kubectl: "annotate service -n shop differ slb.k8s.ovn.org/load-balancer-ips-",
				want: map[string]string{"shop/differ": "10.60.0.10 Allocated*"}},
		},
		"request: in the words of MetalLB": {
			{apply: ips("lan", "10.60.0.0/24") + ips("named", "10.61.0.0/24", "autoAssign: false") +
				lb("shop/ip", "metallb.io/loadBalancerIPs: 10.60.0.7", "") + lb("shop/old-ip",
				"metallb.universe.tf/loadBalancerIPs: 10.60.0.8", "") +
				lb("shop/pool", "metallb.io/address-pool: named", "") + lb("shop/old-pool",
				"metallb.universe.tf/address-pool: named", "") +
				lb("shop/ours", "metallb.io/loadBalancerIPs: 10.60.0.9, slb.k8s.ovn.org/load-balancer-ips: 10.60.0.10", "") +
				lb("shop/shares", "metallb.io/allow-shared-ip: key, metallb.io/loadBalancerIPs: 10.60.0.11", "") +
				lb("shop/shares-too", "metallb.universe.tf/allow-shared-ip: key, metallb.io/loadBalancerIPs: 10.60.0.11",
					"ports: [{port: 81}]"),
				want: map[string]string{
					"shop/ip": "10.60.0.7 Allocated*", "shop/old-ip": "10.60.0.8 Allocated*", "shop/pool": "10.61.0.* Allocated*",
					"shop/old-pool": "10.61.0.* Allocated*",
					"shop/ours":     "10.60.0.10 Allocated*", "shop/shares": "10.60.0.11 Allocated*",
					"shop/shares-too": "10.60.0.11 Allocated*",
				}},
		},
		"request: a pool that comes later, and another one": {
			{apply: ips("lan", "10.60.0.1") + lb("shop/a", "slb.k8s.ovn.org/address-pool: named", ""), want: map[string]string{
				"shop/a": ` PoolNotFound: *address-pool]: pool "named" does not exist`}},
			{apply: ips("named", "10.61.0.1"), want: map[string]string{"shop/a": "10.61.0.1 Allocated: 10.61.0.1 from pool " +
				"named"}},
			{kubectl: "annotate service -n shop a --overwrite slb.k8s.ovn.org/address-pool=lan",
				want: map[string]string{"shop/a": "10.60.0.1 Allocated*"}},
		},
		"request: sharing, until it does not fit": {
			{apply: ips("lan", "10.60.0.1-10.60.0.2") + lb("shop/a", shared, "")},
			{want: map[string]string{"shop/a": "10.60.0.* Allocated*"}},
			{apply: lb("shop/b", shared+", slb.k8s.ovn.org/load-balancer-ips: 10.60.0.1", "ports: [{port: 81}]"),
				want: map[string]string{
					"shop/b": "10.60.0.1 Allocated*"}},
			{kubectl: `patch service -n shop b --type=json -p=[{"op":"replace","path":"/spec/ports/0/port","value":80}]`,
				want: map[string]string{
					"shop/a": "10.60.0.1 Allocated*", "shop/b": " AddressInUse: *belongs to Service shop/a; it is not shared: both " +
						"Services use port 80/TCP"}},
			{kubectl: `patch service -n shop b --type=json -p=[{"op":"replace","path":"/spec/ports/0/port","value":82}]`,
				want: map[string]string{
					"shop/b": "10.60.0.1 Allocated*"}},
			{kubectl: `patch service -n shop b --type=merge -p={"spec":{"externalTrafficPolicy":"Local"}}`,
				want: map[string]string{
					"shop/b": " AddressInUse: *need the same spec.selector"}},
		},
		"request: two Services found with one address": {
			{apply: ips("lan", "10.60.0.1-10.60.0.2") + lb("shop/a", "", ""),
				want: map[string]string{"shop/a": "10.60.0.1 Allocated*"}},
			{apply: lb("shop/b", "", ""), want: map[string]string{"shop/b": "10.60.0.2 Allocated*"}},
			{kubectl: `patch service -n shop b --subresource=status --type=merge -p={"status":{"loadBalancer":{"ingress":[{"ip":"10.60.0.1"}]}}}`,
				want: map[string]string{"shop/a": "10.60.0.1 Allocated*", "shop/b": "10.60.0.2 *"}},
		},
	}
}
