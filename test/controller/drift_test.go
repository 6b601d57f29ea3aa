// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// lone is a dual-stack domain with one shard.
const lone = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: ["10.50.0.100-10.50.0.149", "fd00:50::100-fd00:50::1ff"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: lan}
spec:
  physicalNetwork: physnet
  ipAddressPools: [lan]
  subnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.1}, {cidr: "fd00:50::/64", gateway: "fd00:50::1"}]
  gateways: {shards: 1}
`

// lookalikes creates rows of other owners with names, parents, numbers or ids like ours.
func lookalikes(t *testing.T, o *ovn) {
	t.Helper()
	const balancer = "slb-shop/web-10.50.0.121-tcp"
	for _, command := range [][]string{
		{"lr-add", "slb-lan-9"},
		{"lr-add", "slbnode-n9"},
		{"ls-add", "slb-wan", "--", "lsp-add", "slb-wan", "slb-wan-localnet"},
		{"lb-add", balancer, "10.50.0.121:80", "10.244.1.10:8080", "--", "lr-lb-add", "slb-lan-9", balancer},
		{"lsp-add", "join", "join-slb-lan-9"},
		{"ha-chassis-group-add", "slb-lan-9", "--", "ha-chassis-group-add-chassis", "slb-lan-9", "chassis-1", "100"},
		{"lr-policy-add", "ovn_cluster_router", "700", "ip4.src == 10.244.1.77", "reroute", "100.64.0.2"},
		{"lr-route-add", "ovn_cluster_router", "240.9.0.0/16", "100.64.0.2"},
		{"create", "Address_Set", "name=slb_x", "addresses=10.244.1.77"},
		// A row of a fork: all ids except the owner's equal those of a row of ours.
		{"create", "Load_Balancer", "name=fork", `external_ids={"k8s.ovn.org/owner-controller"="ovnkube-slb-fork",` +
			`"k8s.ovn.org/owner-type"=Service,"slb.k8s.ovn.org/service"="shop/web","slb.k8s.ovn.org/holder"="slb-lan-0",` +
			`"k8s.ovn.org/primary-id"="ovnkube-slb:Service:shop/web:10.50.0.120:tcp"}`},
	} {
		o.nbctl(t, command...)
	}
}

// Changes by others to our rows are reverted. Rows that only look like ours are left alone.
func rowsAreRepaired(t *testing.T, c *cluster) {
	o := databases(t)
	lookalikes(t, o)
	bare := o.dump(t)
	c.controller(t, o)
	c.apply(t, lone)
	c.endpoints(t, "web", "10.244.1.10", "fd00:10:244:1::10")
	c.service(t, "web", func(s *corev1.Service) {
		policy := corev1.IPFamilyPolicyRequireDualStack
		s.Spec.IPFamilyPolicy, s.Spec.LoadBalancerSourceRanges = &policy, []string{"192.0.2.0/24"}
		s.Annotations = map[string]string{v1alpha1.AnnotationLoadBalancerIPs: "10.50.0.120,fd00:50::120"}
	})
	eventually(t, "both are in OVN", func() bool {
		return slices.Equal(o.backends(t, "10.50.0.120:80"), []string{"10.244.1.10 8080"}) &&
			slices.Equal(o.backends(t, "[fd00:50::120]:80"), []string{"fd00:10:244:1::10 8080"})
	})
	c.settled(t, func() [2]int { return [2]int{o.transactions(t)} })
	want := stripped(o.dump(t))

	const balancer, port = "slb-shop/web-10.50.0.120-tcp", "slb-lan-0-ext"
	for _, harm := range [][]string{
		// Rows of the Service.
		{"lb-del", balancer},
		{"lr-lb-del", "slb-lan-0", balancer},
		{"set", "Load_Balancer", balancer, `vips:"10.50.0.120:80"="10.244.9.9:80"`},
		{"set", "Load_Balancer", balancer, "protocol=udp"},
		{"clear", "Load_Balancer", balancer, "selection_fields"},
		{"remove", "Load_Balancer", balancer, "options", "reject"},
		{"acl-del", "slb-lan"},
		{"set", "ACL", "?Service:shop/web:", `match="ip4"`},
		// Rows of the domain.
		{"ls-del", "slb-lan"},
		{"lsp-del", "slb-lan-localnet"},
		{"lsp-set-options", "slb-lan-localnet", "network_name=elsewhere"},
		{"set", "Logical_Switch_Port", "slb-lan-localnet", "tag=9"},
		// Rows of the shard.
		{"lr-del", "slb-lan-0"},
		{"set", "Logical_Router", "slb-lan-0", "options:mcast_relay=true"},
		{"lrp-del", port},
		{"set", "Logical_Router_Port", port, `mac="0a:58:00:00:00:01"`},
		{"set", "Logical_Router_Port", port, `networks="10.50.0.9/24"`},
		{"clear", "Logical_Router_Port", port, "ha_chassis_group"},
		{"lsp-del", "ext-slb-lan-0"},
		{"remove", "Logical_Switch_Port", "ext-slb-lan-0", "options", "exclude-lb-vips-from-garp"},
		{"lsp-del", "join-slb-lan-0"},
		{"clear", "Logical_Router_Port", port, "ha_chassis_group", "--", "ha-chassis-group-del", "slb-lan-0"},
		{"ha-chassis-group-remove-chassis", "slb-lan-0", "chassis-1"},
		{"ha-chassis-group-add-chassis", "slb-lan-0", "chassis-1", "7"},
		{"destroy", "BFD", "?Shard:lan/0"},
		{"set", "BFD", "?Shard:lan/0", "min_tx=1000"},
		{"lr-route-del", "slb-lan-0"},
		{"set", "Logical_Router_Static_Route", "?Shard:lan/0:route:0.0.0.0/0", "nexthop=10.50.0.2"},
		{"remove", "Logical_Router", "ovn_cluster_router", "policies", "?Logical_Router_Policy Shard:lan/0:IPv4"},
		{"set", "Logical_Router_Policy", "?Shard:lan/0:IPv4", "priority=701"},
		{"remove", "Logical_Router", "slb-lan-0", "policies", "?Logical_Router_Policy Shard:lan/0:forward:drop"},
		{"set", "Logical_Router_Policy", "?Shard:lan/0:forward:allow", "action=drop"},
		// Rows of all shards.
		{"destroy", "Address_Set", "slb_revision"},
		{"set", "Address_Set", "slb_revision", `addresses=["::1"]`},
		{"--policy=src-ip", "lr-route-del", "ovn_cluster_router", "240.0.0.0/4"},
		{"set", "Logical_Router_Static_Route", "?Aliases:", "policy=dst-ip"},
		// Rows of the node.
		{"lr-del", "slbnode-n1"},
		{"set", "Logical_Router", "slbnode-n1", "options:chassis=chassis-3"},
		{"lrp-del", "slbnode-n1-join"},
		{"lsp-del", "join-slbnode-n1"},
		{"lb-del", "slbnode-n1-tcp"},
		{"clear", "Load_Balancer", "slbnode-n1-tcp", "vips"},
		{"lr-lb-del", "slbnode-n1"},
		{"lr-route-del", "slbnode-n1"},
		{"set", "Logical_Router_Static_Route", "?Node:n1:aliases:", "nexthop=100.64.0.2"},
		{"remove", "Logical_Router", "ovn_cluster_router", "policies", "?Logical_Router_Policy Node:n1:"},
		{"set", "Logical_Router_Policy", "?Node:n1:", "action=drop"},
	} {
		for i, word := range harm {
			if id, ok := strings.CutPrefix(word, "?"); ok {
				table := harm[1]
				if other, rest, ok := strings.Cut(id, " "); ok {
					table, id = other, rest
				}
				harm[i] = o.ourRow(t, table, id)
			}
		}
		written := o.transactions(t)
		o.nbctl(t, harm...)
		now := ""
		defer func() {
			if t.Failed() && now != want {
				t.Logf("%v; want - and got +:\n%s", harm, cmp.Diff(want, now))
			}
		}()
		eventually(t, strings.Join(harm, " ")+" is undone", func() bool {
			now = stripped(o.dump(t))
			return now == want && o.transactions(t) > written+1
		})
	}

	c.delete(t, "web")
	c.deleteAll(t, "l2domains")
	left := ""
	defer func() {
		if t.Failed() && left != bare {
			t.Logf("rows of others - and left +:\n%s", cmp.Diff(bare, left))
		}
	}()
	eventually(t, "only the rows of others are left, as they were", func() bool {
		left = o.dump(t)
		return left == bare
	})
}

// ourRow returns the UUID of our row whose primary id has the prefix id.
func (o *ovn) ourRow(t *testing.T, table, id string) string {
	t.Helper()
	for line := range strings.Lines(o.nbctl(t, "--format=csv", "--no-headings", "--data=bare",
		"--columns=_uuid,external_ids", "list", table)) {
		if uuid, ids, _ := strings.Cut(line, ","); strings.Contains(ids, "k8s.ovn.org/primary-id=ovnkube-slb:"+id) {
			return uuid
		}
	}
	t.Fatalf("no %s of ours begins with %s", table, id)
	return ""
}

// stripped returns a dump without the values that change when a row is recreated.
func stripped(dump string) string {
	life := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|` +
		`\["::[0-9a-f]+"\]`) // the last one numbers transactions
	lines := strings.Split(life.ReplaceAllString(dump, ""), "\n")
	for i := range lines {
		lines[i] = strings.Trim(strings.Join(strings.Fields(lines[i]), " "), "- ") // rulers are as long as the longest cell
	}
	slices.Sort(lines)
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Trim(line, "- ") == "" }), "\n")
}
