// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// earlierVersion is the commit of an earlier version. Packages were split and messages reworded after it.
const earlierVersion = "ecfaac4667e4274522d0726b6f0c31f1cd9cfe51"

// buildEarlier builds the command of the earlier version from the history of this repository.
func buildEarlier(t *testing.T) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "git", "cat-file", "-e", earlierVersion+"^{commit}").
		CombinedOutput(); err != nil {
		t.Skipf("git can't read commit %s, the earlier version (a shallow clone does not have it): %v\n%s", earlierVersion,
			err, out)
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "source.tar"), filepath.Join(dir, "ovnkube-slb")
	run(t, "git", "-C", "../..", "archive", "--output="+source, earlierVersion)
	run(t, "tar", "-x", "-f", source, "-C", dir)
	// With -trimpath, the next test finds the packages in the build cache although its directory is another one.
	run(t, "go", "build", "-C", dir, "-trimpath", "-buildvcs=false", "-o", binary, "./go-controller/cmd/ovnkube-slb")
	return binary
}

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
	// No node is excluded: the earlier version has another name for that field of statuses.
	unlimited := strings.Replace(wide, "gateways: {max: 1, shards: 1}", "gateways: {shards: 1}", 1)
	c.apply(t, baseObjects+"---"+far+"---"+unlimited+"---"+datagrams)
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

// object is a state of an API object.
type object struct {
	version string
	content string // without metadata that changes with each write, and without messages
	// messages has one line for each message of a condition or of a node that is not a gateway, one for the mode, and one
	// for each shard's count of addresses.
	messages []string
}

// objects returns the objects that a controller may write, without its lease. Their keys are KIND NAMESPACE/NAME.
func (c *cluster) objects(t *testing.T) map[string]object {
	t.Helper()
	var list unstructured.UnstructuredList
	text := c.kubectl(t, "get", "services,nodes,events,ipaddresspools,l2domains,bgppeers,bgpadvertisements,"+
		"bgpnodestatuses", "-A", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	message := regexp.MustCompile(`"message": ".*"`)
	// The earlier version counts an address that Services share once for each of them.
	count := regexp.MustCompile(`"addresses": \d+`)
	out := map[string]object{}
	for _, o := range list.Items {
		version := o.GetResourceVersion()
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		// The earlier version does not write these fields.
		mode, _, _ := unstructured.NestedString(o.Object, "status", "mode")
		modeMessage, _, _ := unstructured.NestedString(o.Object, "status", "modeMessage")
		unstructured.RemoveNestedField(o.Object, "status", "mode")
		unstructured.RemoveNestedField(o.Object, "status", "modeMessage")
		content, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		messages := append(message.FindAllString(string(content), -1), mode+": "+modeMessage)
		messages = append(messages, count.FindAllString(string(content), -1)...)
		out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = object{version,
			count.ReplaceAllString(message.ReplaceAllString(string(content), ""), ""), messages}
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

// messagesOnly checks that nothing but messages differs between two states of the objects, and that the process did
// not send more status writes than that takes. Several messages of an object may be written one after the other.
func (c *command) messagesOnly(t *testing.T, before, after map[string]object) {
	t.Helper()
	least, most := map[string]int{}, map[string]int{} // status writes by kind
	for key, is := range after {
		was, reworded := before[key], 0
		if diff := cmp.Diff(was.content, is.content); diff != "" {
			t.Errorf("%s before - and after +:\n%s", key, diff)
			continue
		}
		for i, m := range is.messages {
			if m != was.messages[i] {
				reworded++
			}
		}
		if (was.version != is.version) != (reworded > 0) {
			t.Errorf("%s: version %s and then %s, with %d other messages", key, was.version, is.version, reworded)
		}
		kind, _, _ := strings.Cut(key, " ")
		least[kind], most[kind] = least[kind]+min(reworded, 1), most[kind]+reworded
	}
	if len(before) != len(after) {
		t.Errorf("%d objects, and then %d", len(before), len(after))
	}
	for kind := range most {
		if n := c.counter(t, writes+`{kind="`+kind+`"`); n < least[kind] || n > most[kind] {
			t.Errorf("%d status writes to kind %s, want %d to %d", n, kind, least[kind], most[kind])
		}
	}
}

// versionsTakeTurns replaces a controller of the earlier version by one of this version, and the other way around. Each
// is a standby until the one before ends, as in a rolling update. The northbound database stays as it is, byte by byte,
// and of the API objects only messages that the versions word differently are written.
func versionsTakeTurns(t *testing.T, c *cluster) {
	earlier, this, o := buildEarlier(t), c.build(t), databases(t)
	start := func(binary, name string) *command {
		return c.command(t, binary, name, o, "--cluster-subnets=10.244.0.0/16,fd00:10:244::/48")
	}
	services, balancers := c.assorted(t)
	last := start(earlier, "earlier")
	eventually(t, "all load balancers", func() bool { return len(o.loadBalancers(t)) == balancers })
	o.nbctl(t, "--wait=sb", "sync") // ovn-northd has written all ports
	o.claim(t, "chassis-1")
	c.allAnnounced(t, o, services+1) // and far
	eventually(t, "n1 is the first gateway of each shard", func() bool {
		first := c.kubectl(t, "get", "l2domains", "-o", "jsonpath={.items[*].status.shards[*].gateways[0]}")
		return strings.Trim(first, "n1 ") == ""
	})
	counts := func() [2]int { return [2]int{last.counter(t, writes), o.transactions(t)} }
	c.settled(t, counts)

	for _, to := range []struct{ name, binary string }{{"this", this}, {"earlier-again", earlier}} {
		rows, recorded, before := o.dump(t), o.transactions(t), c.objects(t)
		next := start(to.binary, to.name)
		eventually(t, to.name+" is a standby", func() bool { return next.get("/readyz") != "" })
		last.signal(t, syscall.SIGTERM)
		if err := last.end(t); err != nil {
			t.Errorf("after the stop request: %v", err)
		}
		last = next
		eventually(t, to.name+" has compared all Services with their rows", func() bool {
			return c.leader(t) == to.name && next.counter(t, "ovnkube_slb_ovn_service_changes_total") >= services
		})
		c.settled(t, counts)
		sent := next.counter(t, "ovnkube_slb_ovn_transactions_total")
		if recorded = o.transactions(t) - recorded; sent+recorded != 0 {
			t.Errorf("%s: %d northbound transactions sent, %d recorded, want none", to.name, sent, recorded)
		}
		if now := o.dump(t); now != rows {
			t.Errorf("%s: northbound rows before - and after +:\n%s", to.name, cmp.Diff(stripped(rows), stripped(now)))
		}
		next.messagesOnly(t, before, c.objects(t))
	}
}
