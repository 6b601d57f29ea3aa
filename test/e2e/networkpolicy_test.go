// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

var _ = Describe("A NetworkPolicy", func() {
	It("applies to the own addresses of the clients of a Service, from the segment, from beyond and from pods",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			kubectl(ctx, otherTenant, "apply", "-f", "-")
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "pod/curious", "-n", "tenant", "--wait") })
			kubectl(ctx, "", "wait", "--for=condition=Ready", "pod/curious", "-n", "tenant", "--timeout=2m")
			curious := lab.PodNetns("tenant", "curious")
			served := func(clients map[string]int) {
				GinkgoHelper()
				var steps []func()
				for from, count := range clients {
					steps = append(steps, func() { eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, count) })
				}
				together(steps...)
			}
			served(map[string]int{"client": 4, "remote": 4, curious: 4})
			for admitted, own := range map[string][]netip.Addr{"client": cluster.ClientAddresses(),
				"remote": lab.RemoteAddresses()} {
				By("admitting " + admitted)
				undo, err := cluster.AdmitOnly(ctx, "web", own)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(func(ctx SpecContext) { Expect(undo(ctx)).To(Succeed()) })
				expected := map[string]int{"client": 0, "remote": 0, curious: 0}
				expected[admitted] = 4
				served(expected)
				Expect(undo(ctx)).To(Succeed())
				served(map[string]int{"client": 4, "remote": 4, curious: 4})
			}
		})
})
