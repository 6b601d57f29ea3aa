// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// unserved is a port on which pods and nodes listen, over TCP and UDP. No Service has this port.
const unserved = 9999

// otherTenant is a pod in another namespace.
const otherTenant = `---
apiVersion: v1
kind: Namespace
metadata: {name: tenant}
---
apiVersion: v1
kind: Pod
metadata: {name: curious, namespace: tenant}
spec:
  nodeName: n1
  containers: [{name: responder, image: x, ports: [{containerPort: 7777}]}]
`

// aliases returns the alias targets of the load balancers of a Service, without duplicates.
func aliases(ctx context.Context, name string) []netip.AddrPort {
	GinkgoHelper()
	out, err := cluster.NB(ctx, "--bare", "--columns=vips", "find", "Load_Balancer",
		"external_ids:slb.k8s.ovn.org/service=default/"+name)
	Expect(err).NotTo(HaveOccurred())
	found := map[netip.AddrPort]bool{}
	for _, text := range regexp.MustCompile(`(240\.[0-9.]+|\[fd3e:5b1c:[0-9a-f:]+\]):[0-9]+`).FindAllString(out, -1) {
		found[netip.MustParseAddrPort(text)] = true
	}
	var all []netip.AddrPort
	for a := range found {
		all = append(all, a)
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return all
}

// routeAliases routes the alias prefixes in a network namespace through one next hop per family.
func routeAliases(ctx context.Context, from string, via []netip.Addr) {
	GinkgoHelper()
	for i, prefix := range []string{"240.0.0.0/4", "fd3e:5b1c::/32"} {
		_, err := cluster.Exec(ctx, from, "ip", "route", "replace", prefix, "via", via[i].String())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := cluster.Exec(ctx, from, "ip", "route", "del", prefix)
			Expect(err).NotTo(HaveOccurred())
		})
	}
}

// answering returns the addresses that answer requests from a network namespace, over TCP or UDP. Each address gets
// three requests, because the first packet over a new path is lost.
func answering(ctx context.Context, from string, addrs []netip.AddrPort) []string {
	GinkgoHelper()
	answers := make([]string, 2*len(addrs))
	var steps []func()
	for i, a := range addrs {
		for j, network := range []string{"tcp", "udp"} {
			steps = append(steps, func() {
				for range 3 {
					if backend, seen, err := ask(ctx, from, network, 0, a); err == nil {
						answers[2*i+j] = fmt.Sprintf("%s %s over %s: %s, seen as %s", from, a, network, backend, seen)
						return
					}
				}
			})
		}
	}
	together(steps...)
	return slices.DeleteFunc(answers, func(s string) bool { return s == "" })
}

var _ = Describe("An alias", Label(smoke), func() {
	It("is reachable only through its shard and on ports that a Service serves", func(ctx SpecContext) {
		ports := fmt.Sprintf("{containerPort: %d}, {containerPort: %d, protocol: UDP}, {name: t", unserved, unserved)
		var pods []string
		for _, p := range []string{mixedPod("host", "n2", true), mixedPod("one", "n2", false)} {
			pods = append(pods, strings.Replace(p, "{name: t", ports, 1))
		}
		vips := startMixed(ctx, pods...)
		kubectl(ctx, otherTenant, "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "pod/curious", "-n", "tenant", "--wait") })
		kubectl(ctx, "", "wait", "--for=condition=Ready", "pod/curious", "-n", "tenant", "--timeout=2m")
		kubectl(ctx, "", "patch", "service", "mixed", "--type=merge", "-p",
			`{"spec":{"loadBalancerSourceRanges":["198.51.100.0/24","fd00:98::/64"]}}`)
		together(
			func() { eventuallyAnswered(ctx, "client", vips, httpPort, echoPort, 0) },
			func() { eventuallyAnswered(ctx, "remote", vips, httpPort, echoPort, 4) })

		all := aliases(ctx, "mixed")
		Expect(all).To(HaveLen(8), "two backends, families and protocols: %v", all)
		for _, a := range slices.Clone(all) {
			if other := netip.AddrPortFrom(a.Addr(), unserved); !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
		n2, err := cluster.Node("n2")
		Expect(err).NotTo(HaveOccurred())
		one, err := cluster.Kubectl(ctx, "", "get", "pod", "one", "-o", "jsonpath={.status.podIPs[*].ip}")
		Expect(err).NotTo(HaveOccurred())
		for i, ip := range strings.Fields(one) {
			for _, network := range []string{"tcp", "udp"} {
				answer(ctx, lab.PodNetns("tenant", "curious"), network, 0, netip.AddrPortFrom(netip.MustParseAddr(ip), unserved))
				answer(ctx, lab.PodNetns("default", "one"), network, 0, netip.AddrPortFrom(n2.LAN[i].Addr(), unserved))
			}
		}

		routeAliases(ctx, "client", vips)
		routeAliases(ctx, "router", vips) // for the clients behind it
		n1, err := cluster.Node("n1")
		Expect(err).NotTo(HaveOccurred())
		routeAliases(ctx, "n1", n1.PodGateways())
		froms := []string{"client", "remote", lab.PodNetns("tenant", "curious"), "n1"}
		answers := make([][]string, len(froms))
		var steps []func()
		for i, from := range froms {
			steps = append(steps, func() { answers[i] = answering(ctx, from, all) })
		}
		together(steps...)
		Expect(slices.Concat(answers...)).To(BeEmpty())
		By("checking that the Service is still reachable")
		eventuallyAnswered(ctx, "remote", vips, httpPort, echoPort, 4)
	})
})
