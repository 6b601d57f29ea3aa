// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// segments returns the names of the domains in testdata/segments.yaml, of their Services and of their clients.
func segments() []string { return []string{"dmz", "tagged"} }

// everywhere returns the clients of all segments and the client behind the router, with their addresses.
func everywhere() map[string][]netip.Addr {
	all := outside()
	all["dmz"], all["tagged"] = lab.DMZAddresses(), lab.TaggedAddresses()
	return all
}

// startSegments applies testdata/segments.yaml. It returns the addresses of each segment's Service once all its pods
// are backends.
func startSegments(ctx context.Context) map[string][]netip.Addr {
	GinkgoHelper()
	kubectl(ctx, "", "apply", "-f", "testdata/segments.yaml")
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "", "delete", "--wait", "-f", "testdata/segments.yaml")
		awaitRemoved(ctx)
	})
	kubectl(ctx, "", "rollout", "status", "deployment/door", "--timeout=2m")
	addrs := map[string][]netip.Addr{}
	for i, name := range segments() {
		addrs[name] = awaitAnnounced(ctx, name)
		Expect(addrs[name]).To(HaveLen(2))
		awaitSlots(ctx, name, 8060+10*i, 3)
	}
	Expect(cluster.Settle(ctx)).To(Succeed())
	return addrs
}

// neighbours returns the addresses that answer neighbor resolution on the client's own segment, which the client's
// routes would not use. The client sends three requests, one second apart, as hosts do (RFC 4861,
// MAX_MULTICAST_SOLICIT). A single solicitation once went unanswered for an unknown reason.
func neighbours(ctx context.Context, client string, addrs []netip.Addr) []netip.Addr {
	GinkgoHelper()
	script := `for a in "$@"; do ip route replace $a dev eth0; ip neigh flush to $a; ping -c1 -W3 $a >/dev/null & done; wait
		ip neigh show; for a in "$@"; do ip route del $a dev eth0; ip neigh flush to $a; done`
	args := []string{"sh", "-c", script, "sh"}
	for _, a := range addrs {
		args = append(args, a.String())
	}
	out, err := cluster.Exec(ctx, client, args...)
	Expect(err).NotTo(HaveOccurred())
	var answered []netip.Addr
	for line := range strings.Lines(out) {
		addr, err := netip.ParseAddr(strings.Fields(line)[0])
		Expect(err).NotTo(HaveOccurred())
		if slices.Contains(addrs, addr) && strings.Contains(line, "lladdr") {
			answered = append(answered, addr)
		}
	}
	return answered
}

// probed returns the results of a client for each VIP over a few flows and connections, once all of them were answered.
// Packets are lost until OVN has resolved the neighbors on a path.
func probed(ctx context.Context, client string, vips []netip.Addr) (results []probe.Result) {
	GinkgoHelper()
	var specs []probe.Spec
	for _, vip := range vips {
		specs = append(specs,
			probe.Spec{Kind: probe.UDPFlow, Target: netip.AddrPortFrom(vip, echoPort), Count: 3},
			probe.Spec{Kind: probe.TCPLong, Target: netip.AddrPortFrom(vip, httpPort), Count: 3})
	}
	Eventually(func(ctx context.Context) (failed []string, err error) {
		results, err = cluster.Probe(ctx, client, 300*time.Millisecond, specs...)
		for _, r := range results {
			if slices.ContainsFunc(r.Flows, func(f probe.Flow) bool { return f.Sent == f.Lost || f.Broken != "" }) {
				failed = append(failed, r.String())
			}
		}
		return failed, err
	}).WithContext(ctx).Should(BeEmpty(), "flows of %s without an answer", client)
	return results
}

// actives returns the nodes that host shards, without duplicates.
func actives(ctx context.Context) ([]string, error) {
	ports, err := cluster.GatewayPorts(ctx)
	nodes := map[string]bool{}
	for _, chassis := range ports {
		nodes[strings.TrimPrefix(chassis, "chassis-")] = true
	}
	return slices.Sorted(maps.Keys(nodes)), err
}

var _ = Describe("L2Domains on several segments", func() {
	It("each answer on their own segment, and are reachable from all segments, from beyond, and from pods",
		func(ctx SpecContext) {
			addrs := startSegments(ctx)
			vips := slices.Concat(addrs["dmz"], addrs["tagged"])
			for client, own := range everywhere() {
				Expect(neighbours(ctx, client, vips)).To(ConsistOf(addrs[client]), "answers on the segment of %s", client)
				for _, r := range probed(ctx, client, vips) {
					Expect(r.Clients).To(HaveLen(1), "clients that the backends saw")
					if r.Spec.Target.Addr().Is4() {
						Expect(r.Clients).To(HaveKey(own[0].String()))
					} else {
						Expect(r.Clients).To(HaveKey(own[1].String()))
					}
				}
			}
			pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=door"})
			Expect(err).NotTo(HaveOccurred())
			for _, p := range pods.Items {
				probed(ctx, lab.PodNetns(p.Namespace, p.Name), vips)
			}
		})

	It("list excluded nodes that are not attached, and report that no node serves a pool", func(ctx SpecContext) {
		addrs := startSegments(ctx)
		Eventually(ready("l2domain", "dmz")).WithContext(ctx).Should(And(HavePrefix("True TooFewGateways: "),
			ContainSubstring("can't be a gateway: n1 "),
			ContainSubstring(`ovn-bridge-mappings of node "n1" are physnet:br-ex,provider:br-provider: none is for physical network "dmz"`)))
		Eventually(excludedNodes("dmz")).WithContext(ctx).Should(HaveExactElements(HavePrefix("n1 NotAttached: ")))

		By("detaching the active node from the segment")
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.Remap(ctx, "n2")).To(Succeed())
			Expect(cluster.Remap(ctx, "n3")).To(Succeed())
		})
		Expect(cluster.Unmap(ctx, "n2", "dmz")).To(Succeed())
		for _, name := range segments() {
			Eventually(excludedNodes(name)).WithContext(ctx).Should(HaveExactElements(HavePrefix("n1 NotAttached: "),
				HavePrefix("n2 NotAttached: ")))
		}
		Eventually(actives).WithContext(ctx).Should(Equal([]string{"n3"}))
		By("checking that the other node serves the addresses")
		for name := range addrs {
			for _, vip := range addrs[name] {
				Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(HavePrefix("pod=door-"))
			}
		}

		By("detaching all nodes")
		Expect(cluster.Unmap(ctx, "n3", "dmz")).To(Succeed())
		for _, name := range segments() {
			Eventually(ready("l2domain", name)).WithContext(ctx).
				Should(HavePrefix("False NoGateway: none of the 3 selected nodes can be a gateway"))
			Eventually(ready("ipaddresspool", name)).WithContext(ctx).Should(And(HavePrefix("False NoGateway: "),
				ContainSubstring(`L2Domain "`+name+`"`)))
			Eventually(condition(name, v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("False NoGateway: "))
		}

		By("attaching the nodes again")
		Expect(cluster.Remap(ctx, "n2")).To(Succeed())
		Expect(cluster.Remap(ctx, "n3")).To(Succeed())
		for _, name := range segments() {
			Expect(awaitAnnounced(ctx, name)).To(Equal(addrs[name]))
			Eventually(ready("ipaddresspool", name)).WithContext(ctx).Should(HavePrefix("True Ready: "))
			Eventually(excludedNodes(name)).WithContext(ctx).Should(HaveExactElements(HavePrefix("n1 NotAttached: ")))
		}
	})
})
