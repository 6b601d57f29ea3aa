// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// publishedGateway returns the first gateway of the only shard in use in the published order.
func publishedGateway(ctx context.Context) (string, error) {
	var domain v1alpha1.L2Domain
	if err := read(ctx, "l2domain", "provider", &domain); err != nil || len(domain.Status.Shards) != 1 {
		return "", err
	}
	return domain.Status.Shards[0].Gateways[0], nil
}

var _ = Describe("A segment in a cluster with interconnect", func() {
	BeforeEach(func() {
		if !cluster.Network().Zones() {
			Skip("one database configures all nodes")
		}
	})

	// l2domain returns a field of an L2Domain.
	l2domain := func(name, path string) func(context.Context) string {
		return func(ctx context.Context) string {
			return kubectl(ctx, "", "get", "l2domain", name, "-o", "jsonpath="+path)
		}
	}

	// withoutAgents kills the agents and removes their reports, as in a cluster that never had agents, and starts agents
	// again after the test. A controller that has read reports remembers them, so it is restarted.
	withoutAgents := func(ctx SpecContext) {
		GinkgoHelper()
		Expect(cluster.KillGuards()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.StartGuards(ctx, controller)).To(Succeed()) })
		Expect(cluster.StopController(ctx)).To(Succeed())
		kubectl(ctx, "", "delete", "leases", "--all", "-n", v1alpha1.GuardsNamespace)
		Expect(cluster.StartController(ctx, controller)).To(Succeed())
	}

	It("is refused without agents, with instructions in the message, and nothing is written", func(ctx SpecContext) {
		withoutAgents(ctx)
		applyExamples(ctx)
		refused := And(ContainSubstring("interconnect"), ContainSubstring("ovnkube-slb node --enable-l2"),
			ContainSubstring("BGPAdvertisement"))
		Eventually(ready("l2domain", "provider")).WithContext(ctx).Should(And(HavePrefix("False Unsupported: "), refused))
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
			Should(And(HavePrefix("False Unsupported: "), refused))
		Eventually(ready("ippool", "public")).WithContext(ctx).Should(And(HavePrefix("False Unsupported: "), refused))
		Expect(excludedNodes("provider")(ctx)).To(BeEmpty())
		Expect(ourRows(ctx)).To(BeEmpty())
	})

	// As when OVN-Kubernetes is moved back to central mode: a controller with that database would serve, and gateways of
	// both would answer. Nodes that exist in the API only make up the majority.
	It("is emptied while most nodes are in one zone, and then serves the same addresses again", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		Eventually(l2domain("provider", "{.status.mode}")).WithContext(ctx).Should(Equal("Interconnect"))
		for i := range len(cluster.Nodes) + 1 {
			name := fmt.Sprintf("moved-%d", i)
			kubectl(ctx, fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s, annotations: "+
				"{k8s.ovn.org/node-chassis-id: %s, k8s.ovn.org/zone-name: global}}}", name, name), "apply", "-f", "-")
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "node", name, "--ignore-not-found") })
		}
		Eventually(ready("l2domain", "provider")).WithContext(ctx).Should(And(HavePrefix("False Unsupported: "),
			ContainSubstring(`in zone "global"`)))
		Eventually(ourRows).WithContext(ctx).Should(BeEmpty())
		Eventually(l2domain("provider", "{.status.mode}")).WithContext(ctx).Should(BeEmpty())
		for i := range len(cluster.Nodes) + 1 {
			kubectl(ctx, "", "delete", "node", fmt.Sprintf("moved-%d", i))
		}
		Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
		warmUp(ctx, addrs)
	})

	It("keeps forwarding and fails over without API server, controller, agents and the databases of its gateway's zone",
		Label(smoke), func(ctx SpecContext) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			port, victim := activeGateway(ctx)
			var startControlPlane func(context.Context) error
			DeferCleanup(func(ctx SpecContext) {
				if startControlPlane != nil {
					Expect(startControlPlane(ctx)).To(Succeed())
				}
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				Expect(cluster.StopController(ctx)).To(Succeed())
				Expect(cluster.StartController(ctx, controller)).To(Succeed())
				Expect(cluster.KillGuards()).To(Succeed())
				Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
				Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
				Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
				// Clients of the API server retry after up to a minute. Three more pods need OVN-Kubernetes and the kubelet of
				// each node.
				kubectl(ctx, "", "scale", "deployment/web", "--replicas=9")
				kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=2m")
				awaitSlots(ctx, "web", 8080, 9)
			})
			servedWhile(ctx, addrs, where, "none", func() {
				Expect(cluster.StopController(ctx)).To(Succeed())
				var err error
				startControlPlane, err = cluster.StopControlPlane(ctx)
				Expect(err).NotTo(HaveOccurred())
				Expect(cluster.KillGuards()).To(Succeed())
				for _, daemon := range []string{lab.Northd, lab.NorthboundDB, lab.SouthboundDB} {
					Expect(cluster.KillDaemon(victim, daemon)).To(Succeed())
				}
			})
			failsOver(ctx, addrs, where, port, victim)
		})

	// ovn-controller claims nothing while BFD to all other members of the HA chassis group is down. With two gateways the
	// survivor therefore depends on the witnesses among the other nodes (internal/ovn/rows/zone.go).
	It("fails over between two gateways", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		kubectl(ctx, "", "patch", "l2domain", "provider", "--type=merge", `-p={"spec":{"gateways":{"max":2}}}`)
		var domain v1alpha1.L2Domain
		Eventually(func(ctx context.Context) ([]string, error) {
			err := read(ctx, "l2domain", "provider", &domain)
			if len(domain.Status.Shards) != 1 {
				return nil, err
			}
			return domain.Status.Shards[0].Gateways, err
		}).WithContext(ctx).Should(HaveLen(2))
		warmUp(ctx, addrs)
		port, victim := activeGateway(ctx)
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.Restore(ctx, victim)).To(Succeed()) })
		failsOver(ctx, addrs, where, port, victim)
		_, heir := activeGateway(ctx)
		Expect(domain.Status.Shards[0].Gateways).To(ContainElement(heir))
	})

	// The interval of the BFD frames of a shard is 300 ms, and 10 or 11 ms at the gateway that a planned move goes to
	// (internal/ovn/rows/router.go). Only the databases of gateways have the row.
	It("moves a shard of a gateway that drains with frequent frames of the new gateway, which end afterwards",
		func(ctx SpecContext) {
			intervals := func(ctx context.Context) ([]string, error) {
				out, err := cluster.EachNB(ctx, "--bare", "--columns=min_tx", "list", "BFD")
				return slices.Sorted(slices.Values(strings.Fields(out))), err
			}
			usual := []string{"300", "300", "300"}
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			port, leaving := activeGateway(ctx)
			Eventually(intervals).WithContext(ctx).Should(Equal(usual), "no move is planned")
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.Undrain(ctx, leaving)).To(Succeed()) })
			servedWhile(ctx, addrs, where, "none", func() {
				Expect(cluster.Drain(ctx, leaving)).To(Succeed())
				Eventually(intervals).WithContext(ctx).Should(Equal([]string{"11", "300", "300"}), "claimed")
				awaitMove(ctx, port, leaving)
				Eventually(intervals).WithContext(ctx).Should(Equal(usual), "the claim has settled")
			})
		})

	// The others leave a shard to its first gateway as long as its chassis answers BFD, whether or not its zone knows.
	It("moves a shard away again from a gateway whose agent is dead and that does not claim it",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			warmUp(ctx, addrs)
			port, leaving := activeGateway(ctx)
			var others []string
			for _, n := range cluster.Nodes {
				if n.Name != leaving {
					others = append(others, n.Name)
				}
			}
			dead := others[0]
			DeferCleanup(func(ctx SpecContext) {
				Expect(cluster.StartGuard(ctx, controller, dead)).To(Succeed())
				for _, n := range cluster.Nodes {
					Expect(cluster.Undrain(ctx, n.Name)).To(Succeed())
				}
				Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
			})
			for _, node := range others[1:] {
				Expect(cluster.Drain(ctx, node)).To(Succeed())
			}
			Eventually(excludedNodes("provider")).WithContext(ctx).Should(HaveLen(len(others) - 1))
			Expect(cluster.KillGuard(dead)).To(Succeed())
			Expect(cluster.Drain(ctx, leaving)).To(Succeed())
			Eventually(publishedGateway).WithContext(ctx).Should(Equal(dead))
			Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(BeEmpty(), "it leaves the shard to "+dead)
			Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).
				Should(And(Not(BeEmpty()), Not(Equal(dead))))
			eventuallyAnswered(ctx, "client", addrs, httpPort, echoPort, 4)
			Eventually(publishedGateway).WithContext(ctx).ShouldNot(Equal(dead))
			Expect(cluster.ActiveNode(ctx, port)).NotTo(Or(BeEmpty(), Equal(dead)))
		})

	It("ends a failover without a planned move", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		warmUp(ctx, addrs)
		port, victim := activeGateway(ctx)
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.Restore(ctx, victim)).To(Succeed()) })
		Expect(cluster.Kill(victim)).To(Succeed())
		awaitMove(ctx, port, victim)
		_, successor := activeGateway(ctx)
		Eventually(func(ctx context.Context) (string, error) { // After that a handover would have begun.
			out, err := cluster.EachNB(ctx, "--bare", "--columns=chassis_name", "find", "HA_Chassis", "priority=100")
			return strings.Join(slices.Compact(slices.Sorted(slices.Values(strings.Fields(out)))), " "), err
		}).WithContext(ctx).Should(Equal("chassis-" + successor))
		// Where the fault of the victim is known before the claim of its successor, the new order comes first.
		Eventually(func(ctx context.Context) ([]string, error) {
			out, err := cluster.EachNB(ctx, "--bare", "--columns=min_tx", "list", "BFD")
			return strings.Fields(out), err
		}).WithContext(ctx).Should(HaveEach("300"), "no handover goes on")
	})

	// What OVN has received before a daemon died, it keeps.
	DescribeTable("keeps forwarding when a component of the gateway's zone dies, and fails over when the gateway dies",
		func(ctx SpecContext, kill func(node string) error) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			port, victim := activeGateway(ctx)
			DeferCleanup(func(ctx SpecContext) {
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				Expect(cluster.KillGuard(victim)).To(Succeed())
				Expect(cluster.StartGuard(ctx, controller, victim)).To(Succeed())
				Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
			})
			servedWhile(ctx, addrs, where, "none", func() {
				Expect(kill(victim)).To(Succeed())
			})
			failsOver(ctx, addrs, where, port, victim)
		},
		Entry("ovn-northd", func(node string) error { return cluster.KillDaemon(node, lab.Northd) }),
		Entry("the northbound database", func(node string) error { return cluster.KillDaemon(node, lab.NorthboundDB) }),
		Entry("the southbound database", func(node string) error { return cluster.KillDaemon(node, lab.SouthboundDB) }),
		Entry("the agent", func(node string) error { return cluster.KillGuard(node) }),
	)

	// The databases of a node that was off have the order of gateways of before, by which ovn-controller would claim the
	// shard again.
	It("returns no shard to a gateway that reboots while its agent can't reach the API server", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		warmUp(ctx, addrs)
		port, victim := activeGateway(ctx)
		// The lab has no node lifecycle controller, which says after 40 to 50 s that a kubelet is silent. Without that, a
		// gateway of which only the agent is silent stays the first one.
		ready := func(ctx context.Context, status string) {
			GinkgoHelper()
			kubectl(ctx, "", "patch", "node", victim, "--subresource=status", "-p",
				`{"status":{"conditions":[{"type":"Ready","status":"`+status+`"}]}}`)
		}
		DeferCleanup(func(ctx SpecContext) {
			ready(ctx, "True")
			Expect(cluster.Restore(ctx, victim)).To(Succeed())
			Expect(cluster.KillGuard(victim)).To(Succeed())
			Expect(cluster.StartGuard(ctx, controller, victim)).To(Succeed())
			Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
		})
		Expect(cluster.KillGuard(victim)).To(Succeed())
		Expect(cluster.Kill(victim)).To(Succeed())
		awaitMove(ctx, port, victim)
		ready(ctx, "Unknown")
		_, successor := activeGateway(ctx)
		Eventually(publishedGateway).WithContext(ctx).Should(Equal(successor), "after its claim has settled")
		priority := func(ctx context.Context) (string, error) {
			out, err := cluster.NodeNB(ctx, victim, "--bare", "--columns=priority", "find", "HA_Chassis",
				"chassis_name=chassis-"+victim, "priority!=1")
			return strings.TrimSpace(out), err
		}
		served := func(results []probe.Result) {
			GinkgoHelper()
			for _, r := range results {
				expectServed(r, where, victim)
				for _, f := range r.Flows {
					if where[f.Backend] != victim && f.Lost > 0 {
						By(fmt.Sprintf("%v to %s: %d of %d lost, gap %s at %s", r.Spec, f.Backend, f.Lost, f.Sent, f.Gap, f.GapAt))
					}
				}
			}
		}
		ready(ctx, "True")
		served(during(ctx, addrs, func() {
			Expect(cluster.Reboot(ctx, victim, func() error {
				return cluster.StartGuardWithoutAPIServer(ctx, controller, victim)
			})).To(Succeed())
			Eventually(priority).WithContext(ctx).Should(Equal("5"))
			awaitStandby(ctx)
		}))
		Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(successor))
		served(during(ctx, addrs, func() {
			Expect(cluster.KillGuard(victim)).To(Succeed())
			Expect(cluster.StartGuard(ctx, controller, victim)).To(Succeed())
			Eventually(priority).WithContext(ctx).Should(Or(Equal("90"), Equal("80")), "the published order")
			Expect(cluster.Settle(ctx)).To(Succeed())
		}))
		Expect(cluster.ActiveNode(ctx, port)).To(Equal(successor))
	})

	It("reports two active gateways while the tunnel between them is cut, and recovers when it is back",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			_, first := activeGateway(ctx)
			var domain v1alpha1.L2Domain
			Expect(read(ctx, "l2domain", "provider", &domain)).To(Succeed())
			Expect(domain.Status.Shards).To(HaveLen(1))
			Expect(domain.Status.Shards[0].Gateways).To(HaveLen(3))
			Expect(domain.Status.Shards[0].Gateways[0]).To(Equal(first))
			second := domain.Status.Shards[0].Gateways[1]
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.JoinUnderlay(ctx, first, second)).To(Succeed()) })
			Expect(cluster.SplitUnderlay(ctx, first, second)).To(Succeed())
			for _, r := range during(ctx, addrs, func() {
				Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(And(
					HavePrefix("False SeveralActiveGateways: "), ContainSubstring(first), ContainSubstring(second)))
			}) {
				By(r.String())
			}
			Expect(cluster.JoinUnderlay(ctx, first, second)).To(Succeed())
			awaitAnnounced(ctx, "web")
			_, now := activeGateway(ctx) // It stood by its claim, so the order of the gateways has not changed.
			Expect(now).To(Equal(first))
		})

	kill := func(daemon string) func(node string) error {
		return func(node string) error { return cluster.KillDaemon(node, daemon) }
	}
	freeze := func(daemon string) func(node string) error {
		return func(node string) error { return cluster.FreezeDaemon(node, daemon) }
	}
	// The order of gateways that the zone itself has can't be changed while its northbound database or ovn-northd is away.
	// If the other zones had another, two gateways would answer.
	DescribeTable("reports that a component of its gateway's zone has been away for long, and serves",
		func(ctx SpecContext, fault func(node string) error, why string, moves bool) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			port, victim := activeGateway(ctx)
			DeferCleanup(func(ctx SpecContext) {
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
			})
			var broken []string
			for _, r := range during(ctx, addrs, func() {
				Expect(fault(victim)).To(Succeed())
				Eventually(excludedNodes("provider")).WithContext(ctx).
					Should(HaveExactElements(And(HavePrefix(victim+" Faulty: "), ContainSubstring(why))))
				if moves {
					awaitMove(ctx, port, victim)
				}
				awaitAnnounced(ctx, "web")
			}) {
				for i := range r.Flows {
					if f := &r.Flows[i]; moves && f.Broken != "" {
						broken = append(broken, fmt.Sprintf("%v to %s: %s", r.Spec, f.Backend, f.Broken))
						f.Broken = ""
					}
				}
				expectServed(r, where, "none")
			}
			// The gateway does not learn of the move and may answer beside the new one (docs/failures.md). A connection can
			// break if it takes some of its packets.
			Expect(len(broken)).To(BeNumerically("<=", 4), strings.Join(broken, "\n"))
			_, now := activeGateway(ctx)
			if moves {
				Expect(now).NotTo(Equal(victim))
			} else {
				Expect(now).To(Equal(victim))
			}
		},
		Entry("the northbound database, which moves nothing", kill(lab.NorthboundDB), "can't be changed", false),
		Entry("the southbound database, which moves its shards", kill(lab.SouthboundDB), "can't be observed", true),
		Entry("a frozen southbound database, which moves its shards", freeze(lab.SouthboundDB), "can't be observed", true),
		Entry("ovn-northd, which moves nothing", kill(lab.Northd), "can't be changed: ovn-northd is not running", false),
		Entry("a frozen ovn-northd, which moves nothing", freeze(lab.Northd), "can't be changed: ovn-northd does not answer",
			false),
	)
})
