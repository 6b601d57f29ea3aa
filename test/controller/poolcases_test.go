// SPDX-License-Identifier: Apache-2.0

package controller

// poolCases are about the addresses that pools assign, and to which Services.
func poolCases() map[string][]stage {
	const reserved = "PartlyUsable: *10.50.0.1 is the next hop of L2Domain lan*10.50.0.11 is an address of node n1*" +
		"10.50.0.254 is the next hop of node n3*10.96.0.8/30 is in the Service network*10.244.7.0/24 is in the pod network*"
	return map[string][]stage{
		"pool: ranges in their order without the excluded addresses": {
			{apply: ips("lan", "10.60.0.254-10.60.1.1 10.60.2.7 fd00:60::/126", "exclude: [10.60.0.254]",
				"avoidBuggyIPs: true")},
			{apply: lb("shop/a", "", ""), want: map[string]string{"shop/a": "10.60.1.1 Allocated: 10.60.1.1 from pool lan"}},
			{apply: lb("shop/b", "", "ipFamilies: [IPv6]"), want: map[string]string{"shop/b": "fd00:60:: Allocated*"}},
			{apply: lb("shop/c", "", ""), want: map[string]string{"shop/c": "10.60.2.7 Allocated*"}},
			{apply: lb("shop/d", "", ""), want: map[string]string{"shop/d": ` PoolExhausted: pool "lan": free IPv4 addresses: 0 of 2`}},
			{apply: lb("shop/e", "slb.k8s.ovn.org/load-balancer-ips: 10.60.0.254", ""), want: map[string]string{
				"shop/e": " AddressExcluded: *load-balancer-ips*10.60.0.254*excludes*"}},
		},
		"pool: autoAssign and disabled": {
			{apply: ips("asked", "10.60.0.1", "autoAssign: false") + ips("closed", "10.60.0.2", "disabled: true") +
				lb("shop/a", "", "") +
				lb("shop/b", "slb.k8s.ovn.org/address-pool: closed", "") + lb("shop/c", "slb.k8s.ovn.org/address-pool: asked", ""),
				want: map[string]string{
					"shop/a": " NoPool: *spec.autoAssign*", "shop/b": ` PoolDisabled: *address-pool]: pool "closed" is disabled`,
					"shop/c": "10.60.0.1 Allocated*",
					"closed": "Accepted: * | Disabled: *",
				}},
		},
		"pool: serviceAllocation by name and label": {
			{apply: ips("fenced", "10.60.0.0/24",
				"serviceAllocation: {namespaces: [shop], namespaceSelectors: [{matchLabels: {tier: gold}}], "+
					"serviceSelectors: [{matchExpressions: [{key: app, operator: NotIn, values: [test]}]}]}") +
				lb("shop/by-name", "", "") + lb("bank/by-label", "", "") + lb("cafe/unasked", "", "") +
				lb("cafe/asks", "slb.k8s.ovn.org/address-pool: fenced", ""),
				want: map[string]string{
					"shop/by-name": "10.60.0.* Allocated*", "bank/by-label": "10.60.0.* Allocated*", "cafe/unasked": " NoPool*",
					"cafe/asks": ` NotAdmitted: *pool "fenced" does not serve namespace "cafe" (spec.serviceAllocation*`,
				}},
			{kubectl: "label namespace cafe tier=gold", want: map[string]string{"cafe/unasked": "10.60.0.* Allocated*",
				"cafe/asks": "10.60.0.* Allocated*"}},
			// Assigned addresses are kept.
			{kubectl: "label namespace cafe tier-", want: map[string]string{"cafe/unasked": "10.60.0.* AddressRetained*"}},
		},
		"pool: priority": {
			{apply: ips("a-open", "10.60.0.1") + ips("b-twenty", "10.60.0.2", "serviceAllocation: {priority: 20}") +
				ips("c-ten", "10.60.0.3", "serviceAllocation: {priority: 10}")},
			{apply: lb("shop/a", "", ""), want: map[string]string{"shop/a": "10.60.0.3 *"}},
			{apply: lb("shop/b", "", ""), want: map[string]string{"shop/b": "10.60.0.2 *"}},
			{apply: lb("shop/c", "", ""), want: map[string]string{"shop/c": "10.60.0.1 *"}},
		},
		"pool: quotaPerNamespace": {
			{apply: ips("lan", "10.60.0.0/24", "quotaPerNamespace: 1") + lb("shop/a", "", ""),
				want: map[string]string{"shop/a": "10.60.0.* Allocated*"}},
			{apply: lb("shop/b", "", "") + lb("bank/a", "", ""), want: map[string]string{
				"shop/b": ` QuotaExceeded: *namespace "shop" has 1 address, and its quota is 1*`, "bank/a": "10.60.0.* Allocated*"}},
			{kubectl: "delete service -n shop a", want: map[string]string{"shop/b": "10.60.0.* Allocated*"}},
		},
		"pool: reservations survive delete and recreate": {
			{apply: ips("lan", "10.60.0.1-10.60.0.2", "reservations: [{namespace: shop, name: web, addresses: [10.60.0.1]}]") +
				lb("shop/other", "", "") +
				lb("shop/asks", "slb.k8s.ovn.org/load-balancer-ips: 10.60.0.1", ""),
				want: map[string]string{
					"shop/other": "10.60.0.2 Allocated*",
					"shop/asks":  ` AddressExcluded: *reserves it for Service shop/web (spec.reservations)`,
				}},
			{apply: lb("shop/web", "", ""), want: map[string]string{"shop/web": "10.60.0.1 Allocated*"}},
			{kubectl: "delete service -n shop web"},
			{apply: lb("shop/late", "", ""), want: map[string]string{"shop/late": " PoolExhausted*"}},
			{apply: lb("shop/web", "", ""), want: map[string]string{"shop/web": "10.60.0.1 Allocated*"}},
		},
		"pool: overlapping ones": {
			// Creation timestamps have a resolution of one second. Among pools of the same age, the name decides.
			{apply: ips("a", "10.60.0.1-10.60.0.2") + ips("b", "10.60.0.2-10.60.0.3"), want: map[string]string{
				"a": "Accepted: *", "b": `PartlyUsable: addresses: 10.60.0.2 belongs to pool "a", the older one*`}},
			{apply: lb("shop/asks", `slb.k8s.ovn.org/load-balancer-ips: 10.60.0.2`, ""), want: map[string]string{
				"shop/asks": "10.60.0.2 Allocated: 10.60.0.2 from pool a"}},
		},
		"pool: edited, shrunk and deleted": {
			{apply: ips("lan", "10.60.0.1-10.60.0.2") + ips("gone", "10.60.1.1", "autoAssign: false") +
				lb("shop/a", "slb.k8s.ovn.org/load-balancer-ips: 10.60.0.2", "") +
				lb("shop/b", "slb.k8s.ovn.org/address-pool: gone", ""),
				want: map[string]string{"shop/a": "10.60.0.2 Allocated*", "shop/b": "10.60.1.1 Allocated*"}},
			{kubectl: "annotate service -n shop a slb.k8s.ovn.org/load-balancer-ips-",
				want: map[string]string{"shop/a": "10.60.0.2 Allocated*"}},
			{kubectl: `patch ippool lan --type=merge -p={"spec":{"addresses":["10.60.0.1"]}}`, want: map[string]string{
				"shop/a": "10.60.0.2 AddressRetained: *address 10.60.0.2 is in no pool; the Service keeps it*"}},
			{kubectl: "delete ippool gone", want: map[string]string{"shop/b": `10.60.1.1 AddressRetained: *address 10.60.1.1 is in no pool; the Service keeps it*`}},
		},
		"pool: addresses that are others'": {
			{kubectl: `annotate node n3 --overwrite k8s.ovn.org/l3-gateway-config={"default":{"next-hops":["10.50.0.254"]}}`},
			// The Services come later: domains, nodes and Services are watched independently.
			{apply: ips("lan", "10.96.0.8/30 10.244.7.0/24 10.50.0.11 10.50.0.1 10.50.0.254 10.60.0.1") + `
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: lan}
spec: {physicalNetwork: physnet, ipAddressPools: [lan], subnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.1}]}`,
				want: map[string]string{"lan": reserved}},
			{apply: lb("shop/a", "", "") + lb("shop/b", "slb.k8s.ovn.org/load-balancer-ips: 10.96.0.10", ""),
				want: map[string]string{
					"shop/a": "10.60.0.1 Allocated*", "shop/b": " AddressExcluded: *10.96.0.10 is in the Service network 10.96.0.0/16",
					"lan": reserved + " | Exhausted*",
				}},
		},
	}
}
