// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// resolveRepeatedly makes the client resolve the MAC address of a VIP until happens returns, like a neighbor without a
// cache entry. It returns the longest time without an answer.
func resolveRepeatedly(ctx context.Context, vip netip.Addr, happens func()) time.Duration {
	GinkgoHelper()
	done := make(chan struct{})
	worst := make(chan time.Duration, 1)
	go func() {
		defer GinkgoRecover()
		var longest time.Duration
		last := time.Now()
		for {
			select {
			case <-done:
				worst <- max(longest, time.Since(last))
				return
			default:
			}
			// The kernel resolves a deleted entry by multicast, with three solicitations one second apart. This timeout
			// is shorter.
			script := "ip neigh del $0 dev $(ip -o route get $0 | sed 's/.* dev \\([^ ]*\\).*/\\1/') 2>/dev/null; ping -c1 " +
				"-W1 $0 >/dev/null"
			if _, err := cluster.Exec(ctx, "client", "sh", "-c", script, vip.String()); err == nil {
				longest = max(longest, time.Since(last))
				last = time.Now()
			}
		}
	}()
	happens()
	close(done)
	return <-worst
}

var _ = Describe("A gateway with a guard", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		if onLAN() || cluster.Network().Zones() {
			return // They are already running.
		}
		Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
		DeferCleanup(func() { Expect(cluster.KillGuards()).To(Succeed()) })
	})

	// awaitNoFaults waits until no guard reports a fault.
	awaitNoFaults := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
	}

	It("that loses only its uplink is replaced, and is a standby gateway afterwards",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			port, victim := activeGateway(ctx)
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.LinkUp(ctx, victim)).To(Succeed()) })
			servedWhile(ctx, addrs, where, "none", func() {
				Expect(cluster.UplinkDown(ctx, victim)).To(Succeed())
				awaitMove(ctx, port, victim)
			})
			_, successor := activeGateway(ctx)
			Eventually(excludedNodes("provider")).WithContext(ctx).Should(HaveExactElements(And(HavePrefix(victim+" Faulty: "),
				ContainSubstring("no carrier on "+cluster.Network().Uplink()))))

			Eventually(preferred).WithContext(ctx).Should(Equal("chassis-"+successor), "after its claim has settled")
			for _, r := range during(ctx, addrs, func() {
				Expect(cluster.LinkUp(ctx, victim)).To(Succeed())
				awaitNoFaults(ctx)
				awaitStandby(ctx)
			}) {
				expectServed(r, where, "none")
			}
			Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(successor))
		})

	It("whose ovn-controller dies is replaced without breaking connections, while a client resolves its addresses",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			port, victim := activeGateway(ctx)
			DeferCleanup(func(ctx SpecContext) {
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				awaitNoFaults(ctx)
			})
			var unanswered time.Duration
			// The flows use only the first VIP: the client repeatedly deletes its neighbor entry of the other one.
			for _, r := range during(ctx, addrs[:1], func() {
				unanswered = resolveRepeatedly(ctx, addrs[1], func() {
					Expect(cluster.KillDaemon(victim, lab.OVNController)).To(Succeed())
					awaitMove(ctx, port, victim)
				})
			}) {
				expectServed(r, where, "none")
			}
			By("IPv6 neighbour resolution unanswered for " + unanswered.String())
			Eventually(excludedNodes("provider")).WithContext(ctx).Should(HaveExactElements(And(HavePrefix(victim+" Faulty: "),
				ContainSubstring("ovn-controller"))))
		})

	It("that claims a shard is announced to the whole segment", func(ctx SpecContext) {
		addrs := startWeb(ctx) // The shard's only addresses, and so its router's own.
		port, victim := activeGateway(ctx)
		captured := advertisements(ctx)
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.Restore(ctx, victim)).To(Succeed())
			awaitNoFaults(ctx)
		})
		Expect(cluster.Kill(victim)).To(Succeed())
		awaitMove(ctx, port, victim)
		Eventually(captured).WithContext(ctx).Should(ContainSubstring("neighbor advertisement, tgt is " + addrs[1].String()))
	})

	It("that is active repeats its announcements where the L2Domain asks for it", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		captured := advertisements(ctx)
		DeferCleanup(patching("l2domain", "provider", `{"spec": {"announceInterval": null}}`))
		patching("l2domain", "provider", `{"spec": {"announceInterval": "10s"}}`)(ctx)
		Eventually(captured).WithContext(ctx).Should(ContainSubstring("neighbor advertisement, tgt is " + addrs[1].String()))
	})

	It("detects that another host has a new address, which is not announced until the host releases it",
		Label(smoke), func(ctx SpecContext) {
			taken := []string{here("10.50.0.100"), here("fd00:50::100")} // the first addresses of the pool
			otherHost, mac := otherHostOf(ctx, taken)
			Expect(otherHost(ctx, "add")).To(Succeed())
			here := true
			DeferCleanup(func(ctx SpecContext) {
				if here {
					Expect(otherHost(ctx, "del")).To(Succeed())
				}
			})

			applyExamples(ctx)
			Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(
				And(HavePrefix("False AddressConflict: "+taken[0]), ContainSubstring("MAC "+mac)))
			Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).Should(And(
				HavePrefix("True AddressConflict: "+strings.Join(taken, ", ")),
				ContainSubstring(taken[1]+" is used outside of the cluster by MAC "+mac)))
			Eventually(func(ctx context.Context) (string, error) {
				return cluster.Kubectl(ctx, "", "get", "events", "--field-selector",
					"involvedObject.name=web,reason="+v1alpha1.EventAddressConflict, "-o", "name")
			}).WithContext(ctx).ShouldNot(BeEmpty())
			Expect(ourRows(ctx)).NotTo(Or(ContainSubstring(taken[0]), ContainSubstring(taken[1])))

			Expect(otherHost(ctx, "del")).To(Succeed())
			here = false
			// Neighbors that still have the other host's MAC probe it for some seconds before they resolve the address
			// again.
			for _, asker := range []string{"client", "router"} {
				for _, addr := range taken {
					_, err := cluster.Exec(ctx, asker, "ip", "neigh", "flush", "to", addr)
					Expect(err).NotTo(HaveOccurred())
				}
			}
			gone := time.Now()
			awaitAnnounced(ctx, "web")
			By("announced " + time.Since(gone).String() + " after the other host had left")
			Expect(ourRows(ctx)).To(And(ContainSubstring(taken[0]), ContainSubstring(taken[1])))
		})

	It("reports another host that takes an announced address, which stays announced", func(ctx SpecContext) {
		addrs := startUncontestedWeb(ctx)
		taken := []string{addrs[0].String(), addrs[1].String()}
		otherHost, mac := otherHostOf(ctx, taken)
		allocated := condition("web", v1alpha1.ConditionAllocated)
		Expect(otherHost(ctx, "add")).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			_ = otherHost(ctx, "del") // fails if the spec has done it
		})
		Eventually(allocated).WithContext(ctx).Should(And(HavePrefix("True AddressConflict: "),
			ContainSubstring(taken[0]+" is used outside of the cluster by MAC "+mac),
			ContainSubstring(taken[1]+" is used outside of the cluster by MAC "+mac)))
		Expect(condition("web", v1alpha1.ConditionAnnounced)(ctx)).To(HavePrefix("True Announced: "))
		Expect(ourRows(ctx)).To(And(ContainSubstring(taken[0]), ContainSubstring(taken[1])))
		Expect(otherHost(ctx, "del")).To(Succeed())
		Eventually(allocated, 2*await.Limit).WithContext(ctx).Should(HavePrefix("True Allocated: "),
			"after three probes without an answer")
	})
})

// otherHostOf returns a function that adds addresses to the client, or deletes them there, and the MAC address of the
// client. It announces nothing: it answers whoever asks.
func otherHostOf(ctx context.Context, addrs []string) (change func(context.Context, string) error, mac string) {
	GinkgoHelper()
	const device = "eth0"
	text, err := cluster.Exec(ctx, "client", "cat", "/sys/class/net/"+device+"/address")
	Expect(err).NotTo(HaveOccurred())
	return func(ctx context.Context, verb string) error {
		_, err4 := cluster.Exec(ctx, "client", "ip", "addr", verb, addrs[0]+"/32", "dev", device)
		_, err6 := cluster.Exec(ctx, "client", "ip", "addr", verb, addrs[1]+"/128", "dev", device, "nodad")
		return errors.Join(err4, err6)
	}, strings.TrimSpace(text)
}

// advertisements captures unsolicited neighbour advertisements on the segment, and returns a function that returns
// them. OVN itself announces routers only over IPv4.
func advertisements(ctx SpecContext) func() (string, error) {
	GinkgoHelper()
	frames, err := cluster.Start(ctx, "client", "tcpdump", nil, "tcpdump", "-lni", "eth0",
		"icmp6 and ip6[40] == 136 and dst ff02::1")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(frames.Terminate(ctx)).To(Succeed()) })
	captured := func() (string, error) { text, err := os.ReadFile(frames.Log()); return string(text), err }
	Eventually(captured).WithContext(ctx).Should(ContainSubstring("listening on eth0"))
	return captured
}
