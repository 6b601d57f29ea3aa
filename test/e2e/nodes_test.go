// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// gatewaysOf returns a function that gets the gateways of the only shard of an L2Domain in their order.
func gatewaysOf(domain string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var d v1alpha1.L2Domain
		if err := read(ctx, "l2domain", domain, &d); err != nil || len(d.Status.Shards) != 1 {
			return nil, err
		}
		return d.Status.Shards[0].Gateways, nil
	}
}

var _ = Describe("A node", func() {
	It("that fails and is deleted is no gateway any more, and joins behind the active one when it is added again",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			before, err := gatewaysOf("provider")(ctx)
			Expect(err).NotTo(HaveOccurred())
			port, victim := activeGateway(ctx)
			Expect(before).To(ContainElement(victim))
			var add func(context.Context) error
			DeferCleanup(func(ctx SpecContext) {
				if add != nil {
					Expect(add(ctx)).To(Succeed())
				}
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				awaitBackends(ctx)
			})
			servedWhile(ctx, addrs, where, victim, func() {
				Expect(cluster.Kill(victim)).To(Succeed())
				add, err = cluster.DeleteNode(ctx, victim)
				Expect(err).NotTo(HaveOccurred())
				awaitMove(ctx, port, victim)
			})
			left := slices.DeleteFunc(slices.Clone(before), func(n string) bool { return n == victim })
			Eventually(gatewaysOf("provider")).WithContext(ctx).Should(ConsistOf(left))
			_, heir := activeGateway(ctx)

			// ovn-controller may claim the shard for a moment after its start (docs/architecture.md, failure modes). Connections
			// to Services with other endpoints than when they were opened don't survive that.
			Expect(add(ctx)).To(Succeed())
			awaitSlots(ctx, "web", 8080, 6)
			servedWhile(ctx, addrs, where, victim, func() {
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				Eventually(gatewaysOf("provider")).WithContext(ctx).Should(ContainElement(victim))
				stay(ctx, 3*time.Second)
			})
			_, now := activeGateway(ctx)
			Expect(now).To(Equal(heir), "the new node has taken over")
			after, err := gatewaysOf("provider")(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(after[0]).To(Equal(heir))
			Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("True Announced: "))
		})

	// With interconnect, no other zone can take the shard away from it.
	It("whose Node is deleted while the machine runs hands its shards over, and answers no more", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		warmUp(ctx, addrs)
		port, victim := activeGateway(ctx)
		var add func(context.Context) error
		DeferCleanup(func(ctx SpecContext) {
			if add != nil {
				Expect(add(ctx)).To(Succeed())
			}
			awaitBackends(ctx)
		})
		servedWhile(ctx, addrs, where, victim, func() {
			var err error
			add, err = cluster.DeleteNode(ctx, victim)
			Expect(err).NotTo(HaveOccurred())
			awaitMove(ctx, port, victim)
		})
		_, heir := activeGateway(ctx)
		Expect(add(ctx)).To(Succeed())
		awaitBackends(ctx)
		servedWhile(ctx, addrs, where, "none", func() {
			Eventually(gatewaysOf("provider")).WithContext(ctx).Should(ContainElement(victim))
			stay(ctx, 3*time.Second)
		})
		_, now := activeGateway(ctx)
		Expect(now).To(Equal(heir), "the new node has taken over")
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("True Announced: "))
	})
})

var _ = Describe("OVN-Kubernetes", func() {
	It("restarts on all nodes while clients are served, and neither its rows nor ours change", func(ctx SpecContext) {
		if !cluster.Network().Real() {
			Skip("the model has no ovnkube")
		}
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		warmUp(ctx, addrs)
		theirs := foreignRows(ctx)
		ours, err := ourRows(ctx)
		Expect(err).NotTo(HaveOccurred())
		servedWhile(ctx, addrs, where, "none", func() {
			Expect(cluster.RestartOVNKube(ctx)).To(Succeed())
			stay(ctx, 2*time.Second)
		})
		Expect(ourRows(ctx)).To(Equal(ours))
		Eventually(foreignRows).WithContext(ctx).Should(Equal(theirs))
		Expect(condition("web", v1alpha1.ConditionAnnounced)(ctx)).To(HavePrefix("True Announced: "))
	})
})
