// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

// stage changes something and waits until all objects have the expected status.
type stage struct {
	apply   string
	kubectl string // a command line
	// says is the expected final output of the command, if not empty.
	says string
	// want has the expected status of each object in the format of saying, with * as wildcard. Keys are NAMESPACE/NAME
	// for Services and NAME for pools.
	want map[string]string
}

// tenants are two namespaces in addition to the common one.
const tenants = `
{apiVersion: v1, kind: Namespace, metadata: {name: bank, labels: {tier: gold}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: cafe}}
`

// addressesAsAskedFor runs each case of the tables against one controller.
func addressesAsAskedFor(t *testing.T, c *cluster) {
	c.apply(t, tenants)
	c.controller(t, nil)
	for _, table := range []map[string][]stage{poolCases(), requestCases(), ownerCases()} {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			t.Run(name, func(t *testing.T) {
				t.Cleanup(func() { c.clear(t) })
				c.stages(t, table[name])
			})
		}
	}
}

// onlyWhatIsOurs sets the flags that ignore Services without our class and annotations of MetalLB. Addresses that a
// status contains at startup are kept.
func onlyWhatIsOurs(t *testing.T, c *cluster) {
	c.apply(t, ips("lan", "10.60.0.1-10.60.0.3"))
	c.apply(t, lb("shop/older", "", "loadBalancerClass: slb.k8s.ovn.org/ovn"))
	younger := c.service(t, "younger", func(s *corev1.Service) {
		class := v1alpha1.LoadBalancerClass
		s.Spec.LoadBalancerClass = &class
	})
	mode := corev1.LoadBalancerIPModeVIP
	younger.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.60.0.1", IPMode: &mode}}
	if _, err := c.client.CoreV1().Services(ns).UpdateStatus(t.Context(), younger, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.apply(t, lb("shop/metallb", "metallb.io/loadBalancerIPs: 10.60.0.9", "loadBalancerClass: slb.k8s.ovn.org/ovn"))
	c.apply(t, lb("shop/classless", "", ""))
	c.apply(t, lb("shop/other-class", "", "loadBalancerClass: example.org/other"))
	c.controller(t, nil, func(o *slb.Options) { o.RequireClass, o.IgnoreMetalLBAnnotations = true, true })
	c.stages(t, []stage{{want: map[string]string{
		"shop/younger":     "10.60.0.1 Allocated*",
		"shop/older":       "10.60.0.* Allocated*",
		"shop/metallb":     "10.60.0.* Allocated*",
		"shop/classless":   "",
		"shop/other-class": "",
	}}})
}

// exhaustionIsReportedAndEnds frees an address of a full pool. The oldest pending Service gets it, and the status of no
// other Service is written.
func exhaustionIsReportedAndEnds(t *testing.T, c *cluster) {
	p := c.controller(t, nil)
	c.apply(t, ips("full", "10.60.0.1-10.60.0.2")+ips("other", "10.61.0.0/24", "autoAssign: false"))
	for _, name := range []string{"a", "b"} {
		c.service(t, name)
		c.addresses(t, name)
	}
	c.apply(t, lb("shop/c-served", "slb.k8s.ovn.org/address-pool: other", ""))
	c.addresses(t, "c-served")
	const full = ` PoolExhausted: pool "full": free IPv4 addresses: 0 of 2`
	for _, name := range []string{"d", "e"} {
		c.service(t, name)
		c.says(t, name, "shop/"+name, full)
		c.event(t, name, v1alpha1.EventAllocationFailed, "free IPv4 addresses: 0 of 2")
	}
	c.says(t, "the pool", "full", "Accepted: * | Exhausted: all addresses are in use: 2 IPv4, 0 IPv6")
	writes := func() [2]int { return [2]int{p.writes(t, "Service"), 0} }
	before := c.settled(t, writes)
	c.delete(t, "a")
	c.says(t, "d", "shop/d", "10.60.0.* Allocated*")
	c.event(t, "d", v1alpha1.EventIPAllocated)
	c.says(t, "e", "shop/e", full)
	if n := c.settled(t, writes)[0] - before[0]; n != 1 {
		t.Errorf("%d status writes for one freed address, want one, of d", n)
	}
}

func (c *cluster) stages(t *testing.T, stages []stage) {
	t.Helper()
	for i, s := range stages {
		if s.apply != "" {
			c.apply(t, s.apply)
		}
		if s.kubectl != "" {
			c.prints(t, fmt.Sprintf("stage %d", i+1), s.says, strings.Fields(s.kubectl)...)
		}
		if len(s.want) == 0 {
			c.poolsSeen(t)
		}
		for _, object := range slices.Sorted(maps.Keys(s.want)) {
			c.says(t, fmt.Sprintf("stage %d: %s", i+1, object), object, s.want[object])
		}
	}
}

// poolsSeen waits until the controller has observed all pools as they are: pools and Services are watched
// independently, and an address that is allocated before an edit of the pool is seen is kept.
func (c *cluster) poolsSeen(t *testing.T) {
	t.Helper()
	const generations = `jsonpath={range .items[*]}{.metadata.name} {.metadata.generation} ` +
		`{.status.conditions[?(@.type=="Accepted")].observedGeneration}{"\n"}{end}`
	got := ""
	if !poll(func() bool {
		got = c.kubectl(t, "get", "ipaddresspools", "-o", generations)
		return !slices.ContainsFunc(strings.Split(strings.TrimSpace(got), "\n"), func(line string) bool {
			words := strings.Fields(line)
			return len(words) > 0 && (len(words) < 3 || words[1] != words[2])
		})
	}) {
		t.Fatalf("pools, their generations and those observed:\n%s", got)
	}
}

// prints runs a command line until its output equals want. If want is empty, it runs the command once.
func (c *cluster) prints(t *testing.T, what, want string, args ...string) {
	t.Helper()
	got := ""
	if !poll(func() bool {
		got = c.kubectl(t, args...)
		return want == "" || got == want
	}) {
		t.Fatalf("%s: %v prints %q, want %q", what, args, got, want)
	}
}

// says waits until the status of an object matches want. On failure it reports the last status.
func (c *cluster) says(t *testing.T, what, object, want string) {
	t.Helper()
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, ".*") + "$")
	got := ""
	if !poll(func() bool {
		got = c.saying(t, object)
		return pattern.MatchString(got)
	}) {
		t.Errorf("%s has status %q, want %q", what, got, want)
		t.Fatalf("what there is:\n%s", c.kubectl(t, "get", "services,ippool,l2domain", "-A", "-o", "yaml"))
	}
}

// saying returns "ADDRESSES REASON: MESSAGE" of the condition Allocated of a Service, or "REASON: MESSAGE | REASON:
// MESSAGE" of the conditions Accepted and Ready of a pool.
func (c *cluster) saying(t *testing.T, object string) string {
	t.Helper()
	namespace, name, service := strings.Cut(object, "/")
	if !service {
		says := func(kind string) string {
			return fmt.Sprintf(`{range .status.conditions[?(@.type=="%s")]}{.reason}: {.message}{end}`, kind)
		}
		return c.kubectl(t, "get", "ippool", namespace, "-o",
			"jsonpath="+says(v1alpha1.ConditionAccepted)+" | "+says(v1alpha1.ConditionReady))
	}
	s, err := c.client.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		addrs = append(addrs, i.IP)
	}
	allocated := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated)
	if allocated == nil {
		return strings.Join(addrs, ",")
	}
	return fmt.Sprintf("%s %s: %s", strings.Join(addrs, ","), allocated.Reason, allocated.Message)
}

// ips returns a pool with addresses, separated by spaces, and further spec fields in flow style.
func ips(name, addresses string, more ...string) string {
	spec := append([]string{`addresses: ["` + strings.ReplaceAll(addresses, " ", `", "`) + `"]`}, more...)
	return fmt.Sprintf("\n---\n{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: IPAddressPool, metadata: {name: %s}, spec: "+
		"{%s}}\n", name, strings.Join(spec, ", "))
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
