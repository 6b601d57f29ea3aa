// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// outside returns the clients with their addresses: one on the segment, one behind the router.
func outside() map[string][]netip.Addr {
	return map[string][]netip.Addr{"client": cluster.ClientAddresses(), "remote": lab.RemoteAddresses()}
}

// get returns a function that sends an HTTP request. It returns the output of curl, including errors.
func get(at netip.AddrPort) func(context.Context) (string, error) {
	url := fmt.Sprintf("http://%s/", at)
	return func(ctx context.Context) (string, error) {
		return cluster.Exec(ctx, "client", "sh", "-c", "curl -sS -m1 '"+url+"' 2>&1 || true")
	}
}

var _ = Describe("A Service of type LoadBalancer", Label(smoke), func() {
	It("is reachable over IPv4 and IPv6, TCP and UDP, from the segment and beyond, and sees client addresses",
		func(ctx SpecContext) {
			addrs := startWeb(ctx)
			Expect(addrs).To(HaveLen(2))
			where := podNodes(ctx)
			fromOutside(func(from string, own []netip.Addr) {
				expectBackends(ctx, from, addrs, own, slices.Sorted(maps.Keys(where)))
			})
		})

	It("has one MAC address, with which OVN answers ARP and neighbour discovery", func(ctx SpecContext) {
		for _, vip := range startWeb(ctx) {
			var mac string
			for port := range activeGateways(ctx) {
				row, err := cluster.NB(ctx, "--bare", "--columns=networks,mac", "find", "Logical_Router_Port", "name="+port)
				Expect(err).NotTo(HaveOccurred())
				if networks, address, _ := strings.Cut(strings.TrimSpace(row), "\n"); strings.Contains(networks, vip.String()+"/") {
					mac = address
				}
			}
			Expect(mac).NotTo(BeEmpty(), "the MAC of the port of which %s is the anchor", vip)
			// A router that first has to resolve its client loses the answer, as on every new path.
			Eventually(func(ctx context.Context) error {
				_, err := cluster.Exec(ctx, "client", "ping", "-c1", "-W1", vip.String())
				return err
			}).WithContext(ctx).Should(Succeed(), "the anchor answers ping")
			Expect(cluster.Exec(ctx, "client", "ip", "neigh", "show", vip.String())).To(ContainSubstring(mac))
		}
	})

	It("refuses connections while it has no endpoint, and serves them when it has one again", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		for _, vip := range addrs {
			Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(HavePrefix("pod=web-"))
		}
		kubectl(ctx, "", "scale", "deployment/web", "--replicas=0")
		unserved := ContainSubstring("connect")
		if dropsRefusals() {
			unserved = HavePrefix("curl: (")
		}
		for _, vip := range addrs {
			Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(unserved)
		}
		kubectl(ctx, "", "scale", "deployment/web", "--replicas=6")
		awaitBackends(ctx)
		for _, vip := range addrs {
			Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(HavePrefix("pod=web-"))
		}
	})

	It("shares its address with a Service that has the same key and different ports", func(ctx SpecContext) {
		addrs := startUncontestedWeb(ctx)
		kubectl(ctx, "", "annotate", "service", "web", v1alpha1.AnnotationAllowSharedIP+"=door")
		kubectl(ctx, `
apiVersion: v1
kind: Service
metadata: {name: too, annotations: {slb.k8s.ovn.org/allow-shared-ip: door}}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: web}
  ports: [{port: 8000, targetPort: 8080}]
`, "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "service", "too") })
		Expect(awaitAnnounced(ctx, "too")).To(Equal(addrs))
		for _, vip := range addrs {
			for _, port := range []uint16{httpPort, 8000} {
				Eventually(get(netip.AddrPortFrom(vip, port))).WithContext(ctx).Should(HavePrefix("pod=web-"))
			}
		}
	})
})
