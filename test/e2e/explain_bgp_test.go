// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// onNodes returns a function that does something to all nodes.
func onNodes(do func(ctx context.Context, node string) error) func(context.Context) {
	return must(func(ctx context.Context) error {
		for _, n := range cluster.Nodes {
			if err := do(ctx, n.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// routerBGP returns a function that starts BGP on the router again, with a password and an AS number for the nodes. FRR
// keeps the password of dynamic neighbors until then.
func routerBGP(password string, asn int) func(context.Context) {
	return must(func(ctx context.Context) error {
		if err := cluster.StopRouterBGP(ctx); err != nil {
			return err
		}
		return startRouterBGP(ctx, password, asn)
	})
}

func startRouterBGP(ctx context.Context, password string, asn int) error {
	return cluster.StartRouterBGP(ctx, " neighbor nodes password "+password,
		fmt.Sprintf(" neighbor nodes remote-as %d", asn))
}

var _ = Describe("kubectl slb explain of an address that BGP advertises", Ordered, ContinueOnFailure, func() {
	// reached waits until the client behind the router gets an answer from all addresses.
	reached := func(ctx context.Context, vips []netip.Addr) {
		GinkgoHelper()
		for _, vip := range vips {
			Eventually(func(ctx context.Context) (string, error) {
				backend, _, err := cluster.Ask(ctx, "remote", "tcp", 0, netip.AddrPortFrom(vip, httpPort))
				return backend, err
			}).WithContext(ctx).Should(HavePrefix("told-"), "from %s", vip)
		}
	}

	BeforeAll(func(ctx SpecContext) {
		startTold(ctx)
		pods := podAddresses(ctx, "told")
		for i, vip := range awaitAnnounced(ctx, "told") {
			undo, err := cluster.ServiceOnRouters(ctx, "told", netip.AddrPortFrom(vip, httpPort), pods[i])
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) { Expect(undo(ctx)).To(Succeed()) })
		}
	})

	BeforeAll(func(ctx SpecContext) {
		routerBGP("right", lab.NodeASN)(ctx)
		patching("bgppeer", "tor", `{"spec":{"password":"right"}}`)(ctx)
		Eventually(ready("bgppeer", "tor")).WithContext(ctx).
			Should(HavePrefix("True Ready: established session on 3 nodes"))
	})

	DescribeTable("names the cause of", Label(withoutLayer2), func(ctx SpecContext, f fault) {
		vips := awaitAnnounced(ctx, "told")
		Eventually(explained("told")).WithContext(ctx).WithPolling(slow).Should(HavePrefix(reachable), "before the fault")
		reached(ctx, vips)
		mended := false
		DeferCleanup(func(ctx SpecContext) {
			if !mended {
				f.mend(ctx)
			}
		})
		f.inject(ctx)
		Eventually(explained("told")).WithContext(ctx).WithPolling(slow).
			Should(And(HavePrefix(notReachable+f.link), ContainSubstring(f.cause)))
		for _, vip := range vips {
			Eventually(nextHops(vip)).WithContext(ctx).Should(BeEmpty(), "next hops for %s", vip)
		}

		mended = true
		f.mend(ctx)
		Eventually(explained("told")).WithContext(ctx).WithPolling(slow).
			Should(HavePrefix(reachable), "after the fault")
		for i, vip := range vips {
			Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(nodeAddresses(i, "n1", "n2", "n3")))
		}
		reached(ctx, vips)
	},
		Entry("a peer that is down", fault{
			inject: must(func(ctx context.Context) error { return cluster.StopRouterBGP(ctx) }),
			mend:   must(func(ctx context.Context) error { return startRouterBGP(ctx, "right", lab.NodeASN) }),
			link:   "bgp n", cause: ": PeerDown: "}), // of the node that received a NOTIFICATION, if one did
		// Nodes apply an edit of a BGPPeer one after another, so a wrong one costs the session of one node only: the router
		// is edited here.
		// If the NOTIFICATION of the router that stops is received, it comes first, and what followed after it.
		Entry("a wrong password", fault{inject: routerBGP("wrong", lab.NodeASN), mend: routerBGP("right", lab.NodeASN),
			link: "bgp n", cause: "check that both sides use the same password"}),
		Entry("a wrong AS number", fault{inject: routerBGP("right", lab.NodeASN-1), mend: routerBGP("right", lab.NodeASN),
			link: "bgp n1, n2, n3: WrongASN: ", cause: "node n1 has no session with BGPPeer tor"}),
		Entry("nodes that are excluded", fault{
			inject: onNodes(func(ctx context.Context, node string) error { return cluster.Drain(ctx, node) }),
			mend:   onNodes(func(ctx context.Context, node string) error { return cluster.Undrain(ctx, node) }),
			link:   "bgp: Draining: ", cause: "node n1, n2, n3 is draining: label " +
				"node.kubernetes.io/exclude-from-external-load-balancers"}),
	)
})
