// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

var _ = Describe("An EgressService", func() {
	It("makes pods open connections from the address of their Service, through any node of the segment",
		func(ctx SpecContext) {
			s := startSite(ctx)
			translator := modelTranslator
			if cluster.Network().Real() {
				translator = realTranslator
			}
			translateOn, stop := translator(ctx, &s)
			for _, n := range cluster.Nodes { // One of them is the active gateway.
				By("translating on " + n.Name)
				undo := translateOn(ctx, n)
				Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
					Should(And(HavePrefix("True "), Not(ContainSubstring("EgressService"))))
				s.opensFromItsAddress(ctx)
				undo(ctx)
			}
			stop(ctx)
			Eventually(func(ctx context.Context) (string, error) {
				return cluster.EachNB(ctx, "--bare", "--columns=addresses", "find", "Logical_Switch_Port", "type=localnet")
			}).WithContext(ctx).ShouldNot(ContainSubstring(s.vips[0].String()))
		})
})

// egressService is that of Service web.
const egressService = `{apiVersion: k8s.ovn.org/v1, kind: EgressService, metadata: {name: web}, ` +
	`spec: {sourceIPBy: LoadBalancerIP}}`

// translate makes a node translate the connections of the pods of Service web. It returns a function that reverts this.
type translate func(ctx context.Context, n lab.Node) (undo func(context.Context))

// modelTranslator does what OVN-Kubernetes does for the EgressService. The second function takes the node away from it.
func modelTranslator(ctx SpecContext, s *site) (translate, func(context.Context)) {
	GinkgoHelper()
	kubectl(ctx, "", "apply", "-f", "testdata/egressservices.yaml")
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "", "delete", "--wait", "-f", "testdata/egressservices.yaml")
	})
	kubectl(ctx, "", "wait", "--for=condition=Established", "crd/egressservices.k8s.ovn.org", "--timeout=1m")
	kubectl(ctx, egressService, "apply", "-f", "-")
	translateOn := func(ctx context.Context, n lab.Node) func(context.Context) {
		setHost(ctx, n.Name)
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(And(HavePrefix("True "),
			ContainSubstring("from this address on node "+n.Name+" (EgressService")), "its gateway is on another segment")
		undo, err := cluster.EgressService(ctx, n.Name, [][]netip.Addr{s.one.ips, s.afar.ips}, s.vips)
		Expect(err).NotTo(HaveOccurred())
		return func(ctx context.Context) { Expect(undo(ctx)).To(Succeed()) }
	}
	return translateOn, func(ctx context.Context) { setHost(ctx, "") }
}

// realTranslator has OVN-Kubernetes do it. The nodes' own segment is the one where hosts have addresses. The second
// function deletes the EgressService.
func realTranslator(ctx SpecContext, _ *site) (translate, func(context.Context)) {
	GinkgoHelper()
	if !onLAN() {
		Skip("hosts have no addresses on the segment")
	}
	if why := cluster.Network().WithoutEgressServices(ctx); why != "" {
		Skip("the lab runs OVN-Kubernetes without --enable-egress-service: " + why)
	}
	for _, n := range cluster.Nodes {
		kubectl(ctx, "", "label", "node", n.Name, "egress="+n.Name)
	}
	DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "label", "nodes", "--all", "egress-") })
	kubectl(ctx, egressService, "apply", "-f", "-")
	remove := func(ctx context.Context) {
		kubectl(ctx, "", "delete", "--ignore-not-found", "--wait", "egressservice", "web")
	}
	DeferCleanup(func(ctx SpecContext) { remove(ctx) })
	translateOn := func(ctx context.Context, n lab.Node) func(context.Context) {
		kubectl(ctx, "", "patch", "egressservice", "web", "--type=merge",
			"-p", fmt.Sprintf(`{"spec":{"nodeSelector":{"matchLabels":{"egress":%q}}}}`, n.Name))
		Eventually(func(ctx context.Context) (string, error) {
			return cluster.Kubectl(ctx, "", "get", "egressservice", "web", "-o", "jsonpath={.status.host}")
		}).WithContext(ctx).Should(Equal(n.Name), "node that OVN-Kubernetes selects")
		return func(context.Context) {}
	}
	return translateOn, remove
}

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
