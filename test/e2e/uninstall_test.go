// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

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

var _ = Describe("An installation with layer 2 and BGP", Ordered, func() {
	var before string // rows of OVN-Kubernetes
	var web, told []netip.Addr

	BeforeAll(func(ctx SpecContext) {
		before = foreignRows(ctx)
		speakBGP(ctx)
		web = startWeb(ctx)
		tell(ctx, "testdata/bgp.yaml")
		told = awaitAnnounced(ctx, "told")
	})

	AfterAll(func(ctx SpecContext) {
		endPrograms(ctx)
		install(ctx)
	})

	It("is uninstalled as docs/install.md describes, which leaves what is listed there", func(ctx SpecContext) {
		hops := [][]string{nodeAddresses(0, "n1", "n2", "n3"), nodeAddresses(1, "n1", "n2", "n3")}
		for i, vip := range told {
			Eventually(nextHops(vip)).WithContext(ctx).Should(Equal(hops[i]))
		}
		kubectl(ctx, "", "delete", "l2domains.slb.k8s.ovn.org,bgpadvertisements.slb.k8s.ovn.org", "--all")
		Eventually(func(ctx context.Context) (string, error) {
			return cluster.EachNB(ctx, "find", "Logical_Switch", "external_ids:k8s.ovn.org/owner-controller="+owner)
		}).WithContext(ctx).Should(BeEmpty())
		Expect(ourRows(ctx)).To(BeEmpty(), "rows in other tables than that which docs/install.md names")
		Eventually(func() string {
			return kubectl(ctx, "", "get", "bgpnodestatuses", "-o",
				"jsonpath={.items[*].status.sessions[*]['advertisedIPv4','advertisedIPv6']}")
		}).WithContext(ctx).Should(Equal("0 0 0 0 0 0"))

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
