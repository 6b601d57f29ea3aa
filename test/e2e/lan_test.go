// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// On OVN-Kubernetes' own bridge, the flow for address resolution requests to a VIP has a list of ports. The list is
// from the time when OVN-Kubernetes observed the address in a status.
var _ = Describe("A segment behind br-ex", func() {
	BeforeEach(func() {
		if !onLAN() {
			Skip("the segment has a bridge of its own")
		}
	})

	// reached waits until the addresses are announced and all paths to them work.
	reached := func(ctx context.Context) {
		GinkgoHelper()
		addrs := awaitAnnounced(ctx, "web")
		fromOutside(func(from string, _ []netip.Addr) {
			Eventually(func(ctx context.Context) map[string]string {
				return answers(ctx, from, addrs, httpPort, echoPort)
			}).WithContext(ctx).
				Should(HaveLen(4), "answers to %s once the status said that the addresses are announced", from)
		})
	}
	// awaitNoStaleFlow waits until no gateway has a stale flow. An ovnkube that lost its connection to the API server in
	// an earlier spec may receive no events for most of a minute.
	awaitNoStaleFlow := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
	}
	// carriedBy moves all addresses to a node by draining the other nodes.
	carriedBy := func(ctx context.Context, node string) {
		GinkgoHelper()
		for _, n := range cluster.Nodes {
			if n.Name == node {
				kubectl(ctx, "", "annotate", "node", n.Name, v1alpha1.AnnotationDrain+"-")
			} else {
				kubectl(ctx, "", "annotate", "--overwrite", "node", n.Name, v1alpha1.AnnotationDrain+"=test")
			}
		}
		Eventually(actives).WithContext(ctx).Should(Equal([]string{node}))
	}
	undrained := func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, "", "annotate", "nodes", "--all", v1alpha1.AnnotationDrain+"-")
	}

	It("accepts a gateway that joins after the addresses are announced, and each gateway receives requests",
		func(ctx SpecContext) {
			DeferCleanup(undrained)
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "label", "nodes", "--all", "segment-") })
			kubectl(ctx, "", "label", "node", "n1", "n2", "segment=here")
			kubectl(ctx, "", "apply", "-f", examples+"l2domain.yaml")
			kubectl(ctx, "", "patch", "l2domain", "provider", "--type=merge", "-p",
				`{"spec":{"nodeSelectors":[{"matchLabels":{"segment":"here"}}]}}`)
			DeferCleanup(removeExamples)
			kubectl(ctx, "", "apply", "-f", examples+"pool.yaml", "-f", examples+"web.yaml")
			reached(ctx)
			kubectl(ctx, "", "label", "node", "n3", "segment=here")
			Eventually(eligible).WithContext(ctx).Should(BeEquivalentTo(3))
			awaitNoStaleFlow(ctx)
			for _, n := range cluster.Nodes {
				By(n.Name)
				carriedBy(ctx, n.Name)
				reached(ctx)
			}
		})

	// The spec does not check connections: ovn-northd from 25.09.1 to at least 26.03.2 confuses routers if our load
	// balancers are created after those of OVN-Kubernetes for the same address (docs/failures.md). Neighbor
	// resolution does not depend on it.
	It("answers for the addresses in statuses after its L2Domain is deleted and recreated", func(ctx SpecContext) {
		DeferCleanup(undrained)
		addrs := startWeb(ctx)
		kubectl(ctx, "", "delete", "--wait", "-f", examples+"l2domain.yaml")
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("False NoDomain: "))
		Eventually(ourRows).WithContext(ctx).Should(BeEmpty())
		kubectl(ctx, "", "apply", "-f", examples+"l2domain.yaml")
		answered := func() {
			GinkgoHelper()
			Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
			Eventually(func(ctx context.Context) []netip.Addr { return neighbours(ctx, "client", addrs) }).WithContext(ctx).
				Should(ConsistOf(addrs))
		}
		answered()
		awaitNoStaleFlow(ctx)
		for _, n := range cluster.Nodes {
			By(n.Name)
			carriedBy(ctx, n.Name)
			answered()
		}
	})

	// OVN-Kubernetes may keep the flow of a deleted Service, and only a restart of ovnkube-node removes it (see
	// [lab.Lab.RemoveOrphanedFlows]). Here a flow of the test takes its place, and ovnkube does not run meanwhile: it
	// would remove the flow.
	It("leaves a gateway with a stale flow that stays, and reports it while all have one, until ovnkube restarts",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			port, first := activeGateway(ctx)
			running := true
			DeferCleanup(func(ctx SpecContext) {
				if !running {
					Expect(cluster.RestartOVNKube(ctx)).To(Succeed())
				}
			})
			Expect(cluster.KillOVNKube()).To(Succeed())
			running = false

			Expect(cluster.KeepRequests(ctx, first, addrs[0])).To(Succeed())
			awaitMove(ctx, port, first)
			Eventually(excludedNodes("provider")).WithContext(ctx).Should(HaveExactElements(And(HavePrefix(first+" Faulty: "),
				ContainSubstring("stale flows of OVN-Kubernetes on bridge br-ex"), ContainSubstring(addrs[0].String()))))
			Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("True Announced: "))
			Expect(neighbours(ctx, "client", addrs)).To(ConsistOf(addrs))

			By("adding such a flow on the other gateways")
			for _, n := range cluster.Nodes {
				Expect(cluster.KeepRequests(ctx, n.Name, addrs[0])).To(Succeed())
			}
			Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(And(
				HavePrefix("False StaleFlow: "), ContainSubstring(addrs[0].String()), ContainSubstring("restart ovnkube-node")))

			By("restarting ovnkube")
			Expect(cluster.RestartOVNKube(ctx)).To(Succeed())
			running = true
			awaitNoStaleFlow(ctx)
			reached(ctx)
		})

	It("reports that policy Local is not served by a gateway with an endpoint on its own network", func(ctx SpecContext) {
		var pods []string
		for _, n := range cluster.Nodes {
			pods = append(pods, mixedPod("host-"+n.Name, n.Name, true), mixedPod("pod-"+n.Name, n.Name, false))
		}
		addrs := startMixed(ctx, pods...)
		fromOutside(func(from string, _ []netip.Addr) { eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4) })
		kubectl(ctx, "", "patch", "service", "mixed", "--type=merge", "-p", `{"spec":{"externalTrafficPolicy":"Local"}}`)
		Eventually(condition("mixed", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(And(
			HavePrefix("False Unsupported: "), ContainSubstring("spec.externalTrafficPolicy: Local with endpoint")))
		kubectl(ctx, "", "patch", "service", "mixed", "--type=merge", "-p", `{"spec":{"externalTrafficPolicy":"Cluster"}}`)
		awaitAnnounced(ctx, "mixed")
		fromOutside(func(from string, _ []netip.Addr) { eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4) })
	})

	It("drops packets that a switch floods to a gateway that is not the active one", func(ctx SpecContext) {
		if n := cluster.Network(); n.Gateway != lab.SharedGateway || n.Zones() {
			Skip("there OVN itself accepts packets to a shard on the active gateway only")
		}
		startWeb(ctx)
		ports := activeGateways(ctx)
		Expect(ports).To(HaveLen(1))
		for port, active := range ports {
			mac, err := cluster.NB(ctx, "--bare", "--columns=mac", "find", "Logical_Router_Port", "name="+port)
			Expect(err).NotTo(HaveOccurred())
			for _, vip := range awaitAnnounced(ctx, "web") {
				packet := fmt.Sprintf("tcp,nw_src=172.18.0.99,nw_dst=%s,nw_ttl=64", vip)
				if vip.Is6() {
					packet = fmt.Sprintf("tcp6,ipv6_src=fd00:18::99,ipv6_dst=%s,nw_ttl=64", vip)
				}
				for _, n := range cluster.Nodes {
					trace, err := cluster.TraceFromLAN(ctx, n.Name, fmt.Sprintf("%s,dl_dst=%s,tcp_src=40000,tcp_dst=%d", packet,
						strings.TrimSpace(mac), httpPort))
					Expect(err).NotTo(HaveOccurred())
					if "chassis-"+n.Name == active {
						Expect(trace).To(ContainSubstring("ct("), "%s, the active gateway", n.Name)
					} else {
						Expect(trace).NotTo(ContainSubstring("ct("), "%s, which is not active", n.Name)
						Expect(strings.TrimSpace(trace)).To(HaveSuffix("Datapath actions: drop"), "%s, which is not active", n.Name)
					}
				}
			}
		}
	})

	It("reports that it needs guards, and announces no address without them", func(ctx SpecContext) {
		if cluster.Network().Zones() {
			Skip("guards and agents are one process, and without agents segments are refused")
		}
		Expect(cluster.KillGuards()).To(Succeed())
		again := false
		DeferCleanup(func(ctx SpecContext) {
			if !again {
				Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
			}
		})
		kubectl(ctx, "", "delete", "leases", "--all", "-n", v1alpha1.GuardsNamespace)
		applyExamples(ctx)
		Eventually(ready("l2domain", "provider")).WithContext(ctx).Should(And(HavePrefix("False NoGateway: "),
			ContainSubstring("no guard")))
		Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).
			Should(And(HavePrefix("False DomainNotReady: "), ContainSubstring("no guard")))
		s, err := service(ctx, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Status.LoadBalancer.Ingress).To(BeEmpty())
		Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
		again = true
		reached(ctx)
	})
})

// eligible returns the number of nodes that may be gateways of the domain.
func eligible(ctx context.Context) (int32, error) {
	var d v1alpha1.L2Domain
	err := read(ctx, "l2domain", "provider", &d)
	return d.Status.EligibleNodes, err
}
