// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// answers sends requests to a TCP and a UDP port of each address concurrently. It returns the backends by network and
// address.
func answers(ctx context.Context, from string, addrs []netip.Addr, tcp, udp uint16) map[string]string {
	type request struct {
		network string
		at      netip.AddrPort
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	got := map[string]string{}
	for _, a := range addrs {
		for _, q := range []request{{"tcp", netip.AddrPortFrom(a, tcp)}, {"udp", netip.AddrPortFrom(a, udp)}} {
			asking.Go(func() {
				backend, _, err := cluster.Ask(ctx, from, q.network, 0, q.at)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got[q.network+" "+q.at.String()] = backend
				}
			})
		}
	}
	asking.Wait()
	return got
}

// eventuallyAnswered waits until a client gets count answers. Two families and two protocols have four.
func eventuallyAnswered(ctx context.Context, from string, addrs []netip.Addr, tcp, udp uint16, count int) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) map[string]string {
		return answers(ctx, from, addrs, tcp, udp)
	}).WithContext(ctx).
		Should(HaveLen(count), "answers to %s", from)
}

var _ = Describe("loadBalancerSourceRanges", Label(smoke), func() {
	It("admit only the listed clients, and do not affect ports of another Service at the same address",
		func(ctx SpecContext) {
			addrs := startUncontestedWeb(ctx)
			kubectl(ctx, "", "annotate", "service", "web", v1alpha1.AnnotationAllowSharedIP+"=door")
			kubectl(ctx, `
apiVersion: v1
kind: Service
metadata: {name: open, annotations: {slb.k8s.ovn.org/allow-shared-ip: door}}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: web}
  ports:
    - {name: t, port: 8000, targetPort: 8080, protocol: TCP}
    - {name: u, port: 8000, targetPort: 5353, protocol: UDP}
`, "apply", "-f", "-")
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "service", "open") })
			Expect(awaitAnnounced(ctx, "open")).To(Equal(addrs))
			fromOutside(func(from string, _ []netip.Addr) { eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4) })
			restrict := func(ranges string) {
				kubectl(ctx, "", "patch", "service", "web", "--type=merge", "-p",
					fmt.Sprintf(`{"spec":{"loadBalancerSourceRanges":%s}}`, ranges))
			}

			By("admitting clients beyond the router")
			restrict(`["198.51.100.0/24","fd00:98::/64"]`)
			together(
				func() { eventuallyAnswered(ctx, "client", addrs, httpPort, echoPort, 0) },
				func() { eventuallyAnswered(ctx, "remote", addrs, httpPort, echoPort, 4) },
				func() { eventuallyAnswered(ctx, "client", addrs, 8000, 8000, 4) })

			By("admitting one client of the segment over IPv4, and none over IPv6")
			restrict(`["10.50.0.200/32"]`)
			Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).
				Should(ContainSubstring("layer 2 admits no client over IPv6"))
			together(
				func() { eventuallyAnswered(ctx, "remote", addrs, httpPort, echoPort, 0) },
				func() { eventuallyAnswered(ctx, "client", addrs, httpPort, echoPort, 2) })

			By("admitting all clients again")
			restrict("null")
			fromOutside(func(from string, _ []netip.Addr) { eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4) })
		})
})

const servingPods = `
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: named}}
spec:
  nodeName: n1
  containers:
  - {name: responder, image: x, ports: [{name: t, containerPort: 8080}, {name: u, containerPort: 8080, protocol: UDP}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: named}}
spec:
  nodeName: n2
  containers:
  - {name: responder, image: x, ports: [{name: t, containerPort: 9081}, {name: u, containerPort: 9082, protocol: UDP}]}
---
apiVersion: v1
kind: Pod
metadata: {name: three}
spec:
  nodeName: n2
  containers:
  - {name: responder, image: x, ports: [{name: t, containerPort: 8080}, {name: u, containerPort: 8080, protocol: UDP}]}
`

const hostPod = `
apiVersion: v1
kind: Pod
metadata: {name: host, labels: {app: named}}
spec:
  nodeName: n3
  hostNetwork: true
  containers:
  - {name: responder, image: x, ports: [{name: t, containerPort: 9083}, {name: u, containerPort: 9084, protocol: UDP}]}
`

// watch probes both ports of Service web from a client for a second, after it has used each path once.
func watch(ctx context.Context, from string, addrs []netip.Addr) []probe.Result {
	GinkgoHelper()
	usePaths(ctx, from, addrs)
	var specs []probe.Spec
	for _, a := range addrs {
		specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(a, httpPort),
			Interval: 10 * time.Millisecond},
			probe.Spec{Kind: probe.UDPNew, Target: netip.AddrPortFrom(a, echoPort)})
	}
	results, err := cluster.Probe(ctx, from, time.Second, specs...)
	Expect(err).NotTo(HaveOccurred())
	return results
}

// expectBackends waits until a client has been answered by exactly the named pods on both ports of each address, and
// checks that they saw the client's own address. Which backend takes a request is random.
func expectBackends(ctx context.Context, from string, addrs, own []netip.Addr, pods []string) {
	GinkgoHelper()
	answered := map[probe.Spec]map[string]int{}
	Eventually(func(ctx context.Context) map[probe.Spec]map[string]int {
		for i, r := range watch(ctx, from, addrs) {
			By(from + ": " + r.String())
			if len(r.Backends) > 0 {
				Expect(r.Clients).To(HaveLen(1), "clients that the backends saw")
				Expect(r.Clients).To(HaveKey(own[i/2].String()))
			}
			if answered[r.Spec] == nil {
				answered[r.Spec] = map[string]int{}
			}
			maps.Copy(answered[r.Spec], r.Backends)
		}
		return answered
	}).WithContext(ctx).Should(HaveEach(WithTransform(func(backends map[string]int) []string {
		return slices.Sorted(maps.Keys(backends))
	}, Equal(pods))), "backends that answered %s", from)
}

// sticksTo returns the only backend that answered. A datagram from a port that was used a minute ago belongs to the
// earlier connection.
func sticksTo(r probe.Result) string {
	GinkgoHelper()
	answers := r.Sent - r.Lost
	for backend, n := range r.Backends {
		if n == answers || r.Spec.Kind == probe.UDPNew && 10*n > 9*answers {
			return backend
		}
	}
	Fail(r.String())
	return ""
}

var _ = Describe("The traffic policies of a Service", func() {
	It("preserve the client's address and use all endpoints with Local, and keep one endpoint per client with ClientIP",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			kubectl(ctx, "", "patch", "service", "web", "--type=merge", "-p", `{"spec":{"externalTrafficPolicy":"Local"}}`)
			Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).
				Should(ContainSubstring("spec.externalTrafficPolicy: Local"))
			fromOutside(func(from string, own []netip.Addr) {
				expectBackends(ctx, from, addrs, own, slices.Sorted(maps.Keys(where)))
			})

			By("setting sessionAffinity: ClientIP")
			kubectl(ctx, "", "patch", "service", "web", "--type=merge", "-p",
				`{"spec":{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":60}}}}`)
			Eventually(func(ctx context.Context) (string, error) {
				return cluster.NB(ctx, "--bare", "--columns=selection_fields", "find", "Load_Balancer",
					"external_ids:slb.k8s.ovn.org/service=default/web", "protocol=tcp")
			}).WithContext(ctx).Should(ContainSubstring("ip_dst ip_src\n"))
			Expect(cluster.Settle(ctx)).To(Succeed())
			Expect(addrs[0].Is4()).To(BeTrue())
			Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).
				Should(ContainSubstring("spec.sessionAffinity: ClientIP has an effect over IPv6 only where"))
			at := map[netip.AddrPort]string{}
			for range 2 {
				for _, r := range watch(ctx, "client", addrs[:1]) { // This OVN can't hash IPv6 addresses.
					backend := sticksTo(r)
					Expect(at[r.Spec.Target]).To(BeElementOf("", backend), r.String())
					at[r.Spec.Target] = backend
				}
			}
		})
})

// eventuallyAnsweredAfterRepair waits until a client gets answers from all four ports of the addresses of Service web.
// If OVN-Kubernetes created load balancers for them first, ovn-northd may have put their flows into the wrong routers.
// Then the condition must be MisplacedFlow until the flows are repaired (docs/failures.md).
func eventuallyAnsweredAfterRepair(ctx context.Context, from string, addrs []netip.Addr) {
	GinkgoHelper()
	const answered, misplaced = "answered", "False MisplacedFlow: "
	state := func(ctx context.Context) (string, error) {
		if got := answers(ctx, from, addrs, httpPort, echoPort); len(got) == 4 {
			return answered, nil
		}
		return condition("web", v1alpha1.ConditionAnnounced)(ctx)
	}
	if !cluster.Network().Real() {
		eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4)
		return
	}
	// The controller checks the flows every 30 s.
	Eventually(state).WithContext(ctx).Should(Or(Equal(answered), HavePrefix(misplaced)),
		"what %s sees", from)
	if now, err := state(ctx); err == nil && now == answered {
		return
	}
	By("repairing the flows")
	Expect(cluster.RepairFlows(ctx, addrs)).To(Succeed())
	eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4)
	Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
		Should(HavePrefix("True "))
}

var _ = Describe("spec.externalIPs", func() {
	It("are announced while their pool has externalIPs, and are not allocated to another Service",
		func(ctx SpecContext) {
			startWeb(ctx)
			own := []netip.Addr{netip.MustParseAddr(here("10.50.0.149")), netip.MustParseAddr(here("fd00:50::149"))}
			kubectl(ctx, "", "patch", "service", "web", "--type=merge", "-p",
				fmt.Sprintf(`{"spec":{"externalIPs":[%q,%q]}}`, own[0], own[1]))
			Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).
				Should(ContainSubstring(here("10.50.0.149 is in no pool with externalIPs: true")))
			eventuallyAnswered(ctx, "client", own, httpPort, echoPort, 0)

			kubectl(ctx, "", "patch", "ipaddresspool", "public", "--type=merge", "-p", `{"spec":{"externalIPs":true}}`)
			Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
				Should(And(HavePrefix("True "), ContainSubstring(here("10.50.0.149")), ContainSubstring(here("fd00:50::149"))))
			fromOutside(func(from string, _ []netip.Addr) { eventuallyAnsweredAfterRepair(ctx, from, own) })
			kubectl(ctx, "", "create", "service", "loadbalancer", "late", "--tcp=80:8080")
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "service", "late") })
			kubectl(ctx, "", "annotate", "service", "late", v1alpha1.AnnotationLoadBalancerIPs+"=10.50.0.149")
			Eventually(condition("late", v1alpha1.ConditionAllocated)).WithContext(ctx).
				Should(And(ContainSubstring("AddressInUse"), ContainSubstring("default/web")))

			kubectl(ctx, "", "patch", "service", "web", "--type=json", "-p", `[{"op":"remove","path":"/spec/externalIPs"}]`)
			Eventually(condition("late", v1alpha1.ConditionAllocated)).WithContext(ctx).
				Should(And(HavePrefix("True "), ContainSubstring(here("10.50.0.149"))))
		})
})
