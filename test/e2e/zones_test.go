// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var _ = Describe("a segment where each node has its own databases", func() {
	BeforeEach(func() {
		if !cluster.Network().Zones() {
			Skip("one database configures all nodes")
		}
	})

	// withoutAgents kills the agents and removes their reports, and starts agents again after the test.
	withoutAgents := func(ctx SpecContext) {
		GinkgoHelper()
		Expect(cluster.KillGuards()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.StartGuards(ctx, controller)).To(Succeed()) })
		kubectl(ctx, "", "delete", "leases", "--all", "-n", v1alpha1.GuardsNamespace)
	}

	It("is refused without agents, in words that say what to do, and nothing is written", func(ctx SpecContext) {
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

	It("goes on when its gateway dies while no controller and no agent runs", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		warmUp(ctx, addrs)
		port, victim := activeGateway(ctx)
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.Restore(ctx, victim)).To(Succeed())
			Expect(cluster.StartController(ctx, controller)).To(Succeed())
			Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
		})
		Expect(cluster.StopController(ctx)).To(Succeed())
		Expect(cluster.KillGuards()).To(Succeed())
		for _, r := range during(ctx, addrs, func() {
			stay(ctx, 500*time.Millisecond)
			Expect(cluster.Kill(victim)).To(Succeed())
			awaitMove(ctx, port, victim)
		}) {
			expectServed(r, where, victim)
		}
	})
})
