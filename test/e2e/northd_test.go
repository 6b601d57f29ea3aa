// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

var _ = Describe("ovn-northd that does not run", func() {
	const otherPort = 8088

	It("keeps an address out of the status, and a change from being announced, until it has translated them",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			start := cluster.RestoreCentral
			if !cluster.Network().Zones() {
				Expect(cluster.KillCentral(lab.Northd)).To(Succeed())
			} else {
				for _, n := range cluster.Nodes {
					Expect(cluster.KillDaemon(n.Name, lab.Northd)).To(Succeed())
				}
				start = func(ctx context.Context) error {
					var errs []error
					for _, n := range cluster.Nodes {
						errs = append(errs, cluster.StartDaemon(ctx, n.Name, lab.Northd))
					}
					return errors.Join(errs...)
				}
			}
			running := false
			DeferCleanup(func(ctx SpecContext) {
				if !running {
					Expect(start(ctx)).To(Succeed())
				}
			})
			kubectl(ctx, lateService("", ""), "apply", "-f", "-")
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "service", "late") })
			rows := func(ctx context.Context) (string, error) {
				return cluster.NB(ctx, "--bare", "--columns=name", "find", "Load_Balancer",
					"external_ids:slb.k8s.ovn.org/service=default/late")
			}
			Eventually(rows).WithContext(ctx).ShouldNot(BeEmpty())
			Expect(addresses(ctx, "late")).To(BeEmpty())

			patching("service", "web", `{"spec":{"ports":[{"name":"http","port":80,"targetPort":8080},`+
				`{"name":"other","port":8088,"targetPort":8080}]}}`)(ctx)
			Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
				Should(And(HavePrefix("Unknown "), ContainSubstring("ovn-northd")))

			Expect(start(ctx)).To(Succeed())
			running = true
			Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
			for _, a := range append(addrs, awaitAnnounced(ctx, "late")...) {
				Eventually(get(netip.AddrPortFrom(a, httpPort))).WithContext(ctx).Should(fromPod(), "from %s", a)
			}
			for _, a := range addrs {
				Eventually(get(netip.AddrPortFrom(a, otherPort))).WithContext(ctx).Should(fromPod(), "from %s", a)
			}
		})
})
