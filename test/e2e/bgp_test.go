// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/routes"
)

// nextHops returns a function that gets the next hops for an address from the router's kernel, sorted.
func nextHops(vip netip.Addr) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		family := "-4"
		if vip.Is6() {
			family = "-6"
		}
		out, err := cluster.Exec(ctx, "router", "ip", family, "route", "show", netip.PrefixFrom(vip, vip.BitLen()).String())
		var hops []string
		words := strings.Fields(out)
		for i, word := range words {
			if word == "via" {
				hops = append(hops, words[i+1])
			}
		}
		slices.Sort(hops)
		return hops, err
	}
}

// watchRoutes watches the routes of the router's kernel. The returned function checks that the router has deleted none
// that it had learned by BGP.
func watchRoutes(ctx context.Context) (expectNoneDeleted func()) {
	GinkgoHelper()
	var mu sync.Mutex
	var wrong []string
	Expect(routes.Watch(ctx, cluster.Netns("router"), func(c routes.Change, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case c.Deleted && c.Protocol == unix.RTPROT_BGP:
			wrong = append(wrong, c.Prefix.String())
		}
	})).To(Succeed())
	return func() {
		GinkgoHelper()
		mu.Lock()
		defer mu.Unlock()
		Expect(wrong).To(BeEmpty(), "the router's kernel deleted a route")
	}
}

// eventuallyServed waits until each address answers a request to its HTTP port from a client.
func eventuallyServed(ctx context.Context, from string, addrs []netip.Addr) {
	GinkgoHelper()
	for _, a := range addrs {
		Eventually(func(ctx context.Context) error {
			_, _, err := ask(ctx, from, "tcp", 0, netip.AddrPortFrom(a, httpPort))
			return err
		}).WithContext(ctx).Should(Succeed(), "from %s to %s", from, a)
	}
}

// established returns a function that gets the router ID and the session state of a node.
func established(node string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return cluster.Kubectl(ctx, "", "get", "bgpnodestatus", node, "-o",
			"jsonpath={.status.routerID} {.status.sessions[*].state}")
	}
}

// outdate marks the report of a daemon that has ended, by its router ID: the sessions in it may still be Established.
func outdate(ctx context.Context, node string) {
	GinkgoHelper()
	kubectl(ctx, "", "patch", "bgpnodestatus", node, "--subresource=status", "--type=merge",
		`-p={"status":{"routerID":"192.0.2.255"}}`)
}

// refreshed returns an error until the router has all routes of each session. Of a session that ends before, it would
// delete the routes that are left of the one before (RFC 4724 section 4.2).
func refreshed(ctx context.Context) error {
	var all map[string]struct {
		Restart struct {
			Ended struct{ IPv4Unicast, IPv6Unicast bool } `json:"endOfRibRecv"`
		} `json:"gracefulRestartInfo"`
	}
	if err := cluster.Router().Show(ctx, "show bgp neighbors json", &all); err != nil {
		return err
	}
	if len(all) != len(cluster.Nodes) {
		return fmt.Errorf("the router has %d neighbors", len(all))
	}
	for addr, n := range all {
		if ended := n.Restart.Ended; !ended.IPv4Unicast || !ended.IPv6Unicast {
			return fmt.Errorf("the router awaits routes of %s: %+v", addr, ended)
		}
	}
	return nil
}

// nodeAddresses returns the gateway addresses of the named nodes, sorted like those of nextHops.
func nodeAddresses(family int, names ...string) []string {
	GinkgoHelper()
	var addrs []string
	for _, name := range names {
		n, err := cluster.Node(name)
		Expect(err).NotTo(HaveOccurred())
		addrs = append(addrs, n.LAN[family].Addr().String())
	}
	slices.Sort(addrs)
	return addrs
}

// podAddresses returns the addresses of the pods with the label app, by family.
func podAddresses(ctx context.Context, app string) [2][]netip.AddrPort {
	GinkgoHelper()
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	Expect(err).NotTo(HaveOccurred())
	var out [2][]netip.AddrPort
	for _, p := range pods.Items {
		for i, ip := range p.Status.PodIPs {
			out[i] = append(out[i], netip.AddrPortFrom(netip.MustParseAddr(ip.IP), 8080))
		}
	}
	return out
}

// startTold calls speakBGP and tell with all of testdata/bgp.yaml and testdata/routed.yaml.
func startTold(ctx context.Context) {
	GinkgoHelper()
	speakBGP(ctx)
	DeferCleanup(awaitRemoved)
	tell(ctx, "testdata/bgp.yaml", "testdata/routed.yaml")
}

// speakBGP starts BGP on the nodes and the router. The caller is BeforeAll of an ordered container, or a spec.
func speakBGP(ctx context.Context) {
	GinkgoHelper()
	stop, err := cluster.SpeakBGP(ctx, manifests+"/components/bgp/rbac.yaml", controller)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(stop(ctx)).To(Succeed()) })
}

// tell applies files with BGPPeer tor, and returns when the router has a session with each node.
func tell(ctx context.Context, files ...string) {
	GinkgoHelper()
	router := "peerAddress: " + cluster.BGPSegment().Host(1)[0].Addr().String()
	var objects string
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		objects += "---\n" + strings.ReplaceAll(string(manifest), "peerAddress: 10.50.0.1", router)
	}
	Expect(objects).To(ContainSubstring(router))
	kubectl(ctx, objects, "apply", "-f", "-")
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, objects, "delete", "--ignore-not-found", "--wait", "-f", "-")
		kubectl(ctx, "", "delete", "bgpnodestatuses", "--all")
	})
	kubectl(ctx, "", "rollout", "status", "deployment/told", "--timeout=2m")
	Eventually(ready("bgppeer", "tor")).WithContext(ctx).Should(HavePrefix("True Ready: established session on 3 nodes"))
}

var _ = Describe("Addresses advertised by BGP", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { startTold(ctx) })

	It("are reachable through all nodes, and through the remaining ones while a node drains", Label(withoutLayer2, smoke),
		func(ctx SpecContext) {
			vips := awaitAnnounced(ctx, "told")
			Eventually(condition("told", v1alpha1.ConditionAnnounced)).WithContext(ctx).
				Should(ContainSubstring("advertised over BGP by nodes n1, n2, n3 to BGPPeer tor"))
			pods := podAddresses(ctx, "told")
			for i, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(nodeAddresses(i, "n1", "n2", "n3")))
				undo, err := cluster.ServiceOnRouters(ctx, "told", netip.AddrPortFrom(vip, httpPort), pods[i])
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(func(ctx SpecContext) { Expect(undo(ctx)).To(Succeed()) })
			}
			for _, vip := range vips {
				target := netip.AddrPortFrom(vip, httpPort)
				ways := map[netip.Addr]bool{}
				Eventually(func(ctx context.Context) (int, error) {
					_, seen, err := cluster.Ask(ctx, "remote", "tcp", 0, target)
					ways[seen.Addr()] = true
					delete(ways, netip.Addr{})
					return len(ways), err
				}).WithContext(ctx).Should(Equal(3), "gateway routers that a client's connections passed")
			}

			By("draining a node")
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.Undrain(ctx, "n2")).To(Succeed()) })
			var specs []probe.Spec
			for _, vip := range vips {
				specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(vip, httpPort)})
			}
			probing, err := cluster.StartProbe(ctx, "remote", specs...)
			Expect(err).NotTo(HaveOccurred())
			Expect(cluster.Drain(ctx, "n2")).To(Succeed())
			for i, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(nodeAddresses(i, "n1", "n3")))
			}
			results, err := probing.Finish()
			Expect(err).NotTo(HaveOccurred())
			for _, r := range results {
				// The router redistributes its flows. Of a connection that is being established, one packet may arrive
				// through one node and the next packet through another.
				By(r.String())
			}
			eventuallyServed(ctx, "remote", vips)
			Eventually(ready("bgpnodestatus", "n2")).WithContext(ctx).Should(HavePrefix("False Draining"))
			Expect(cluster.Undrain(ctx, "n2")).To(Succeed())
			for i, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(nodeAddresses(i, "n1", "n2", "n3")))
			}
		})

	It("keep their routes while BFD detects that the BGP daemon of a node is killed or replaced", Label(withoutLayer2),
		func(ctx SpecContext) {
			Eventually(func(ctx context.Context) (string, error) {
				return cluster.Kubectl(ctx, "", "get", "bgpnodestatuses", "-o", "jsonpath={.items[*].status.sessions[*].bfd}")
			}).WithContext(ctx).Should(Equal("Up Up Up"))
			keepRoutes(ctx)
		})

	It("are withdrawn by the router when BFD detects the loss of a node",
		Label(withoutLayer2), func(ctx SpecContext) {
			vips := awaitAnnounced(ctx, "told")
			DeferCleanup(func(ctx SpecContext) { Expect(cluster.LinkUp(ctx, "n3")).To(Succeed()) })
			pulled := time.Now()
			Expect(cluster.LinkDown(ctx, "n3")).To(Succeed())
			for i, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(nodeAddresses(i, "n1", "n2")))
			}
			took := time.Since(pulled)
			By("withdrawn after " + took.String() + "; BFD allows for 5 x 300 ms, the hold time is 9 s")
			Expect(cluster.LinkUp(ctx, "n3")).To(Succeed())
			for i, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(nodeAddresses(i, "n1", "n2", "n3")))
			}
			Eventually(ready("bgppeer", "tor")).WithContext(ctx).Should(HavePrefix("True Ready: established session on 3 nodes"))
		})

	It("are advertised only by nodes with endpoints if externalTrafficPolicy is Local", Label(withoutLayer2),
		func(ctx SpecContext) {
			vips := awaitAnnounced(ctx, "told")
			kubectl(ctx, "", "scale", "deployment/told", "--replicas=1")
			kubectl(ctx, "", "patch", "service", "told", "-p", `{"spec":{"externalTrafficPolicy":"Local"}}`)
			DeferCleanup(func(ctx SpecContext) {
				kubectl(ctx, "", "patch", "service", "told", "-p", `{"spec":{"externalTrafficPolicy":"Cluster"}}`)
				kubectl(ctx, "", "scale", "deployment/told", "--replicas=3")
				kubectl(ctx, "", "rollout", "status", "deployment/told", "--timeout=2m")
			})
			where := func(ctx context.Context) []string {
				pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=told"})
				Expect(err).NotTo(HaveOccurred())
				var nodes []string
				for _, p := range pods.Items {
					nodes = append(nodes, p.Spec.NodeName)
				}
				return nodes
			}
			Eventually(where).WithContext(ctx).Should(HaveLen(1))
			for i, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(nodeAddresses(i, where(ctx)...)))
			}
			kubectl(ctx, "", "scale", "deployment/told", "--replicas=0")
			for _, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(BeEmpty())
			}
			Eventually(condition("told", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("False NoEndpoints"))
		})

	It("are reachable through the active gateway with nextHop Gateway, and preserve the client's address",
		func(ctx SpecContext) {
			anchors, vips := awaitAnnounced(ctx, "anchor"), awaitAnnounced(ctx, "routed")
			for i, vip := range vips {
				Eventually(nextHops(vip)).WithContext(ctx).Should(HaveEach(anchors[i].String()))
				Eventually(func(ctx context.Context) (netip.Addr, error) {
					_, seen, err := cluster.Ask(ctx, "remote", "tcp", 0, netip.AddrPortFrom(vip, 8000))
					return seen.Addr(), err
				}).WithContext(ctx).Should(Equal(lab.RemoteAddresses()[i]))
			}
		})

	It("keep their routes while the BGP daemon of a node is killed or replaced, and restarts", Label(withoutLayer2, smoke),
		func(ctx SpecContext) {
			bePatient(ctx)
			keepRoutes(ctx)
		})
})

// installLastRoute returns when the router's kernel has the routes of one more Service, through all nodes (by family):
// FRR handles the routes of a session in their order, so the kernel has all earlier changes then, too. FRR 8.4 changes
// an IPv6 route by deleting it first.
func installLastRoute(ctx context.Context, all [][]string) {
	GinkgoHelper()
	last := strings.ReplaceAll(`
{apiVersion: v1, kind: Service, metadata: {name: last, annotations: {GROUP/address-pool: told}},
  spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv6], selector: {app: told},
    ports: [{port: 80, targetPort: 8080}]}}`, "GROUP", v1alpha1.GroupName)
	kubectl(ctx, last, "apply", "-f", "-")
	DeferCleanup(func(ctx SpecContext) { kubectl(ctx, last, "delete", "-f", "-") })
	for i, vip := range awaitAnnounced(ctx, "last") {
		Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(all[i]))
	}
}

// keepRoutes kills the BGP daemon of a node, and replaces it, while the router must delete no route.
func keepRoutes(ctx context.Context) {
	GinkgoHelper()
	vips := awaitAnnounced(ctx, "told")
	all := [][]string{nodeAddresses(0, "n1", "n2", "n3"), nodeAddresses(1, "n1", "n2", "n3")}
	for i, vip := range vips {
		Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(all[i]))
	}
	installLastRoute(ctx, all)
	guard := fmt.Sprintf("--enable-l2-guard=%t", onLAN()) // as before, because later specs need it there
	expectNoneDeleted := watchRoutes(ctx)
	for _, end := range []func() error{
		func() error { return cluster.KillGuard("n1") },
		func() error { return cluster.StopGuard(ctx, "n1") },
	} {
		id := kubectl(ctx, "", "get", "bgpnodestatus", "n1", "-o", "jsonpath={.status.routerID}")
		Expect(end()).To(Succeed())
		outdate(ctx, "n1")
		Expect(cluster.StartGuard(ctx, controller, "n1", "--enable-bgp", guard)).To(Succeed())
		Eventually(established("n1")).WithContext(ctx).Should(Equal(id + " Established"))
		Eventually(refreshed).WithContext(ctx).Should(Succeed())
		for i, vip := range vips {
			Expect(nextHops(vip)(ctx)).To(Equal(all[i]))
		}
	}
	expectNoneDeleted()
}
