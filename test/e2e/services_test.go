// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// answers asks a TCP and a UDP port of each address at once, and returns who answered by what was asked.
func answers(ctx context.Context, from string, addrs []netip.Addr, tcp, udp uint16) map[string]string {
	type question struct {
		network string
		at      netip.AddrPort
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	got := map[string]string{}
	for _, a := range addrs {
		for _, q := range []question{{"tcp", netip.AddrPortFrom(a, tcp)}, {"udp", netip.AddrPortFrom(a, udp)}} {
			asking.Go(func() {
				backend, _, err := cluster.Ask(ctx, from, q.network, 0, q.at)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got[q.network+" "+q.at.String()] = backend
				}
			})
		}
	}
	asking.Wait()
	return got
}

// eventuallyAnswered waits until a client is answered on all four of two families and two protocols, or on as many as told.
func eventuallyAnswered(ctx context.Context, from string, addrs []netip.Addr, tcp, udp uint16, count int) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) map[string]string { return answers(ctx, from, addrs, tcp, udp) }).WithContext(ctx).
		Should(HaveLen(count), "answers to %s", from)
}

var _ = Describe("loadBalancerSourceRanges", func() {
	It("admit the clients that they name and no others, at once, and say nothing about another Service's ports of the address", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		kubectl(ctx, "", "annotate", "service", "web", v1alpha1.AnnotationAllowSharedIP+"=door")
		kubectl(ctx, `
apiVersion: v1
kind: Service
metadata: {name: open, annotations: {slb.k8s.ovn.org/allow-shared-ip: door}}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: web}
  ports: [{name: t, port: 8000, targetPort: 8080, protocol: TCP}, {name: u, port: 8000, targetPort: 5353, protocol: UDP}]
`, "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "service", "open") })
		Expect(awaitAnnounced(ctx, "open")).To(Equal(addrs))
		for from := range outside() {
			eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4)
		}
		restrict := func(ranges string) {
			kubectl(ctx, "", "patch", "service", "web", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"loadBalancerSourceRanges":%s}}`, ranges))
		}

		By("those beyond the router")
		restrict(`["198.51.100.0/24","fd00:98::/64"]`)
		eventuallyAnswered(ctx, "client", addrs, httpPort, echoPort, 0)
		eventuallyAnswered(ctx, "remote", addrs, httpPort, echoPort, 4)
		eventuallyAnswered(ctx, "client", addrs, 8000, 8000, 4)

		By("one of the segment, and nobody over IPv6")
		restrict(`["10.50.0.200/32"]`)
		Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).Should(ContainSubstring("no client is admitted over IPv6"))
		eventuallyAnswered(ctx, "remote", addrs, httpPort, echoPort, 0)
		eventuallyAnswered(ctx, "client", addrs, httpPort, echoPort, 2)

		By("everyone again")
		restrict("null")
		for from := range outside() {
			eventuallyAnswered(ctx, from, addrs, httpPort, echoPort, 4)
		}
	})
})
