// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
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

// podsReachEachOther waits until the pods of Deployment web reach each other without a Service, which is the affair of
// OVN-Kubernetes alone. If it has several routes to a node, each flow takes one.
func podsReachEachOther(ctx context.Context) {
	GinkgoHelper()
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	Expect(err).NotTo(HaveOccurred())
	// One pod after the other: all flows at once stall the userspace datapath of all nodes for longer than BFD allows.
	for _, from := range pods.Items {
		var specs []probe.Spec
		for _, to := range pods.Items {
			for _, ip := range to.Status.PodIPs {
				if to.Name != from.Name {
					specs = append(specs, probe.Spec{Kind: probe.UDPFlow, Count: 8,
						Target: netip.AddrPortFrom(netip.MustParseAddr(ip.IP), target("udp"))})
				}
			}
		}
		Eventually(func(ctx context.Context) (lost []string, err error) {
			results, err := cluster.Probe(ctx, lab.PodNetns(from.Namespace, from.Name), 300*time.Millisecond, specs...)
			for _, r := range results {
				if slices.ContainsFunc(r.Flows, func(f probe.Flow) bool { return f.Sent == f.Lost }) {
					lost = append(lost, r.String())
				}
			}
			return lost, err
		}).WithContext(ctx).Should(BeEmpty(), "flows from %s on %s without an answer", from.Name, from.Spec.NodeName)
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
			added := false
			DeferCleanup(func(ctx SpecContext) {
				if add != nil && !added {
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

			// ovn-controller may claim the shard for a moment after its start (docs/failures.md, failure modes). Connections
			// to Services with other endpoints than when they were opened don't survive that.
			added = true
			Expect(add(ctx)).To(Succeed())
			awaitSlots(ctx, "web", 8080, 6)
			Expect(cluster.Settle(ctx)).To(Succeed())
			for _, r := range during(ctx, addrs, func() {
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				Eventually(gatewaysOf("provider")).WithContext(ctx).Should(ContainElement(victim))
				awaitStandby(ctx)
			}) {
				expectServed(r, where, victim)
			}
			podsReachEachOther(ctx)
			Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(heir), "the heir stays active")
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
		added := false
		DeferCleanup(func(ctx SpecContext) {
			if add != nil && !added {
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
		added = true
		Expect(add(ctx)).To(Succeed())
		awaitBackends(ctx)
		podsReachEachOther(ctx)
		servedWhile(ctx, addrs, where, "none", func() {
			Eventually(gatewaysOf("provider")).WithContext(ctx).Should(ContainElement(victim))
			awaitStandby(ctx)
		})
		Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(heir), "the new node has taken over")
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
		})
		Expect(ourRows(ctx)).To(Equal(ours))
		Eventually(foreignRows).WithContext(ctx).Should(Equal(theirs))
		Expect(condition("web", v1alpha1.ConditionAnnounced)(ctx)).To(HavePrefix("True Announced: "))
	})
})
