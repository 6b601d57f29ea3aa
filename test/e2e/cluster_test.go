// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

const owner = "ovnkube-slb"

// together runs steps concurrently and returns when all have ended. Each step may fail the spec.
func together(steps ...func()) {
	GinkgoHelper()
	var running sync.WaitGroup
	var ended atomic.Int32
	for _, step := range steps {
		running.Go(func() {
			defer GinkgoRecover()
			step()
			ended.Add(1)
		})
	}
	running.Wait()
	if int(ended.Load()) < len(steps) {
		Fail("one of several steps failed") // The step's own failure is reported first.
	}
}

// fromOutside calls do concurrently for each external client, with the client's addresses.
func fromOutside(do func(from string, own []netip.Addr)) {
	GinkgoHelper()
	var steps []func()
	for from, own := range outside() {
		steps = append(steps, func() { do(from, own) })
	}
	together(steps...)
}

// ask sends one request, as [lab.Lab.Ask] does. If a node has ended unexpectedly, it stops retries.
func ask(ctx context.Context, from, network string, source uint16, target netip.AddrPort) (backend string,
	seen netip.AddrPort, err error) {
	backend, seen, err = cluster.Ask(ctx, from, network, source, target)
	for _, n := range cluster.Nodes {
		if ended := cluster.Ended(n.Name); err != nil && ended != "" {
			return "", seen, StopTrying(ended).Wrap(err)
		}
	}
	return backend, seen, err
}

// Ports of docs/examples/web.yaml.
const httpPort, echoPort = 80, 53

// kubectl runs kubectl with a manifest for `-f -`. It translates addresses of the provider segment to the segment of
// the cluster under test.
func kubectl(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	moved := make([]string, len(args))
	for i, arg := range args {
		moved[i] = here(arg)
	}
	out, err := cluster.Kubectl(ctx, here(stdin), moved...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// applyExamples applies the documented examples and removes them after the test.
func applyExamples(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "apply", "-f", examples)
	DeferCleanup(func(ctx SpecContext) { removeExamples(ctx) })
}

// removeExamples removes the examples and returns when OVN has no rows of ours and no pod ports.
func removeExamples(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "delete", "--ignore-not-found", "--wait", "-f", examples)
	awaitRemoved(ctx)
}

// awaitRemoved waits until OVN has no rows of ours and no pod ports. Pods outlive their deleted Deployment, and a later
// comparison of the OVN-Kubernetes rows would count them.
func awaitRemoved(ctx context.Context) {
	GinkgoHelper()
	Eventually(ourRows).WithContext(ctx).Should(BeEmpty())
	Eventually(func(ctx context.Context) (string, error) {
		return cluster.EachNB(ctx, "--bare", "--columns=name", "find", "Logical_Switch_Port", "external_ids:pod=true")
	}).WithContext(ctx).Should(BeEmpty(), "ports of pods")
}

func ourRows(ctx context.Context) (string, error) {
	s, err := cluster.SnapshotNB(ctx, func(_ string, row lab.Row) bool { return row.OwnedBy(owner) })
	return s.String(), err
}

func foreignRows(ctx context.Context) string {
	GinkgoHelper()
	s, err := cluster.SnapshotNB(ctx, func(_ string, row lab.Row) bool { return !row.OwnedBy(owner) })
	Expect(err).NotTo(HaveOccurred())
	return s.String()
}

// service returns a Service of namespace default.
func service(ctx context.Context, name string) (*corev1.Service, error) {
	return client.CoreV1().Services("default").Get(ctx, name, metav1.GetOptions{})
}

// condition returns a function that gets a Service's condition of the type kind, as "Status Reason: message".
func condition(name, kind string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		s, err := service(ctx, name)
		if err != nil {
			return "", err
		}
		return conditionText(s.Status.Conditions, kind), nil
	}
}

// conditionText formats a condition as "Status Reason: message". It returns "" if the condition is missing.
func conditionText(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// excludedNodes returns a function that gets the nodes excluded as gateways of a domain, as "node reason: message".
func excludedNodes(name string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var d v1alpha1.L2Domain
		err := read(ctx, "l2domain", name, &d)
		var all []string
		for _, n := range d.Status.ExcludedNodes {
			all = append(all, n.Name+" "+n.Reason+": "+n.Message)
		}
		return all, err
	}
}

// ready returns a function that gets the condition Ready of an object, as "Status Reason: message".
func ready(kind, name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var object struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		err := read(ctx, kind, name, &object)
		return conditionText(object.Status.Conditions, v1alpha1.ConditionReady), err
	}
}

// read gets a cluster-scoped object.
func read(ctx context.Context, kind, name string, into any) error {
	out, err := cluster.Kubectl(ctx, "", "get", kind, name, "-o", "json")
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// awaitAnnounced waits until a Service is announced. It returns the addresses of the Service.
func awaitAnnounced(ctx context.Context, name string) []netip.Addr {
	GinkgoHelper()
	Eventually(condition(name, v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("True "))
	s, err := service(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	var addrs []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		Expect(ingress.IPMode).To(HaveValue(Equal(corev1.LoadBalancerIPModeVIP)))
		addrs = append(addrs, netip.MustParseAddr(ingress.IP))
	}
	return addrs
}

// awaitBackends waits until the load balancer rows contain all pods of Deployment web.
func awaitBackends(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=2m")
	awaitSlots(ctx, "web", 8080, 6)
	Expect(cluster.Settle(ctx)).To(Succeed())
}

// awaitSlots waits until all load balancer rows of a Service with both families, in all zones, contain the given number
// of pods for a target port.
func awaitSlots(ctx context.Context, service string, target, pods int) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) ([]int, error) {
		out, err := cluster.EachNB(ctx, "--bare", "--columns=vips", "find", "Load_Balancer",
			"external_ids:slb.k8s.ovn.org/service=default/"+service, "protocol=tcp")
		var inRows []int
		for row := range strings.Lines(out) {
			if strings.TrimSpace(row) != "" {
				inRows = append(inRows, strings.Count(row, fmt.Sprintf(":%d", target)))
			}
		}
		return inRows, err
	}).WithContext(ctx).Should(And(Not(BeEmpty()), HaveEach(pods)), "pods in the rows of Service %s", service)
}

// startWeb applies the examples and returns the addresses of Service web once all its pods are backends.
func startWeb(ctx context.Context) []netip.Addr {
	GinkgoHelper()
	applyExamples(ctx)
	addrs := awaitAnnounced(ctx, "web")
	awaitBackends(ctx)
	return addrs
}

// startUncontestedWeb is startWeb for specs that need an address that no other host has. One may have had it in an
// earlier spec: that counts until it has not answered three probes, and a minute, and no other Service gets the address
// meanwhile.
func startUncontestedWeb(ctx context.Context) []netip.Addr {
	GinkgoHelper()
	addrs := startWeb(ctx)
	Eventually(condition("web", v1alpha1.ConditionAllocated), 2*await.Limit).WithContext(ctx).
		Should(HavePrefix("True Allocated: "))
	return addrs
}

// podNodes returns the node of each pod of Deployment web.
func podNodes(ctx context.Context) map[string]string {
	GinkgoHelper()
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	Expect(err).NotTo(HaveOccurred())
	nodes := map[string]string{}
	for _, p := range pods.Items {
		nodes[p.Name] = p.Spec.NodeName
	}
	return nodes
}

// activeGateways returns the nodes that host shards, by gateway port.
func activeGateways(ctx context.Context) map[string]string {
	GinkgoHelper()
	ports, err := cluster.GatewayPorts(ctx)
	Expect(err).NotTo(HaveOccurred())
	return ports
}
