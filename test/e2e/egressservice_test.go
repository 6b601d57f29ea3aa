// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var _ = Describe("An EgressService", func() {
	It("makes pods open connections from the address of their Service, through any node of the segment",
		func(ctx SpecContext) {
			if cluster.Network().Real() {
				// With it, OVN-Kubernetes of August 2026 ends at once with nft 1.0.6, for which "snat to" is ambiguous.
				Skip("the lab runs OVN-Kubernetes without --enable-egress-service")
			}
			s := startSite(ctx)
			announced := condition("web", v1alpha1.ConditionAnnounced)
			kubectl(ctx, "", "apply", "-f", "testdata/egressservices.yaml")
			DeferCleanup(func(ctx SpecContext) {
				kubectl(ctx, "", "delete", "--wait", "-f", "testdata/egressservices.yaml")
			})
			kubectl(ctx, "", "wait", "--for=condition=Established", "crd/egressservices.k8s.ovn.org", "--timeout=1m")
			kubectl(ctx, egressService, "apply", "-f", "-")
			for _, n := range cluster.Nodes { // One of them is the active gateway.
				By("translating on " + n.Name)
				setHost(ctx, n.Name)
				Eventually(announced).WithContext(ctx).Should(And(HavePrefix("True "),
					ContainSubstring("from this address on node "+n.Name+" (EgressService")), "its gateway is on another segment")
				undo, err := cluster.EgressService(ctx, n.Name, [][]netip.Addr{s.one.ips, s.afar.ips}, s.vips)
				Expect(err).NotTo(HaveOccurred())
				Eventually(announced).WithContext(ctx).Should(And(HavePrefix("True "), Not(ContainSubstring("EgressService"))))
				s.opensFromItsAddress(ctx)
				Expect(undo(ctx)).To(Succeed())
			}
			setHost(ctx, "")
			Eventually(func(ctx context.Context) (string, error) {
				return cluster.EachNB(ctx, "--bare", "--columns=addresses", "find", "Logical_Switch_Port", "type=localnet")
			}).WithContext(ctx).ShouldNot(ContainSubstring(s.vips[0].String()))
		})
})

// egressService is that of Service web.
const egressService = `{apiVersion: k8s.ovn.org/v1, kind: EgressService, metadata: {name: web}, ` +
	`spec: {sourceIPBy: LoadBalancerIP}}`

// opensFromItsAddress checks that pods on two nodes open connections from the addresses of the Service, which still
// serves its clients.
func (s *site) opensFromItsAddress(ctx context.Context) {
	GinkgoHelper()
	families(func(i int, network string) {
		for _, p := range []pod{s.one, s.afar} {
			Expect(s.requestOutside(ctx, p, network, 0, i).Addr()).To(Equal(s.vips[i]), "%s from %s", network, p.name)
		}
	})
	fromOutside(func(from string, own []netip.Addr) {
		for i, vip := range s.vips {
			_, seen := answer(ctx, from, "tcp", 0, netip.AddrPortFrom(vip, httpPort))
			Expect(seen.Addr()).To(Equal(own[i]), "clients of the Service")
		}
	})
}

// setHost sets the node of the EgressService of web, as OVN-Kubernetes does.
func setHost(ctx context.Context, node string) {
	GinkgoHelper()
	kubectl(ctx, "", "patch", "egressservice", "web", "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status":{"host":%q}}`, node))
}
