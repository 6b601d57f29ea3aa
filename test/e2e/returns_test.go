// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/netip"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

const (
	// spare is a target port of Service spare. No process listens on it, so pods can use it as a source port.
	spare    = 9090
	nodePort = 7000
)

// outsidePorts returns ports of a server behind the router that no other spec, and no retry of a spec, has used. Each
// port is used once: the userspace conntrack of Open vSwitch 3.1.0 aborts if a connection through a gateway router's
// SNAT has the addresses and ports of an earlier one, and pod addresses are reused.
func outsidePorts() []uint16 {
	const count = 128
	ports := make([]uint16, count)
	for i := range ports {
		ports[i] = nextOutsidePort
		nextOutsidePort++
	}
	return ports
}

// site has Service web, Service spare with the same pods, two pods on one node and one on another, and a server behind
// the router that reports the client it saw.
type site struct {
	vips  []netip.Addr
	ports chan uint16 // unused ports of the server

	one, two, afar pod
}

type pod struct {
	name string
	node lab.Node
	ips  []netip.Addr
}

func (p pod) netns() string { return lab.PodNetns("default", p.name) }

func startSite(ctx context.Context) site {
	GinkgoHelper()
	ports := outsidePorts()
	s := site{vips: startWeb(ctx), ports: make(chan uint16, len(ports))}
	for _, port := range ports {
		s.ports <- port
	}
	kubectl(ctx, `
apiVersion: v1
kind: Service
metadata: {name: spare}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: web}
  ports: [{name: t, port: 9090, protocol: TCP}, {name: u, port: 9090, protocol: UDP}]
`, "apply", "-f", "-")
	DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "service", "spare") })
	awaitAnnounced(ctx, "spare")
	Eventually(func(ctx context.Context) (string, error) {
		return cluster.NB(ctx, "lr-policy-list", "ovn_cluster_router")
	}).WithContext(ctx).
		Should(ContainSubstring("9090"), "policies match replies from port 9090")
	stop, err := cluster.StartResponder(ctx, "remote", "world", ports...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(stop()).To(Succeed()) })
	s.choose(ctx)
	Expect(cluster.Settle(ctx)).To(Succeed())
	return s
}

// choose selects the pods.
func (s *site) choose(ctx context.Context) {
	GinkgoHelper()
	list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	Expect(err).NotTo(HaveOccurred())
	on := map[string][]pod{}
	for _, p := range list.Items {
		n, err := cluster.Node(p.Spec.NodeName)
		Expect(err).NotTo(HaveOccurred())
		found := pod{name: p.Name, node: n}
		for _, ip := range p.Status.PodIPs {
			found.ips = append(found.ips, netip.MustParseAddr(ip.IP))
		}
		slices.SortFunc(found.ips, netip.Addr.Compare) // IPv4 first
		on[n.Name] = append(on[n.Name], found)
	}
	Expect(len(on["n1"])).To(BeNumerically(">=", 2))
	Expect(on["n2"]).NotTo(BeEmpty())
	s.one, s.two, s.afar = on["n1"][0], on["n1"][1], on["n2"][0]
}

// answer retries until it gets an answer, because the first packet over a new path is lost. It returns the backend and
// the client address that the backend saw.
func answer(ctx context.Context, from, network string, source uint16, target netip.AddrPort) (backend string,
	seen netip.AddrPort) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (err error) {
		backend, seen, err = ask(ctx, from, network, source, target)
		return err
	}).WithContext(ctx).Should(Succeed(), "%s from %s port %d to %s", network, from, source, target)
	return backend, seen
}

// requestOutside sends a request from a pod to the server behind the router. It returns the client address that the
// server saw.
func (s *site) requestOutside(ctx context.Context, p pod, network string, source uint16, i int) (seen netip.AddrPort) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		backend, client, err := ask(ctx, p.netns(), network, source, netip.AddrPortFrom(lab.RemoteAddresses()[i], <-s.ports))
		if err == nil {
			Expect(backend).To(Equal("world"))
		}
		seen = client
		return err
	}).WithContext(ctx).Should(Succeed(), "%s from %s port %d to the outside", network, p.name, source)
	return seen
}

// families calls do concurrently for each family and protocol, with the index of the family.
func families(do func(i int, network string)) {
	GinkgoHelper()
	var steps []func()
	for i := range 2 {
		for _, network := range []string{"tcp", "udp"} {
			steps = append(steps, func() { do(i, network) })
		}
	}
	together(steps...)
}

// target returns a target port of Deployment web.
func target(network string) uint16 {
	if network == "tcp" {
		return 8080
	}
	return 5353
}

var _ = Describe("The return path of a reply", func() {
	It("is the node of a NodePort connection with policy Local, and the shard of a Service connection",
		func(ctx SpecContext) {
			s := startSite(ctx)
			nodePorts := map[string]uint16{"tcp": 31000, "udp": 31001} // Two Services can't share a node port.
			for network, port := range nodePorts {
				undo, err := cluster.NodePortLocal(ctx, s.one.node.Name, network, port, s.one.ips, target(network))
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(func(ctx SpecContext) { Expect(undo(ctx)).To(Succeed()) })
			}
			families(func(i int, network string) {
				at := netip.AddrPortFrom(s.one.node.LAN[i].Addr(), nodePorts[network])
				// OVN-Kubernetes itself may hide the client of a Service that it has just started to serve.
				Eventually(func(ctx context.Context) (netip.Addr, error) {
					backend, seen, err := ask(ctx, "remote", network, 0, at)
					if err == nil {
						Expect(backend).To(Equal(s.one.name))
					}
					return seen.Addr(), err
				}).WithContext(ctx).Should(Equal(lab.RemoteAddresses()[i]), "the client's own address")
				fromOutside(func(from string, own []netip.Addr) {
					port := map[string]uint16{"tcp": httpPort, "udp": echoPort}[network]
					Eventually(func(ctx context.Context) (string, error) {
						backend, seen, err := ask(ctx, from, network, 0, netip.AddrPortFrom(s.vips[i], port))
						if err == nil {
							Expect(seen.Addr()).To(Equal(own[i]))
						}
						return backend, err
					}).WithContext(ctx).Should(Equal(s.one.name), "the same pod through the Service")
				})
			})
		})

	It("is not used by connections that pods open to the outside from a target port", func(ctx SpecContext) {
		s := startSite(ctx)
		families(func(i int, network string) {
			for _, source := range []uint16{0, spare} {
				seen := s.requestOutside(ctx, s.one, network, source, i)
				Expect(seen.Addr()).To(Equal(s.one.node.LAN[i].Addr()), "the address of its node")
			}
		})
	})

	It("is not used by egress traffic of a pod that leaves through another node, as with EgressIP", func(ctx SpecContext) {
		s := startSite(ctx)
		undo, err := cluster.EgressVia(ctx, "n3", s.one.ips)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(undo(ctx)).To(Succeed()) })
		n3, err := cluster.Node("n3")
		Expect(err).NotTo(HaveOccurred())
		families(func(i int, network string) {
			for _, source := range []uint16{0, spare} {
				seen := s.requestOutside(ctx, s.one, network, source, i)
				Expect(seen.Addr()).To(Equal(n3.LAN[i].Addr()), "the address of the other node")
			}
			port := map[string]uint16{"tcp": httpPort, "udp": echoPort}[network]
			Eventually(func(ctx context.Context) (string, error) {
				backend, _, err := ask(ctx, "remote", network, 0, netip.AddrPortFrom(s.vips[i], port))
				return backend, err
			}).WithContext(ctx).Should(Equal(s.one.name), "the pod through the Service")
		})
	})

	It("leads back to a pod that connects to its own Service, whether the backend is the pod, on its node or remote",
		func(ctx SpecContext) {
			s := startSite(ctx)
			families(func(i int, network string) {
				port := map[string]uint16{"tcp": httpPort, "udp": echoPort}[network]
				for _, want := range []pod{s.one, s.two, s.afar} {
					Eventually(func(ctx context.Context) (string, error) {
						backend, _, err := ask(ctx, s.one.netns(), network, 0, netip.AddrPortFrom(s.vips[i], port))
						return backend, err
					}).WithContext(ctx).Should(Equal(want.name))
				}
			})
		})

	It("is not used inside the cluster, from pod to pod, pod to node and node to pod", func(ctx SpecContext) {
		s := startSite(ctx)
		stop, err := cluster.StartResponder(ctx, s.one.node.Name, "node", nodePort)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(stop()).To(Succeed()) })
		families(func(i int, network string) {
			for _, other := range []pod{s.two, s.afar} {
				backend, seen := answer(ctx, s.one.netns(), network, spare, netip.AddrPortFrom(other.ips[i], target(network)))
				Expect(backend).To(Equal(other.name))
				Expect(seen).To(Equal(netip.AddrPortFrom(s.one.ips[i], spare)))
			}
			for _, own := range []netip.Addr{s.one.node.LAN[i].Addr(), s.one.node.ManagementPort()[i]} {
				backend, seen := answer(ctx, s.one.netns(), network, spare, netip.AddrPortFrom(own, nodePort))
				Expect(backend).To(Equal("node"))
				Expect(seen).To(Equal(netip.AddrPortFrom(s.one.ips[i], spare)))
			}
			for _, p := range []pod{s.one, s.afar} {
				backend, seen := answer(ctx, s.one.node.Name, network, spare, netip.AddrPortFrom(p.ips[i], target(network)))
				Expect(backend).To(Equal(p.name))
				Expect(seen.Addr()).To(Equal(s.one.node.ManagementPort()[i]))
			}
		})
	})
})
