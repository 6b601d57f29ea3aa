// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
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
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// named returns a Service with named target ports that each pod resolves differently, ports that share a number, and
// many further ports.
func named() string {
	var out strings.Builder
	out.WriteString(`
apiVersion: v1
kind: Service
metadata: {name: named}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: named}
  ports:
  - {name: t, port: 53, targetPort: t, protocol: TCP}
  - {name: u, port: 53, targetPort: u, protocol: UDP}
  - {name: s, port: 53, targetPort: 5300, protocol: SCTP}
`)
	for i := range manyPorts {
		fmt.Fprintf(&out, "  - {name: p%d, port: %d, targetPort: t, protocol: TCP}\n", i, firstPort+i)
	}
	return out.String()
}

const firstPort, manyPorts = 10_000, 60

// byHand creates the endpoints of a Service without a selector. Its argument has the conditions of each pod's endpoint.
func byHand(ctx context.Context, conditions map[string]string) {
	GinkgoHelper()
	var out strings.Builder
	for i, family := range []string{"IPv4", "IPv6"} {
		fmt.Fprintf(&out, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: hand-%d, labels: "+
			"{kubernetes.io/service-name: hand}}\n"+
			"addressType: %s\nports: [{name: t, port: 8080, protocol: TCP}, {name: u, port: 8080, protocol: UDP}]\nendpoints:\n",
			i, family)
		for _, name := range slices.Sorted(maps.Keys(conditions)) {
			p, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			fmt.Fprintf(&out, "- {addresses: [%q], nodeName: %s, conditions: {%s}}\n", p.Status.PodIPs[i].IP, p.Spec.NodeName,
				conditions[name])
		}
	}
	kubectl(ctx, out.String(), "apply", "-f", "-")
}

// backends returns a function that gets the pods that answer a client on two ports of each address. All ports must have
// the same backends.
func backends(addrs []netip.Addr, tcp, udp uint16) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var specs []probe.Spec
		for _, a := range addrs {
			specs = append(specs, probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(a, tcp)},
				probe.Spec{Kind: probe.UDPNew, Target: netip.AddrPortFrom(a, udp)})
		}
		results, err := cluster.Probe(ctx, "client", 300*time.Millisecond, specs...)
		if err != nil {
			return nil, err
		}
		var all []string
		for i, r := range results {
			names := slices.Sorted(maps.Keys(r.Backends))
			if i > 0 && !slices.Equal(names, all) {
				return nil, fmt.Errorf("%s: %v, others %v", r, names, all)
			}
			all = names
		}
		return all, nil
	}
}

// dropsRefusals reports whether br-ex drops resets and ICMP errors from addresses without endpoints, so that clients
// time out (ADR 19).
func dropsRefusals() bool { return cluster.Network().Gateway == lab.SharedGateway && onLAN() }

// refused waits until all connections are refused, by a TCP reset and an ICMP error, or time out where those are
// dropped.
func refused(ctx context.Context, addrs []netip.Addr, tcp, udp uint16) {
	GinkgoHelper()
	isRefused := MatchError(ContainSubstring("connection refused"))
	if dropsRefusals() {
		isRefused = MatchError(Or(ContainSubstring("connection refused"), ContainSubstring("timeout")))
	}
	for _, a := range addrs {
		for network, port := range map[string]uint16{"tcp": tcp, "udp": udp} {
			Eventually(func(ctx context.Context) error {
				_, _, err := cluster.Ask(ctx, "client", network, 0, netip.AddrPortFrom(a, port))
				return err
			}).WithContext(ctx).Should(isRefused, "%s %s", network, a)
		}
	}
}

var _ = Describe("The endpoints of a Service", func() {
	It("take traffic according to their conditions, as with kube-proxy, on each port and named target port",
		func(ctx SpecContext) {
			kubectl(ctx, "", "apply", "-f", examples+"pool.yaml", "-f", examples+"l2domain.yaml")
			DeferCleanup(removeExamples)
			kubectl(ctx, servingPods+"---"+named(), "apply", "-f", "-")
			DeferCleanup(func(ctx SpecContext) {
				kubectl(ctx, "", "delete", "--ignore-not-found", "service/named", "service/hand", "pod/one", "pod/two", "pod/three",
					"pod/host")
			})
			kubectl(ctx, "", "wait", "--for=condition=Ready", "pod/one", "pod/two", "pod/three", "--timeout=2m")
			addrs := awaitAnnounced(ctx, "named")
			at := func(tcp, udp uint16, want ...string) {
				GinkgoHelper()
				Eventually(backends(addrs, tcp, udp)).WithContext(ctx).Should(Equal(want))
			}
			at(53, 53, "one", "two")
			at(firstPort+manyPorts-1, 53, "one", "two")

			By("adding an endpoint with hostNetwork")
			kubectl(ctx, hostPod, "apply", "-f", "-")
			at(53, 53, "host", "one", "two")

			By("making an endpoint unready")
			kubectl(ctx, "", "delete", "pod", "host")
			kubectl(ctx, "", "annotate", "pod", "one", kubelet.ReadyAnnotation+"=false")
			at(53, 53, "two")
			By("making all endpoints unready: connections are refused")
			kubectl(ctx, "", "annotate", "pod", "two", kubelet.ReadyAnnotation+"=false")
			refused(ctx, addrs, 53, 53)
			Eventually(condition("named", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("False NoEndpoints"))
			By("setting publishNotReadyAddresses")
			kubectl(ctx, "", "patch", "service", "named", "--type=merge", "-p", `{"spec":{"publishNotReadyAddresses":true}}`)
			at(53, 53, "one", "two")

			By("terminating one endpoint while another one is ready")
			kubectl(ctx, `
apiVersion: v1
kind: Service
metadata: {name: hand}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  ports: [{name: t, port: 80, protocol: TCP}, {name: u, port: 80, protocol: UDP}]
`, "apply", "-f", "-")
			const ready, terminates, ended = "ready: true", "ready: false, serving: true, terminating: true",
				"ready: false, serving: false, terminating: true"
			byHand(ctx, map[string]string{"one": ready, "three": terminates})
			addrs = awaitAnnounced(ctx, "hand")
			at(80, 80, "one")
			By("terminating all endpoints while they still serve")
			byHand(ctx, map[string]string{"one": ended, "three": terminates})
			at(80, 80, "three")
			By("terminating all endpoints that no longer serve: connections are refused")
			byHand(ctx, map[string]string{"one": ended, "three": ended})
			refused(ctx, addrs, 80, 80)
		})

	It("that are deleted lose their UDP flows: a client that keeps sending from one port reaches another endpoint",
		func(ctx SpecContext) {
			if _, err := cluster.SB(ctx, "--columns=lr_datapath_group", "list", "Load_Balancer"); err != nil {
				Skip("this ovn-northd does not inform ovn-controller of load balancers of routers: " + err.Error())
			}
			addrs := startWeb(ctx)
			const firstSource, sources = 40_000, 9
			// backendOf returns the backend for each source port and address.
			backendOf := func(ctx context.Context) (map[string]string, error) {
				who := map[string]string{}
				for _, a := range addrs {
					for source := uint16(firstSource); source < firstSource+sources; source++ {
						backend, _, err := cluster.Ask(ctx, "client", "udp", source, netip.AddrPortFrom(a, echoPort))
						if err != nil {
							return nil, err
						}
						who[fmt.Sprintf("%d at %s", source, a)] = backend
					}
				}
				return who, nil
			}
			var before map[string]string
			Eventually(func(ctx context.Context) (err error) {
				before, err = backendOf(ctx)
				return err
			}).WithContext(ctx).Should(Succeed())
			gone := slices.Collect(maps.Values(before))[0]
			kubectl(ctx, "", "delete", "pod", gone)
			Eventually(backendOf).WithContext(ctx).Should(HaveEach(Not(Equal(gone))))
		})
})
