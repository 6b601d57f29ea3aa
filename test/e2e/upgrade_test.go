// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// version is a version of the product.
type version struct{ name, program, manifests string }

// lastRelease returns the version that `make last-release` has built. It skips the spec if there is none.
func lastRelease() version {
	GinkgoHelper()
	const dir = root + "/_output/last-release"
	commit, err := os.ReadFile(dir + "/commit")
	if errors.Is(err, fs.ErrNotExist) {
		Skip("the last release is not there: make last-release (which needs git fetch --unshallow --tags)")
	}
	Expect(err).NotTo(HaveOccurred())
	program, err := filepath.Abs(dir + "/ovnkube-slb")
	Expect(err).NotTo(HaveOccurred())
	return version{strings.TrimSpace(string(commit)), program, dir + "/manifests"}
}

// agentFlags are those of dist/manifests/bgp, beside the ones that the lab adds.
const agentFlags = "--enable-bgp"

// apply applies the manifests of a version, except the Deployment and the DaemonSet: the lab starts their programs.
func (v version) apply(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "apply", "-k", v.manifests+"/base")
	kubectl(ctx, "", "apply", "-f", v.manifests+"/components/bgp/rbac.yaml")
	if cluster.Network().Zones() {
		kubectl(ctx, "", "apply", "-f", v.manifests+"/components/interconnect/rbac.yaml")
	}
}

// roll replaces the controller and the agents one after the other, so that those of the two versions run side by side.
func (v version) roll(ctx context.Context) {
	GinkgoHelper()
	v.apply(ctx)
	for i, n := range cluster.Nodes {
		Expect(cluster.StopGuard(ctx, n.Name)).To(Succeed())
		Expect(cluster.StartGuard(ctx, v.program, n.Name, agentFlags)).To(Succeed())
		if i == 0 {
			Expect(cluster.StopController(ctx)).To(Succeed())
			Expect(cluster.StartController(ctx, v.program)).To(Succeed())
		}
	}
}

// endPrograms ends the controller and the agents.
func endPrograms(ctx context.Context) {
	GinkgoHelper()
	Expect(cluster.StopController(ctx)).To(Succeed())
	for _, n := range cluster.Nodes {
		if err := cluster.StopGuard(ctx, n.Name); !errors.Is(err, fs.ErrNotExist) {
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// routerPorts returns the gateway ports of all shards with their MAC addresses, and the active gateway of each.
func routerPorts(ctx context.Context) ([]string, error) {
	out, err := cluster.EachNB(ctx, "--format=csv", "--no-headings", "--columns=name,mac", "find", "Logical_Router_Port",
		"ha_chassis_group!=[]")
	if err != nil {
		return nil, err
	}
	ports, err := cluster.GatewayPorts(ctx)
	for port, node := range ports {
		out += port + " on " + node + "\n"
	}
	return slices.Sorted(strings.Lines(out)), err
}

// status runs `kubectl slb status`.
func status(ctx context.Context) (string, error) {
	cmd, err := cluster.AdminCommand(ctx, plugin, "status")
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// left returns all objects, except Events, that contain a name of ours, as "KIND NAMESPACE/NAME". The rights of
// Prometheus, which other specs start, are not ours.
func left(ctx context.Context) ([]string, error) {
	kinds, err := cluster.Kubectl(ctx, "", "api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		return nil, err
	}
	listed := slices.DeleteFunc(strings.Fields(kinds), func(kind string) bool { return strings.HasPrefix(kind, "events") })
	out, err := cluster.Kubectl(ctx, "", "get", strings.Join(listed, ","), "--all-namespaces", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	var ours []string
	for _, item := range list.Items {
		var object struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(item, &object); err != nil {
			return nil, err
		}
		text := string(item)
		isOurs := strings.Contains(text, "slb.k8s.ovn.org") || strings.Contains(text, owner)
		if isOurs && !strings.HasPrefix(object.Metadata.Name, "prometheus-") {
			ours = append(ours, object.Kind+" "+object.Metadata.Namespace+"/"+object.Metadata.Name)
		}
	}
	return ours, nil
}

var _ = Describe("An installation of the last release", Ordered, func() {
	var before string // rows of OVN-Kubernetes
	var now, old version
	var web, told []netip.Addr

	BeforeAll(func(ctx SpecContext) {
		old = lastRelease()
		now = version{"this version", controller, manifests}
		speakBGP(ctx)
		endPrograms(ctx)
		before = foreignRows(ctx)
		old.apply(ctx)
		Expect(cluster.StartController(ctx, old.program)).To(Succeed())
		Expect(cluster.StartGuards(ctx, old.program, agentFlags)).To(Succeed())
		web = startWeb(ctx)
		tell(ctx, "testdata/bgp.yaml")
		told = awaitAnnounced(ctx, "told")
	})

	AfterAll(func(ctx SpecContext) {
		if old.program == "" {
			return // It was skipped.
		}
		endPrograms(ctx)
		install(ctx)
	})

	// works checks that the controller and the agents report no problem, and that a new Service is announced and served.
	works := func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, lateService("", ""), "apply", "-f", "-")
		for _, vip := range awaitAnnounced(ctx, "late") {
			Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(fromPod(), "from %s", vip)
		}
		kubectl(ctx, "", "delete", "service", "late")
		Expect(awaitAnnounced(ctx, "web")).To(Equal(web))
		Expect(awaitAnnounced(ctx, "told")).To(Equal(told))
		Eventually(status).WithContext(ctx).Should(ContainSubstring("Nothing is wrong"))
	}

	It("keeps addresses, MAC addresses, gateways, routes and all connections in an upgrade and in a downgrade",
		func(ctx SpecContext) {
			hops := [][]string{nodeAddresses(0, "n1", "n2", "n3"), nodeAddresses(1, "n1", "n2", "n3")}
			for i, vip := range told {
				Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(hops[i]))
			}
			works(ctx)
			where := podNodes(ctx)
			warmUp(ctx, web)
			ports, err := routerPorts(ctx)
			Expect(err).NotTo(HaveOccurred())
			for _, v := range []version{now, old, now} {
				By("replacing all by " + v.name)
				expectNoneDeleted := watchRoutes(ctx)
				for _, r := range during(ctx, web, func() { v.roll(ctx) }) {
					expectServed(r, where, "none")
					// Usually none is lost. A machine that is too busy to forward for a second or two is as busy during a
					// roll, which then takes minutes.
					Expect(r.Lost).To(BeNumerically("<=", r.Sent/100), r.String())
				}
				works(ctx)
				Eventually(routerPorts).WithContext(ctx).Should(Equal(ports))
				expectNoneDeleted()
				for i, vip := range told {
					Expect(nextHops(vip)(ctx)).To(Equal(hops[i]))
				}
			}
		})

	It("is uninstalled as docs/install.md describes, which leaves what is listed there", func(ctx SpecContext) {
		kubectl(ctx, "", "delete", "l2domains.slb.k8s.ovn.org,bgpadvertisements.slb.k8s.ovn.org", "--all")
		Eventually(func(ctx context.Context) (string, error) {
			return cluster.EachNB(ctx, "find", "Logical_Switch", "external_ids:k8s.ovn.org/owner-controller="+owner)
		}).WithContext(ctx).Should(BeEmpty())
		Expect(ourRows(ctx)).To(BeEmpty(), "rows in other tables than that which docs/install.md names")
		Eventually(func() string {
			return kubectl(ctx, "", "get", "bgpnodestatuses", "-o",
				"jsonpath={.items[*].status.sessions[*]['advertisedIPv4','advertisedIPv6']}")
		}).Should(Equal("0 0 0 0 0 0"))

		By("deleting the manifests")
		flavours := []string{"bgp", "default"}
		if cluster.Network().Zones() {
			flavours = []string{"interconnect-bgp"}
		}
		for _, flavour := range flavours {
			kubectl(ctx, "", "delete", "-k", manifests+"/"+flavour, "--ignore-not-found")
		}
		endPrograms(ctx)

		By("checking what is left")
		Expect(ourRows(ctx)).To(BeEmpty())
		for _, vip := range told {
			Expect(nextHops(vip)(ctx)).To(BeEmpty(), "routes to %s", vip)
		}
		Expect(addresses(ctx, "web")).To(Equal(web))
		Expect(addresses(ctx, "told")).To(Equal(told))
		Eventually(left).WithContext(ctx).Should(ConsistOf("Service default/web", "Service default/told",
			"Lease ovn-kubernetes/ovnkube-slb"))

		By("deleting the Services")
		kubectl(ctx, "", "delete", "deployment/web", "deployment/told", "service/web", "service/told")
		Eventually(foreignRows).WithContext(ctx).Should(Equal(before))
	})
})
