// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var _ = Describe("A node whose tunnels are cut", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		if onLAN() || cluster.Network().Zones() {
			return // Guards are already running.
		}
		Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
		DeferCleanup(func() { Expect(cluster.KillGuards()).To(Succeed()) })
	})

	It("while its segment, kubelet and guard work, is named until the tunnels are back", func(ctx SpecContext) {
		startWeb(ctx)
		_, active := activeGateway(ctx)
		victim := ""
		for _, node := range podNodes(ctx) {
			if node != active {
				victim = node
			}
		}
		Expect(victim).NotTo(BeEmpty(), "a node with a pod of the Service that is not the active gateway")
		Eventually(explained("web")).WithContext(ctx).Should(HavePrefix(reachable))
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.LinkUp(ctx, victim)).To(Succeed()) })
		Expect(cluster.UnderlayDown(ctx, victim)).To(Succeed())

		down := "because OVN does not reach node " + victim + ": "
		Eventually(explained("web")).WithContext(ctx).WithPolling(slow).Should(And(HavePrefix(weak),
			ContainSubstring(": Faulty: "), ContainSubstring(down)))
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(And(
			HavePrefix("True PartlyUsable: "), ContainSubstring(down)))
		Eventually(ready("l2domain", "provider")).WithContext(ctx).Should(And(HavePrefix("True PartlyUsable: "),
			ContainSubstring("OVN does not reach "+victim+" from other nodes")))
		_, now := activeGateway(ctx) // The reports move nothing.
		Expect(now).To(Equal(active))

		Expect(cluster.LinkUp(ctx, victim)).To(Succeed())
		Eventually(explained("web")).WithContext(ctx).WithPolling(slow).Should(And(HavePrefix(reachable),
			Not(ContainSubstring(down))))
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("True Announced: "))
		Eventually(ready("l2domain", "provider")).WithContext(ctx).ShouldNot(ContainSubstring("PartlyUsable"))
	})
})
