// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// longService is a Service. Its pods, on the pod network and on the host network, continue to run for a while after
// deletion.
const longService = `
apiVersion: v1
kind: Service
metadata: {name: long}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: long}
  ports: [{name: t, port: 80, targetPort: t, protocol: TCP}, {name: u, port: 53, targetPort: u, protocol: UDP}]
`

// preStop takes longer than the spec on any machine: the spec ends the pods.
const preStop = "lifecycle: {preStop: {sleep: {seconds: 300}}}"

// longPods returns the pods of a generation: six of a Deployment, and one host-network pod per node. Two generations
// can run at the same time. The pods of the second generation are not ready until the spec makes them ready: starting
// pods takes CPU time from forwarding, and must be over before the measurement.
func longPods(generation int) string {
	annotations := fmt.Sprintf("annotations: {%s: %q}", kubelet.ReadyAnnotation, fmt.Sprint(generation == 1))
	container := func(tcp, udp int) string {
		return fmt.Sprintf("{name: responder, image: x, %s, ports: [{name: t, containerPort: %d}, {name: u, containerPort: "+
			"%d, protocol: UDP}]}",
			preStop, tcp, udp)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: long}
spec:
  replicas: 6
  strategy: {rollingUpdate: {maxSurge: 100%%, maxUnavailable: 0}}
  selector: {matchLabels: {app: long, kind: pod}}
  template:
    metadata: {labels: {app: long, kind: pod, generation: "%d"}, %s}
    spec: {terminationGracePeriodSeconds: 310, containers: [%s]}
`, generation, annotations, container(8080, 5353))
	for _, n := range cluster.Nodes {
		fmt.Fprintf(&out, `---
apiVersion: v1
kind: Pod
metadata: {name: host-%s-%d, labels: {app: long, kind: host, generation: "%d"}, %s}
spec: {nodeName: %s, hostNetwork: true, terminationGracePeriodSeconds: 310, containers: [%s]}
`, n.Name, generation, generation, annotations, n.Name, container(9090+2*generation, 9091+2*generation))
	}
	return out.String()
}

// startLong starts the first generation and returns the addresses of the Service after each client has reached all
// pods.
func startLong(ctx context.Context) []netip.Addr {
	GinkgoHelper()
	kubectl(ctx, "", "apply", "-f", examples+"pool.yaml", "-f", examples+"l2domain.yaml")
	DeferCleanup(removeExamples)
	// A failover breaks connections to draining endpoints. The slow detection prevents a failover when a gateway
	// briefly gets no CPU time.
	kubectl(ctx, "", "patch", "l2domain", "provider", "--type=merge", "-p",
		`{"spec":{"failover":{"detectInterval":"1s","multiplier":5}}}`)
	kubectl(ctx, longService+"---"+longPods(1), "apply", "-f", "-")
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "", "delete", "--wait=false", "service/long", "deployment/long")
		kubectl(ctx, "", "delete", "pod", "-l", "app=long", "--force", "--grace-period=0")
		Eventually(longNames).WithContext(ctx).WithArguments("app=long").Should(BeEmpty())
	})
	addrs := awaitAnnounced(ctx, "long")
	awaitLong(ctx, "app=long")
	Expect(cluster.Settle(ctx)).To(Succeed())
	warmUp(ctx, addrs)
	// A packet that waits for neighbor resolution on its node router is tracked incorrectly by the userspace conntrack:
	// its flow stays lost.
	fromOutside(func(from string, _ []netip.Addr) {
		families(func(i int, network string) {
			for _, n := range cluster.Nodes {
				clientsOf(ctx, "host-"+n.Name+"-1", from, network, addrs[i])
			}
		})
	})
	return addrs
}

// longNames returns the names of the pods with a label selector.
func longNames(ctx context.Context, selector string) ([]string, error) {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return names, err
}

// running returns the number of running pods with a label selector.
func running(ctx context.Context, selector string) (int, error) {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector,
		FieldSelector: "status.phase=Running"})
	return len(pods.Items), err
}

// taking returns the number of addresses in the TCP load balancer rows: the VIPs, and the endpoints that take new
// connections.
func taking(ctx context.Context) (int, error) {
	out, err := cluster.NB(ctx, "--bare", "--columns=vips", "find", "Load_Balancer",
		"external_ids:slb.k8s.ovn.org/service=default/long",
		"protocol=tcp", "options:reject=true")
	backends := map[string]bool{}
	for field := range strings.FieldsFuncSeq(out, func(r rune) bool { return strings.ContainsRune("=, \n", r) }) {
		backends[field] = true
	}
	return len(backends), err
}

// draining returns the rows of endpoints that take no new connections.
func draining(ctx context.Context) (string, error) {
	return cluster.NB(ctx, "--bare", "--columns=vips", "find", "Load_Balancer",
		"external_ids:slb.k8s.ovn.org/service=default/long",
		"options:neighbor_responder=none")
}

// awaitLong waits until exactly the pods with a label selector take new connections.
func awaitLong(ctx context.Context, selector string) {
	GinkgoHelper()
	kubectl(ctx, "", "rollout", "status", "deployment/long", "--timeout=2m")
	kubectl(ctx, "", "wait", "--for=condition=Ready", "pod", "-l", selector, "--timeout=2m")
	Eventually(taking).WithContext(ctx).Should(Equal(2+2*9), "both VIPs, and six pods and three nodes behind each")
}

// connections returns six connections to each VIP. With two clients these are 24 over both families. The request rate
// is low, because the forwarding capacity of the lab is not under test.
func connections(addrs []netip.Addr) []probe.Spec {
	var specs []probe.Spec
	for _, vip := range addrs {
		specs = append(specs, probe.Spec{Kind: probe.TCPLong, Target: netip.AddrPortFrom(vip, httpPort), Count: 6,
			Interval: 250 * time.Millisecond})
	}
	return specs
}

// reached returns a function that gets the pods that new connections of a client reach.
func reached(addrs []netip.Addr) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var specs []probe.Spec
		for _, a := range addrs {
			specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(a, httpPort)})
		}
		results, err := cluster.Probe(ctx, "client", time.Second, specs...)
		names := map[string]bool{}
		for _, r := range results {
			for name := range r.Backends {
				names[name] = true
			}
		}
		return slices.Sorted(maps.Keys(names)), err
	}
}

// setReady sets whether the pods with a label selector are ready.
func setReady(ctx context.Context, selector string, ready bool) {
	GinkgoHelper()
	kubectl(ctx, "", "annotate", "--overwrite", "pod", "-l", selector,
		fmt.Sprintf("%s=%t", kubelet.ReadyAnnotation, ready))
}

// expectKept checks that all connections survived, and that they were to pods of both kinds.
func expectKept(results []probe.Result) {
	GinkgoHelper()
	kinds := map[string]int{}
	for _, r := range results {
		for _, f := range r.Flows {
			if r.Spec.Kind == probe.TCPLong {
				Expect(f.Broken).To(BeEmpty(), "%v to %s", r.Spec, f.Backend)
				Expect(f.Answering).To(BeTrue(), "%v to %s is answered in the end", r.Spec, f.Backend)
				kind, _, _ := strings.Cut(f.Backend, "-")
				kinds[kind]++
			}
		}
	}
	Expect(kinds).To(HaveLen(2), "pods and nodes: %v", kinds)
}

var _ = Describe("Connections to a draining endpoint", func() {
	It("survive a rollout until the preStop hooks of their pods end", func(ctx SpecContext) {
		addrs := startLong(ctx)
		old, err := longNames(ctx, "app=long")
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, longPods(2), "apply", "-f", "-")
		Eventually(running).WithContext(ctx).WithArguments("generation=2").Should(Equal(9))
		Expect(cluster.Settle(ctx)).To(Succeed())
		results := whileFlowing(ctx, connections(addrs), func() {
			setReady(ctx, "generation=2", true)
			kubectl(ctx, "", "wait", "--for=condition=Ready", "pod", "-l", "generation=2", "--timeout=2m")
			kubectl(ctx, "", "delete", "--wait=false", "pod", "-l", "kind=host,generation=1")
			awaitLong(ctx, "generation=2")
			Eventually(reached(addrs)).WithContext(ctx).Should(And(Not(BeEmpty()), HaveEach(Not(BeElementOf(old)))))
		})
		Expect(longNames(ctx, "generation=1")).To(ConsistOf(old), "the pods still run")
		expectKept(results)
		Expect(draining(ctx)).NotTo(BeEmpty())
		kubectl(ctx, "", "delete", "pod", "-l", "generation=1", "--force", "--grace-period=0")
		Eventually(draining).WithContext(ctx).Should(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It("survive while pods are not ready, even if no pod is ready", func(ctx SpecContext) {
		addrs := startLong(ctx)
		By("making all pods of the Deployment unready for a while")
		results := whileFlowing(ctx, connections(addrs), func() {
			setReady(ctx, "app=long,kind=pod", false)
			Eventually(reached(addrs)).WithContext(ctx).Should(And(Not(BeEmpty()), HaveEach(HavePrefix("host-"))))
			setReady(ctx, "app=long,kind=pod", true)
			awaitLong(ctx, "app=long")
		})
		expectKept(results)
		By("making all pods unready")
		results = whileFlowing(ctx, connections(addrs), func() {
			setReady(ctx, "app=long", false)
			refused(ctx, addrs, httpPort, echoPort)
			setReady(ctx, "app=long", true)
			awaitLong(ctx, "app=long")
		})
		expectKept(results)
		Expect(draining(ctx)).To(BeEmpty())
	})
})
