// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// lb returns a Service with annotations and further spec fields, both in flow style.
func lb(key, annotations, more string) string {
	namespace, name, _ := strings.Cut(key, "/")
	if !strings.Contains(more, "ports:") {
		more = strings.TrimPrefix(more+", ports: [{port: 80}]", ", ")
	}
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: %s, annotations: {%s}}, "+
		"spec: {type: LoadBalancer, %s}}\n",
		namespace, name, annotations, more)
}

// datagrams is the EndpointSlice of Service udp: a backend on node n2, and one on node n3 that drains.
const datagrams = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: udp, labels: {kubernetes.io/service-name: udp}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: UDP}]
endpoints:
- {addresses: [10.244.2.18], nodeName: n2}
- {addresses: [10.244.3.18], nodeName: n3, conditions: {ready: false, serving: true, terminating: true}}
`

// assorted creates Services that have different rows in OVN, one that is advertised by BGP only, and one without an
// address. It returns the number of Services that OVN serves, and the number of their load balancers.
func (c *cluster) assorted(t *testing.T) (services, balancers int) {
	t.Helper()
	c.apply(t, baseObjects+"---"+far+"---"+wide+"---"+datagrams)
	c.session(t, "n1", "tor", v1alpha1.BGPEstablished)
	// Pods in the network of node n1 can be backends.
	c.kubectl(t, "annotate", "node", "n1", `k8s.ovn.org/node-masquerade-subnet={"ipv4":"169.254.169.0/29"}`)
	c.kubectl(t, "patch", "node", "n1", "--subresource=status", "--type=merge",
		`-p={"status":{"addresses":[{"type":"InternalIP","address":"10.50.0.11"}]}}`)
	t.Cleanup(func() {
		c.kubectl(t, "annotate", "node", "n1", "k8s.ovn.org/node-masquerade-subnet-")
		c.kubectl(t, "patch", "node", "n1", "--subresource=status", "--type=merge", `-p={"status":{"addresses":null}}`)
	})
	const shared, http = ", slb.k8s.ovn.org/allow-shared-ip: key", "ports: [{name: http, port: 80}]"
	for _, s := range []struct {
		name, pool, spec, backends string
		balancers                  int
	}{
		{"plain", "lan", http, "10.244.1.10 10.244.1.11", 1},
		{"dual", "lan", `ipFamilyPolicy: RequireDualStack, loadBalancerSourceRanges: ["192.0.2.0/24", "2001:db8::/32"], ` +
			http, "10.244.1.12 fd00:10:244:1::12", 2},
		{"ipv6", "lan", "ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, " + http, "fd00:10:244:1::13", 1},
		{"affinity", "wide", "sessionAffinity: ClientIP, " + http, "10.244.1.14 10.244.1.15", 1},
		{"local", "wide", "externalTrafficPolicy: Local, " + http, "10.244.1.16", 1},
		{"host", "wide", http, "10.50.0.11 10.244.1.17", 1},
		{"tcp", "wide" + shared, http, "10.244.1.18", 1},
		{"udp", "wide" + shared, "ports: [{name: http, port: 80, protocol: UDP}]", "", 2}, // one for the draining backend
		{"narrow", "narrow", http, "10.244.1.19", 1},
		{"far", "far", http, "10.244.1.20", 0},
		{"pending", "gone", http, "", 0},
	} {
		c.endpoints(t, s.name, strings.Fields(s.backends)...)
		c.apply(t, lb("shop/"+s.name, "slb.k8s.ovn.org/address-pool: "+s.pool, s.spec))
		services, balancers = services+min(s.balancers, 1), balancers+s.balancers
	}
	return services, balancers
}

// versions returns the resource versions of the objects that a controller may write, without its lease. Their keys are
// KIND NAMESPACE/NAME.
func (c *cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	var list unstructured.UnstructuredList
	text := c.kubectl(t, "get", "services,nodes,events,ipaddresspools,l2domains,bgppeers,bgpadvertisements,"+
		"bgpnodestatuses", "-A", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, o := range list.Items {
		out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
	}
	return out
}

// writes counts the status writes of a process.
const writes = "ovnkube_slb_status_writes_total"

// counter returns the sum of the series of a controller whose names begin with prefix. A counter that never counted has
// no series and not even a family.
func (c *command) counter(t *testing.T, prefix string) int {
	t.Helper()
	return total(t, c.scraped(t, "ovnkube_slb_pass_duration_seconds"), prefix)
}

// total returns the sum of the series whose names begin with prefix.
func total(t *testing.T, metrics, prefix string) int {
	t.Helper()
	sum := 0
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// standbyTakesOver replaces the leader by a standby, as in a rolling update. The standby compares everything and writes
// nothing: neither to OVN nor to the API server.
func standbyTakesOver(t *testing.T, c *cluster) {
	binary, o := c.build(t), databases(t)
	start := func(name string) *command {
		return c.command(t, binary, name, o, "--cluster-subnets=10.244.0.0/16,fd00:10:244::/48")
	}
	services, balancers := c.assorted(t)
	first := start("first")
	eventually(t, "all load balancers", func() bool { return len(o.loadBalancers(t)) == balancers })
	o.nbctl(t, "--wait=sb", "sync") // ovn-northd has written all ports
	o.claim(t, "chassis-1")
	c.allAnnounced(t, o, services+1) // and far
	eventually(t, "n1 is the first gateway of each shard", func() bool {
		first := c.field(t, "l2domains", "", "{.items[*].status.shards[*].gateways[0]}")
		return first != "" && strings.Trim(first, "n1 ") == ""
	})
	eventually(t, "the peer has a session with n1 only", func() bool {
		return c.field(t, "bgppeers", "tor", `{.status.conditions[?(@.type=="Ready")].reason}`) == v1alpha1.ReasonSessionsDown
	})
	c.settled(t, func() [2]int { return [2]int{first.counter(t, writes), o.transactions(t)} })

	second := start("second")
	eventually(t, "the second is a standby", func() bool { return second.get("/readyz") != "" })
	// The second stands still until the first has ended, with what it still had to write: its last Events, for example.
	second.signal(t, syscall.SIGSTOP)
	first.signal(t, syscall.SIGTERM)
	if err := first.end(t); err != nil {
		t.Errorf("after the stop request: %v", err)
	}
	rows, recorded, before := o.dump(t), o.transactions(t), c.versions(t)
	second.signal(t, syscall.SIGCONT)
	eventually(t, "the second has compared all Services with their rows", func() bool {
		return c.leader(t) == "second" && second.counter(t, "ovnkube_slb_ovn_service_changes_total") >= services
	})
	sent := second.counter(t, "ovnkube_slb_ovn_transactions_total")
	if recorded = o.transactions(t) - recorded; sent+recorded != 0 {
		t.Errorf("%d northbound transactions sent, %d recorded, want none", sent, recorded)
	}
	if now := o.dump(t); now != rows {
		t.Errorf("northbound rows before - and after +:\n%s", cmp.Diff(stripped(rows), stripped(now)))
	}
	if n := second.counter(t, writes); n != 0 {
		t.Errorf("%d status writes, want none", n)
	}
	if diff := cmp.Diff(before, c.versions(t)); diff != "" {
		t.Errorf("versions of objects before - and after +:\n%s", diff)
	}
}
