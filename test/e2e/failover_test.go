// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// flowsTo returns enough flows and connections to each VIP for pods of every node to be among their backends. The
// request rate is low enough for the lab, which forwards in user space, to handle all requests on a busy machine: loss
// for lack of CPU time is meaningless.
func flowsTo(addrs []netip.Addr) []probe.Spec {
	const interval = 50 * time.Millisecond
	var specs []probe.Spec
	for _, vip := range addrs {
		specs = append(specs,
			probe.Spec{Kind: probe.UDPFlow, Target: netip.AddrPortFrom(vip, echoPort), Count: 12, Interval: interval},
			probe.Spec{Kind: probe.TCPLong, Target: netip.AddrPortFrom(vip, httpPort), Count: 12, Interval: interval})
	}
	return specs
}

// expectServed checks the guarantees for flows to pods on nodes other than except: each is answered in the end, and no
// connection has broken. How long that took is printed (whileProbed), and measured by a benchmark.
func expectServed(r probe.Result, where map[string]string, except string) {
	GinkgoHelper()
	flows := 0
	for _, f := range r.Flows {
		// A connection that was not yet established when the node died may have been to a pod of that node.
		if node := where[f.Backend]; node == except || node == "" && except != "none" {
			continue
		}
		flows++
		Expect(f.Broken).To(BeEmpty(), "%v to %s", r.Spec, f.Backend)
		Expect(f.Answering).To(BeTrue(), "%v to %s is answered in the end", r.Spec, f.Backend)
	}
	Expect(flows).To(BeNumerically(">=", 1), "flows to pods on other nodes than %s, of %v", except, r.Spec)
}

// pathPorts counts the ranges of source ports that usePaths has used.
var pathPorts atomic.Uint32

// usePaths sends some traffic over every tunnel from a client, because the first packet over each tunnel is lost. The
// userspace conntrack tracks the flow of a packet that waited for neighbor resolution incorrectly until the flow is
// idle. Therefore single requests come first, until the client's address is resolved, and all use ports that no later
// client uses, and no later call: after a move of the cluster to another mode, an earlier flow of the same port would
// go on as before. A few packets for each flow suffice: what other clients lose may be measured meanwhile.
func usePaths(ctx context.Context, from string, addrs []netip.Addr) {
	GinkgoHelper()
	var specs []probe.Spec
	for _, a := range addrs {
		Eventually(func(ctx context.Context) error {
			_, _, err := ask(ctx, from, "udp", nextSource(), netip.AddrPortFrom(a, echoPort))
			return err
		}).WithContext(ctx).Should(Succeed(), "from %s to %s", from, a)
		const first, flows, ranges = 22000, 24, 400 // below the ports that clients choose by themselves
		specs = append(specs, probe.Spec{Kind: probe.UDPFlow, Target: netip.AddrPortFrom(a, echoPort), Count: flows,
			Interval: 100 * time.Millisecond, From: uint16(first + flows*(pathPorts.Add(1)%ranges))})
	}
	_, err := cluster.Probe(ctx, from, 300*time.Millisecond, specs...)
	Expect(err).NotTo(HaveOccurred())
}

// warmUp calls usePaths for all clients.
func warmUp(ctx context.Context, addrs []netip.Addr) {
	GinkgoHelper()
	fromOutside(func(from string, _ []netip.Addr) { usePaths(ctx, from, addrs) })
}

// servedWhile runs flows from both clients, and expects those to pods of other nodes than except, all for "none", to
// continue while happens runs.
func servedWhile(ctx context.Context, addrs []netip.Addr, where map[string]string, except string, happens func()) {
	GinkgoHelper()
	for _, r := range whileFlowing(ctx, flowsTo(addrs), happens) {
		expectServed(r, where, except)
	}
}

// failsOver kills the active gateway of a port, and expects connections to pods of other nodes to continue.
func failsOver(ctx context.Context, addrs []netip.Addr, where map[string]string, port, victim string) {
	GinkgoHelper()
	servedWhile(ctx, addrs, where, victim, func() {
		Expect(cluster.Kill(victim)).To(Succeed())
		awaitMove(ctx, port, victim)
	})
}

// during runs flows from both clients until happens returns.
func during(ctx context.Context, addrs []netip.Addr, happens func()) []probe.Result {
	GinkgoHelper()
	return whileProbed(ctx, flowsTo(addrs), happens)
}

// whileProbed runs streams from both clients until happens returns, which runs once each stream has been answered.
func whileProbed(ctx context.Context, specs []probe.Spec, happens func()) []probe.Result {
	GinkgoHelper()
	return probeBoth(ctx, specs, func(*lab.Probe) error { return nil }, happens)
}

// whileFlowing is like whileProbed, but happens runs once each flow has been answered.
func whileFlowing(ctx context.Context, specs []probe.Spec, happens func()) []probe.Result {
	GinkgoHelper()
	return probeBoth(ctx, specs, (*lab.Probe).Complete, happens)
}

func probeBoth(ctx context.Context, specs []probe.Spec, started func(*lab.Probe) error, happens func()) []probe.Result {
	GinkgoHelper()
	var mu sync.Mutex
	probes := map[string]*lab.Probe{}
	fromOutside(func(from string, _ []netip.Addr) {
		p, err := cluster.StartProbe(ctx, from, specs...)
		Expect(err).NotTo(HaveOccurred())
		Expect(started(p)).To(Succeed())
		mu.Lock()
		defer mu.Unlock()
		probes[from] = p
	})
	happens()
	var all []probe.Result
	fromOutside(func(from string, _ []netip.Addr) {
		results, err := probes[from].Finish()
		Expect(err).NotTo(HaveOccurred())
		mu.Lock()
		defer mu.Unlock()
		for _, r := range results {
			By(from + ": " + r.String())
		}
		all = append(all, results...)
	})
	return all
}

// activeGateway returns the gateway port of the only shard in use and the node that hosts it.
func activeGateway(ctx context.Context) (port, node string) {
	GinkgoHelper()
	ports := activeGateways(ctx)
	Expect(ports).To(HaveLen(1))
	for port = range ports {
	}
	Eventually(func(ctx context.Context) (_ string, err error) {
		node, err = cluster.ActiveNode(ctx, port)
		return node, err
	}).WithContext(ctx).ShouldNot(BeEmpty())
	return port, node
}

// preferred returns the preferred chassis of the only shard in use.
func preferred(ctx context.Context) (string, error) {
	out, err := cluster.NB(ctx, "--bare", "--columns=chassis_name", "find", "HA_Chassis", "priority=100")
	return strings.TrimSpace(out), err
}

// awaitMove waits until another node hosts a port.
func awaitMove(ctx context.Context, port, from string) {
	GinkgoHelper()
	Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).ShouldNot(Or(BeEmpty(), Equal(from)))
}

// awaitStandby waits until all gateways see each other, so that a returned gateway knows which one is active.
func awaitStandby(ctx context.Context) {
	GinkgoHelper()
	Eventually(cluster.TunnelsUp).WithContext(ctx).Should(Succeed())
}

// move runs `kubectl slb move` for a Service of namespace default. It returns the output.
func move(ctx context.Context, service, to string) (string, error) {
	cmd, err := cluster.AdminCommand(ctx, plugin, "move", "default/"+service, "--to", to)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl slb move %s --to %s: %w: %s", service, to, err, out)
	}
	return string(out), nil
}

var _ = Describe("A gateway", func() {
	It("that dies is replaced without breaking connections to other nodes, and stays standby when it returns",
		Label(smoke), func(ctx SpecContext) {
			addrs := startWeb(ctx)
			where := podNodes(ctx)
			warmUp(ctx, addrs)
			port, victim := activeGateway(ctx)
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.Restore(ctx, victim)).To(Succeed()) })

			failsOver(ctx, addrs, where, port, victim)
			_, successor := activeGateway(ctx)
			Eventually(condition("web", "slb.k8s.ovn.org/Announced")).WithContext(ctx).
				Should(ContainSubstring("gateway " + successor))

			Eventually(preferred).WithContext(ctx).Should(Equal("chassis-"+successor), "after its claim has settled")
			for _, r := range during(ctx, addrs, func() {
				Expect(cluster.Restore(ctx, victim)).To(Succeed())
				awaitStandby(ctx)
			}) {
				expectServed(r, where, victim)
			}
			Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(successor))
		})

	It("that loses its links is replaced", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		warmUp(ctx, addrs)
		port, victim := activeGateway(ctx)
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.LinkUp(ctx, victim)).To(Succeed())
			Expect(cluster.Settle(ctx)).To(Succeed())
		})
		servedWhile(ctx, addrs, where, victim, func() {
			Expect(cluster.LinkDown(ctx, victim)).To(Succeed())
			awaitMove(ctx, port, victim)
		})
	})

	It("that drains hands over its shard with all connections, and is a standby gateway afterwards",
		Label(smoke), func(ctx SpecContext) {
			addrs := startWeb(ctx)
			warmUp(ctx, addrs)
			where := podNodes(ctx)
			port, leaving := activeGateway(ctx)
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.Undrain(ctx, leaving)).To(Succeed()) })
			servedWhile(ctx, addrs, where, "none", func() {
				Expect(cluster.Drain(ctx, leaving)).To(Succeed())
				awaitMove(ctx, port, leaving)
			})
			_, successor := activeGateway(ctx)
			Expect(cluster.Undrain(ctx, leaving)).To(Succeed())
			Eventually(excludedNodes("provider")).WithContext(ctx).Should(BeEmpty())
			Eventually(gatewaysOf("provider")).WithContext(ctx).Should(And(ContainElement(leaving),
				HaveExactElements(successor, Not(BeEmpty()), Not(BeEmpty()))), "published with the node as a standby")
			Expect(cluster.Settle(ctx)).To(Succeed())
			Expect(cluster.ActiveNode(ctx, port)).To(Equal(successor))
		})

	It("hands over its shard with all connections if a Service is moved, and a request that stays moves nothing back",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			warmUp(ctx, addrs)
			where := podNodes(ctx)
			port, from := activeGateway(ctx)
			to := cluster.Nodes[slices.IndexFunc(cluster.Nodes, func(n lab.Node) bool { return n.Name != from })].Name
			servedWhile(ctx, addrs, where, "none", func() {
				Expect(move(ctx, "web", to)).To(And(ContainSubstring("from "+from+" to "+to+", with 1 Service:\n  default/web "),
					ContainSubstring("has moved to "+to)))
				Expect(cluster.ActiveNode(ctx, port)).To(Equal(to))
			})
			annotation := func(ctx context.Context) string {
				return kubectl(ctx, "", "get", "l2domain", "provider", "-o",
					`jsonpath={.metadata.annotations.slb\.k8s\.ovn\.org/move}`)
			}
			Expect(annotation(ctx)).To(BeEmpty(), "the command removes its request")
			Eventually(preferred).WithContext(ctx).Should(Equal("chassis-"+to), "after its claim has settled")
			Expect(cluster.ActiveNode(ctx, port)).To(Equal(to))

			By("moving the shard back with a request that stays")
			shard := kubectl(ctx, "", "get", "l2domain", "provider", "-o", "jsonpath={.status.shards[0].index}")
			request := fmt.Sprintf(`{"node":%q,"shards":[%s]}`, from, shard)
			kubectl(ctx, "", "annotate", "l2domain", "provider", v1alpha1.AnnotationMove+"="+request)
			Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(from))
			Eventually(func(ctx context.Context) string {
				return kubectl(ctx, "", "get", "l2domain", "provider", "-o", "jsonpath={.status.move.state}")
			}).WithContext(ctx).Should(Equal(v1alpha1.MoveCompleted))
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.Restore(ctx, from)).To(Succeed()) })
			failsOver(ctx, addrs, where, port, from)
			_, successor := activeGateway(ctx)
			Eventually(preferred).WithContext(ctx).Should(Equal("chassis-"+successor), "after its claim has settled")
			Expect(cluster.Restore(ctx, from)).To(Succeed())
			awaitStandby(ctx)
			Expect(publishedGateway(ctx)).To(Equal(successor))
			Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(successor))
			Expect(annotation(ctx)).To(Equal(request))
		})

	It("hands over to the last gateway that does not drain, and stays active if all gateways drain",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			warmUp(ctx, addrs)
			where := podNodes(ctx)
			port, leaving := activeGateway(ctx)
			var others []string
			for _, n := range cluster.Nodes {
				DeferCleanup(func(ctx SpecContext) { Expect(cluster.Undrain(ctx, n.Name)).To(Succeed()) })
				if n.Name != leaving {
					others = append(others, n.Name)
				}
			}
			last := others[1]
			for _, r := range during(ctx, addrs, func() {
				Expect(cluster.Drain(ctx, others[0])).To(Succeed())
				Expect(cluster.Drain(ctx, leaving)).To(Succeed())
				awaitMove(ctx, port, leaving)
				Eventually(cluster.ActiveNode).WithContext(ctx).WithArguments(port).Should(Equal(last))
				Expect(cluster.Drain(ctx, last)).To(Succeed())
				Eventually(ready("l2domain", "provider")).WithContext(ctx).Should(
					And(HavePrefix("True GatewaysDraining: "),
						ContainSubstring("all gateways are draining and stay active")))
				Expect(cluster.Settle(ctx)).To(Succeed())
				Expect(cluster.ActiveNode(ctx, port)).To(Equal(last))
				Expect(cluster.Undrain(ctx, leaving)).To(Succeed())
				awaitMove(ctx, port, last)
			}) {
				expectServed(r, where, "none")
			}
			_, now := activeGateway(ctx)
			Expect(now).To(Equal(leaving), "the only gateway that does not drain")
			Expect(kubectl(ctx, "", "get", "events", "-A",
				"--field-selector=involvedObject.kind=L2Domain,reason=GatewaysDraining", "-o", "name")).NotTo(BeEmpty())
		})
})
