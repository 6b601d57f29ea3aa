// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxGuardedGap is the most that a client may lose of what only a guard sees.
const maxGuardedGap = 2500 * time.Millisecond

// leftOut is the domain's nodes that shall carry nothing, with reason and message.
func leftOut(ctx context.Context) (string, error) {
	return cluster.Kubectl(ctx, "", "get", "l2domain", "provider", "-o",
		`jsonpath={range .status.leftOutNodes[*]}{.name} {.reason}: {.message}{"\n"}{end}`)
}

// asksAnew makes the client ask for the MAC address of a VIP again and again, as a neighbour that has never seen it, and returns how
// long nobody had answered at most while something happens.
func asksAnew(ctx context.Context, vip netip.Addr, happens func()) time.Duration {
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
			// An entry that is deleted is asked for anew by multicast, three times a second apart; this is shorter.
			script := "ip neigh del $0 dev $(ip -o route get $0 | sed 's/.* dev \\([^ ]*\\).*/\\1/') 2>/dev/null; ping -c1 -W1 $0 >/dev/null"
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

var _ = Describe("a gateway with a guard", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
		DeferCleanup(func() { Expect(cluster.KillGuards()).To(Succeed()) })
	})

	// faultless returns when no guard reports anything.
	faultless := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func(ctx context.Context) (int, error) {
			l, err := client.CoordinationV1().Leases(v1alpha1.NodeFaultsNamespace).List(ctx, metav1.ListOptions{})
			return len(l.Items), err
		}).WithContext(ctx).Should(BeZero())
		Eventually(leftOut).WithContext(ctx).Should(BeEmpty())
	}

	It("whose provider uplink alone is lost is replaced within 2.5 s, and is eligible later without taking anything back", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		warmUp(ctx, addrs)
		port, victim := carrier(ctx)
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.LinkUp(ctx, victim)).To(Succeed()) })
		for _, r := range during(ctx, addrs, func() {
			stay(ctx, 500*time.Millisecond)
			Expect(cluster.UplinkDown(ctx, victim)).To(Succeed())
			awaitMove(ctx, port, victim)
		}) {
			expectServed(r, where, "none", maxGuardedGap)
		}
		_, heir := carrier(ctx)
		Eventually(leftOut).WithContext(ctx).Should(And(HavePrefix(victim+" Faulty: "), ContainSubstring("no carrier on eth-prov")))

		Eventually(preferred).WithContext(ctx).Should(Equal("chassis-"+heir), "once its claim has settled")
		for _, r := range during(ctx, addrs, func() {
			Expect(cluster.LinkUp(ctx, victim)).To(Succeed())
			faultless(ctx)
			stay(ctx, time.Second)
		}) {
			expectServed(r, where, "none", maxPlannedGap)
		}
		_, now := carrier(ctx)
		Expect(now).To(Equal(heir))

		By("the guard of the gateway dies, and that is no fault")
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.StartGuard(ctx, controller, heir)).To(Succeed()) })
		Expect(cluster.KillGuard(heir)).To(Succeed())
		Consistently(leftOut).WithContext(ctx).WithTimeout(2 * time.Second).Should(BeEmpty())
	})

	It("whose ovn-controller dies is replaced before new IPv6 neighbours have waited 2.5 s, with every connection alive", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		warmUp(ctx, addrs)
		port, victim := carrier(ctx)
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.Restore(ctx, victim)).To(Succeed())
			faultless(ctx)
		})
		var unanswered time.Duration
		for _, r := range during(ctx, addrs, func() {
			unanswered = asksAnew(ctx, addrs[1], func() {
				stay(ctx, 500*time.Millisecond)
				Expect(cluster.KillOVNController(victim)).To(Succeed())
				awaitMove(ctx, port, victim)
			})
		}) {
			expectServed(r, where, "none", maxGuardedGap)
		}
		By("IPv6 neighbours unanswered for " + unanswered.String())
		Expect(unanswered).To(BeNumerically("<", maxGuardedGap))
		Expect(leftOut(ctx)).To(And(HavePrefix(victim+" Faulty: "), ContainSubstring("ovn-controller")))
	})
})
