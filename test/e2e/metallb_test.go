// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

// metalLB is a configuration of MetalLB with the addresses of docs/examples.
const metalLB = `
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: public, namespace: metallb-system}
spec: {addresses: [10.50.0.100-10.50.0.199, "fd00:50::100-fd00:50::1ff"]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: public, namespace: metallb-system}
`

// metalLBRouted is a configuration of MetalLB that advertises addresses by BGP.
const metalLBRouted = `
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: public, namespace: metallb-system}
spec: {addresses: [203.0.113.0/28, "fd00:113::/120"], avoidBuggyIPs: true}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: public, namespace: metallb-system}
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: tor, namespace: metallb-system}
spec: {myASN: 64512, peerASN: 64513, peerAddress: 10.50.0.1, connectTime: 1s, dualStackAddressFamily: true}
`

// importMetalLB runs `kubectl slb import metallb` with a configuration of MetalLB.
func importMetalLB(ctx context.Context, manifests string, flags ...string) {
	GinkgoHelper()
	plugin, err := program.Path(ctx, "go-controller/cmd/kubectl-slb", GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	command, err := cluster.KubectlCommand(ctx) // the environment and the namespace in which kubectl runs
	Expect(err).NotTo(HaveOccurred())
	command.Args = slices.Concat(command.Args[:len(command.Args)-1], []string{plugin, "import", "--filename", "-"}, flags,
		[]string{"metallb"})
	command.Stdin = strings.NewReader(manifests)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	GinkgoWriter.Printf("%s", out)
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "", "delete", "--ignore-not-found", "l2domains/provider", "ipaddresspools/public",
			"bgpadvertisements/public", "bgppeers/tor")
	})
}

// allocatedByMetalLB writes addresses into the status of Service web, as MetalLB does.
func allocatedByMetalLB(ctx context.Context, addrs []netip.Addr) {
	GinkgoHelper()
	kubectl(ctx, "", "patch", "service", "web", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"loadBalancer":{"ingress":[{"ip":%q},{"ip":%q}]}}}`, addrs[0], addrs[1]))
}

// probedFrom runs probes from one client until happens returns.
func probedFrom(ctx context.Context, from string, specs []probe.Spec, happens func()) []probe.Result {
	GinkgoHelper()
	p, err := cluster.StartProbe(ctx, from, specs...)
	Expect(err).NotTo(HaveOccurred())
	happens()
	results, err := p.Finish()
	Expect(err).NotTo(HaveOccurred())
	return results
}

var _ = Describe("A migration from MetalLB", func() {
	It("at layer 2 keeps the addresses, and clients are served in the end", func(ctx SpecContext) {
		if cluster.Network().Real() {
			Skip("the stand-in for MetalLB's speaker is a node of the model")
		}
		if !onLAN() && !cluster.Network().Zones() { // otherwise they run
			Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
			DeferCleanup(func() { Expect(cluster.KillGuards()).To(Succeed()) })
		}
		kubectl(ctx, "", "apply", "-f", examples+"web.yaml")
		DeferCleanup(removeExamples)
		kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=2m")
		addrs := []netip.Addr{netip.MustParseAddr("10.50.0.133"), netip.MustParseAddr("fd00:50::133")}
		allocatedByMetalLB(ctx, addrs)
		speaker, err := cluster.StartMetalLBSpeaker(ctx, "n1", addrs, httpPort, echoPort)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(speaker.Remove(ctx)).To(Succeed()) })
		servedBy := func(backend string) {
			GinkgoHelper()
			fromOutside(func(from string, _ []netip.Addr) {
				for _, a := range addrs {
					Eventually(func(ctx context.Context) (string, error) {
						by, _, err := ask(ctx, from, "tcp", 0, netip.AddrPortFrom(a, httpPort))
						return by, err
					}).WithContext(ctx).Should(HavePrefix(backend), "%s to %s", from, a)
				}
			})
		}
		servedBy("metallb")
		Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).Should(HavePrefix("False ForeignAddress"))
		Expect(ourRows(ctx)).To(BeEmpty())

		var specs []probe.Spec
		for _, a := range addrs {
			specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(a, httpPort)},
				probe.Spec{Kind: probe.UDPNew, Target: netip.AddrPortFrom(a, echoPort), Interval: 50 * time.Millisecond})
		}
		whileProbed(ctx, specs, func() { // which prints the longest gap
			importMetalLB(ctx, metalLB, "--segment", "provider=10.50.0.0/24@10.50.0.1,fd00:50::/64@fd00:50::1")
			// Both answer now. An address in a status is not held, although another host has it.
			Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
			Expect(speaker.StopAnswering(ctx)).To(Succeed())
			servedBy("web-")
		})
	})

	It("by BGP moves one node after another, and clients are served in the end", Label(withoutLayer2),
		func(ctx SpecContext) {
			speakBGP(ctx)
			kubectl(ctx, "", "apply", "-f", examples+"web.yaml")
			DeferCleanup(removeExamples)
			kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=2m")
			addrs := []netip.Addr{netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("fd00:113::9")}
			allocatedByMetalLB(ctx, addrs)
			pods := podAddresses(ctx, "web")
			for i, a := range addrs {
				undo, err := cluster.ServiceOnRouters(ctx, "web", netip.AddrPortFrom(a, httpPort), pods[i])
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(func(ctx SpecContext) { Expect(undo(ctx)).To(Succeed()) })
			}
			speakers, err := cluster.StartMetalLBBGP(ctx, addrs)
			DeferCleanup(func() { Expect(speakers.StopAll()).To(Succeed()) })
			Expect(err).NotTo(HaveOccurred())
			var specs []probe.Spec
			var hops [][]string
			for i, a := range addrs {
				hops = append(hops, nodeAddresses(i, "n1", "n2", "n3"))
				Eventually(nextHops(a)).WithContext(ctx).Should(Equal(hops[i]))
				specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(a, httpPort)})
			}

			const label = "slb.k8s.ovn.org/bgp"
			router := strings.ReplaceAll(metalLBRouted, "10.50.0.1", cluster.BGPSegment().Host(1)[0].Addr().String())
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "label", "nodes", "--all", label+"-") })
			results := probedFrom(ctx, "remote", specs, func() {
				importMetalLB(ctx, router, "--bgp-nodes", label+"=true")
				for _, node := range []string{"n1", "n2", "n3"} {
					kubectl(ctx, "", "label", "node", node, label+"=true")
					Expect(speakers.Stop(node)).To(Succeed())
					Eventually(established(node)).WithContext(ctx).Should(HaveSuffix(" Established"))
					for i, a := range addrs {
						Eventually(nextHops(a)).WithContext(ctx).Should(Equal(hops[i]))
					}
				}
				importMetalLB(ctx, router)
				eventuallyServed(ctx, "remote", addrs)
			})
			for _, r := range results {
				By(r.String())
			}
			Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
			for i, a := range addrs {
				Expect(nextHops(a)(ctx)).To(Equal(hops[i]))
			}
		})
})
