// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// hostService is a Service with the ports of Service web that selects the pods labelled app=mixed.
const hostService = `
apiVersion: v1
kind: Service
metadata: {name: mixed}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: mixed}
  ports: [{name: t, port: 80, targetPort: t, protocol: TCP}, {name: u, port: 53, targetPort: u, protocol: UDP}]
`

// mixedPod returns the manifest of one of its pods, on the host network or on the pod network.
func mixedPod(name, node string, host bool) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: mixed}}
spec:
  nodeName: %s
  hostNetwork: %t
  containers:
  - {name: responder, image: x, ports: [{name: t, containerPort: 9083}, {name: u, containerPort: 9084, protocol: UDP}]}
`, name, node, host)
}

// startMixed starts the Service with the given pod manifests, and returns its addresses.
func startMixed(ctx context.Context, pods ...string) []netip.Addr {
	GinkgoHelper()
	kubectl(ctx, "", "apply", "-f", examples+"pool.yaml", "-f", examples+"l2domain.yaml")
	DeferCleanup(removeExamples)
	kubectl(ctx, hostService+strings.Join(pods, ""), "apply", "-f", "-")
	DeferCleanup(removeMixed)
	kubectl(ctx, "", "wait", "--for=condition=Ready", "pod", "-l", "app=mixed", "--timeout=2m")
	addrs := awaitAnnounced(ctx, "mixed")
	awaitSlots(ctx, "mixed", 9083, len(pods))
	Expect(cluster.Settle(ctx)).To(Succeed())
	return addrs
}

func removeMixed(ctx SpecContext) {
	kubectl(ctx, "", "delete", "--ignore-not-found", "--wait", "service/mixed")
	kubectl(ctx, "", "delete", "--wait", "pod", "-l", "app=mixed")
}

// sources counts the source ports of requests to Service mixed.
var sources atomic.Uint32

// nextSource returns a port that no client chooses by itself, like the ports of usePaths.
func nextSource() uint16 { return uint16(20000 + sources.Add(1)) }

// clientsOf returns the client address that a backend of Service mixed sees for requests from a network namespace. It
// searches for a source port from which the client reaches this backend.
func clientsOf(ctx context.Context, backend, from, network string, vip netip.Addr) netip.Addr {
	GinkgoHelper()
	port := map[string]uint16{"tcp": httpPort, "udp": echoPort}[network]
	var seen netip.AddrPort
	Eventually(func(ctx context.Context) (by string, err error) {
		by, seen, err = ask(ctx, from, network, nextSource(), netip.AddrPortFrom(vip, port))
		return by, err
	}).WithContext(ctx).Should(Equal(backend), "%s from %s to %s", network, from, vip)
	return seen.Addr()
}

var _ = Describe("A pod with hostNetwork", func() {
	It("takes traffic next to pods on the pod network, and only it sees a masqueraded client address",
		Label(smoke), func(ctx SpecContext) {
			before := foreignRows(ctx)
			addrs := startMixed(ctx, mixedPod("host", "n2", true), mixedPod("one", "n2", false))
			hidden := lab.MasqueradeAddresses()
			fromOutside(func(from string, own []netip.Addr) {
				families(func(i int, network string) {
					Expect(clientsOf(ctx, "host", from, network, addrs[i])).To(Equal(hidden[i]))
					Expect(clientsOf(ctx, "one", from, network, addrs[i])).To(Equal(own[i]))
				})
			})

			Eventually(condition("mixed", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(And(HavePrefix("True "),
				HaveSuffix("do not do: 172.18.0.12, fd00:18::c")))

			By("sending requests from pods to the Service and to the node")
			kubectl(ctx, mixedPod("two", "n1", false), "apply", "-f", "-")
			kubectl(ctx, "", "wait", "--for=condition=Ready", "pod/two", "--timeout=2m")
			n2, err := cluster.Node("n2")
			Expect(err).NotTo(HaveOccurred())
			families(func(i int, network string) {
				for _, name := range []string{"one", "two"} {
					for _, backend := range []string{"host", "one", "two"} {
						clientsOf(ctx, backend, lab.PodNetns("default", name), network, addrs[i])
					}
				}
				port := map[string]uint16{"tcp": 9083, "udp": 9084}[network]
				backend, seen := answer(ctx, lab.PodNetns("default", "one"), network, 0, netip.AddrPortFrom(n2.LAN[i].Addr(), port))
				Expect(backend).To(Equal("host"))
				Expect(n2.PodSubnets[i].Contains(seen.Addr())).To(BeTrue(), "the node sees the pod's own address: %s", seen)
			})

			By("removing the masquerade subnet of a node: its pod takes no traffic, the others do")
			const masquerade = "k8s.ovn.org/node-masquerade-subnet"
			node, err := client.CoreV1().Nodes().Get(ctx, "n2", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			value := node.Annotations[masquerade]
			Expect(value).NotTo(BeEmpty())
			DeferCleanup(func(ctx SpecContext) {
				kubectl(ctx, "", "annotate", "--overwrite", "node", "n2", masquerade+"="+value)
			})
			kubectl(ctx, "", "annotate", "node", "n2", masquerade+"-")
			Eventually(condition("mixed", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(
				And(HavePrefix("True "), ContainSubstring(masquerade), ContainSubstring("172.18.0.12"),
					ContainSubstring("fd00:18::c")))
			Eventually(backends(addrs, httpPort, echoPort)).WithContext(ctx).Should(Equal([]string{"one", "two"}))
			kubectl(ctx, "", "annotate", "node", "n2", masquerade+"="+value)
			Eventually(backends(addrs, httpPort, echoPort)).WithContext(ctx).Should(Equal([]string{"host", "one", "two"}))
			Eventually(condition("mixed", v1alpha1.ConditionAnnounced)).WithContext(ctx).
				ShouldNot(ContainSubstring("no traffic is sent"))

			By("checking that no rows are left")
			removeMixed(ctx)
			removeExamples(ctx)
			Eventually(func() string { return foreignRows(ctx) }).Should(Equal(before))
		})

	It("answers a client that retries from the same port after its first request was lost", func(ctx SpecContext) {
		schema, err := os.ReadFile(ovnprefix.Schema("ovn/ovn-nb.ovsschema"))
		Expect(err).NotTo(HaveOccurred())
		if !strings.Contains(string(schema), "ipv6_src") {
			Skip("OVN before 25.03 can't (ADR 10)")
		}
		addrs := startMixed(ctx, mixedPod("host", "n2", true))
		hidden := lab.MasqueradeAddresses()
		families(func(i int, network string) {
			at := netip.AddrPortFrom(addrs[i], map[string]uint16{"tcp": httpPort, "udp": echoPort}[network])
			clientsOf(ctx, "host", "client", network, addrs[i])
			source := nextSource()
			rule := func(verb string) error {
				_, err := cluster.Exec(ctx, "n2", "ip", "-f", map[bool]string{true: "inet", false: "inet6"}[hidden[i].Is4()],
					"rule", verb, "to", hidden[i].String(), "ipproto", network, "blackhole")
				return err
			}
			Expect(rule("add")).To(Succeed())
			_, _, lost := ask(ctx, "client", network, source, at)
			Expect(rule("del")).To(Succeed())
			Expect(lost).To(HaveOccurred(), "the node's answer to %s has no route", network)
			backend, seen, err := ask(ctx, "client", network, source, at)
			Expect(err).NotTo(HaveOccurred(), "%s to %s again", network, at)
			Expect(backend).To(Equal("host"))
			Expect(seen).To(Equal(netip.AddrPortFrom(hidden[i], source)))
		})
	})

	It("keeps its connections when the gateway dies", func(ctx SpecContext) {
		var pods []string
		where := map[string]string{}
		for _, n := range cluster.Nodes {
			pods = append(pods, mixedPod("host-"+n.Name, n.Name, true))
			where["host-"+n.Name] = n.Name
		}
		addrs := startMixed(ctx, pods...)
		families(func(i int, network string) {
			for name := range where {
				clientsOf(ctx, name, "client", network, addrs[i])
			}
		})
		warmUp(ctx, addrs)
		port, victim := activeGateway(ctx)
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.Restore(ctx, victim)).To(Succeed())
			Expect(cluster.Settle(ctx)).To(Succeed())
		})
		failsOver(ctx, addrs, where, port, victim)
	})
})

var _ = Describe("A node that connects to a Service", func() {
	It("is served by OVN-Kubernetes on the node, and its replies are not rerouted", func(ctx SpecContext) {
		s := startSite(ctx)
		web, err := service(ctx, "web")
		Expect(err).NotTo(HaveOccurred())
		var own []netip.Addr
		for _, text := range web.Spec.ClusterIPs {
			own = append(own, netip.MustParseAddr(text))
		}
		port := map[string]uint16{"tcp": httpPort, "udp": echoPort}
		var served []lab.Served
		for network := range port {
			served = append(served, lab.Served{
				Name: "web", Protocol: network, VIPs: s.vips, ClusterIPs: own, Port: port[network], Target: target(network),
				Pods: [][]netip.Addr{s.one.ips, s.two.ips, s.afar.ips},
			})
		}
		node := s.one.node
		undo, err := cluster.ServeOnNode(ctx, node.Name, served...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(undo(ctx)).To(Succeed()) })
		families(func(i int, network string) {
			at := netip.AddrPortFrom(s.vips[i], port[network])
			for _, want := range []pod{s.one, s.two, s.afar} {
				Eventually(func(ctx context.Context) (string, error) {
					backend, seen, err := ask(ctx, node.Name, network, 0, at)
					if err == nil && seen.Addr() != node.Join[i].Addr() { // via the segment, until OVN-Kubernetes serves the node
						return "", fmt.Errorf("%s sees %s, which is not hidden behind the gateway router", backend, seen.Addr())
					}
					return backend, err
				}).WithContext(ctx).Should(Equal(want.name), "%s to %s", network, at)
			}
			answer(ctx, "client", network, 0, at)
		})
	})
})
