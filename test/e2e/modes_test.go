// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// gatewayMACs returns the MAC addresses of the gateway ports, by port.
func gatewayMACs(ctx context.Context) map[string]string {
	GinkgoHelper()
	macs := activeGateways(ctx)
	for port := range macs {
		mac, err := cluster.NB(ctx, "--bare", "--columns=mac", "find", "Logical_Router_Port", "name="+port)
		Expect(err).NotTo(HaveOccurred())
		macs[port] = strings.TrimSpace(mac)
	}
	return macs
}

var _ = Describe("A cluster in central mode", func() {
	// The order is that of docs/interconnect.md.
	It("moves to interconnect and back: Services keep addresses, shards and MAC addresses, and are never served by halves",
		func(ctx SpecContext) {
			if cluster.Network().Zones() {
				Skip("the cluster has interconnect")
			}
			guarded := onLAN()
			addrs := startWeb(ctx)
			macs := gatewayMACs(ctx)
			// swap moves OVN-Kubernetes and then, once the L2Domain is refused with what to do, the controller.
			swap := func(mode string) {
				GinkgoHelper()
				Expect(cluster.SetMode(ctx, mode)).To(Succeed())
				Eventually(ready("l2domain", "provider")).WithContext(ctx).
					Should(And(HavePrefix("False Unsupported: "), ContainSubstring("--nb-address")))
				Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("False Unsupported: "))
				// The agents may have written the switch of the domain, which answers for nothing.
				balancers, err := cluster.SnapshotNB(ctx, func(table string, row lab.Row) bool {
					return table == "Load_Balancer" && row.OwnedBy(owner)
				})
				Expect(err).NotTo(HaveOccurred())
				Expect(balancers.String()).To(BeEmpty())
				Expect(cluster.StopController(ctx)).To(Succeed())
				Expect(cluster.StartController(ctx, controller)).To(Succeed())
			}
			served := func(mode string) {
				GinkgoHelper()
				Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
				awaitBackends(ctx)
				fromOutside(func(from string, _ []netip.Addr) { eventuallyAnsweredAfterRepair(ctx, from, addrs) })
				warmUp(ctx, addrs)
				now := gatewayMACs(ctx)
				Expect(maps.Equal(now, macs)).To(BeTrue(), fmt.Sprintf("gateway ports %v, want %v", now, macs))
				Expect(kubectl(ctx, "", "get", "l2domain", "provider", "-o", "jsonpath={.status.mode}")).To(Equal(mode))
			}

			kubectl(ctx, "", "apply", "-f", interconnectRBAC)
			Expect(cluster.KillGuards()).To(Succeed())
			Expect(cluster.StartGuards(ctx, controller, "--enable-l2")).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(cluster.KillGuards()).To(Succeed())
				if cluster.Network().Zones() {
					Expect(cluster.StopController(ctx)).To(Succeed())
					Expect(cluster.SetMode(ctx, lab.Central)).To(Succeed())
					Expect(cluster.StartController(ctx, controller)).To(Succeed())
				}
				kubectl(ctx, "", "delete", "leases", "--all", "-n", v1alpha1.GuardsNamespace)
				if guarded {
					Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
				}
				kubectl(ctx, "", "delete", "-f", interconnectRBAC)
			})
			served("Central")
			for _, mode := range []string{lab.Interconnect, lab.Central} {
				during(ctx, addrs, func() { // The result of each flow has the gap.
					swap(mode)
					Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
					awaitBackends(ctx)
				})
				served(map[string]string{lab.Interconnect: "Interconnect", lab.Central: "Central"}[mode])
			}
		})
})
