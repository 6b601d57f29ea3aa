// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var _ = Describe("The northbound database", func() {
	It("contains none of our rows after the last Service is deleted, and unchanged rows of OVN-Kubernetes",
		Label(smoke), func(ctx SpecContext) {
			Eventually(ourRows).WithContext(ctx).Should(BeEmpty())
			// Pods have rows of OVN-Kubernetes, which stay during the whole life cycle. The rows of OVN-Kubernetes for a
			// Service are deleted with it.
			kubectl(ctx, "", "apply", "-f", examples+"web.yaml")
			DeferCleanup(removeExamples)
			kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=2m")
			kubectl(ctx, "", "delete", "service", "web")
			Eventually(func(ctx context.Context) (string, error) {
				return cluster.EachNB(ctx, "--bare", "--columns=name", "find", "Load_Balancer",
					"external_ids:k8s.ovn.org/owner=default/web")
			}).WithContext(ctx).Should(BeEmpty())
			before := foreignRows(ctx)

			kubectl(ctx, "", "apply", "-f", examples)
			addrs := awaitAnnounced(ctx, "web")
			awaitBackends(ctx)
			rows, err := ourRows(ctx)
			Expect(err).NotTo(HaveOccurred())
			for _, table := range []string{
				"Logical_Router\n", "Logical_Router_Port\n", "Logical_Switch\n", "HA_Chassis_Group\n", "HA_Chassis\n", "BFD\n",
				"Load_Balancer\n", "Logical_Router_Policy\n", "Logical_Router_Static_Route\n",
			} {
				Expect(rows).To(ContainSubstring(table))
			}

			kubectl(ctx, "", "delete", "service", "web")
			if onLAN() { // Behind br-ex the switch exists as long as its domain (ADR 18).
				kubectl(ctx, "", "delete", "--wait", "-f", examples+"l2domain.yaml")
			}
			Eventually(ourRows).WithContext(ctx).Should(BeEmpty())
			Eventually(foreignRows).WithContext(ctx).Should(Equal(before))

			By("allocating the address again")
			kubectl(ctx, "", "apply", "-f", examples+"l2domain.yaml")
			kubectl(ctx, "", "apply", "-f", examples+"web.yaml")
			Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
		})
})

var _ = Describe("The controller", func() {
	It("writes nothing to the API server or OVN when it restarts", func(ctx SpecContext) {
		addrs := startWeb(ctx)
		databases := []string{filepath.Join(cluster.Dir, "cen", "nb.db")}
		if cluster.Network().Zones() {
			databases = nil
			for _, n := range cluster.Nodes {
				databases = append(databases, filepath.Join(cluster.Dir, n.Name, "nb.db"))
			}
		}
		// Once the pool has its counts and both numbers of writes are stable, the controller has reported the last change: it
		// writes the statuses of pools after the others, the later the busier the machine.
		Eventually(func(ctx context.Context) (string, error) {
			return cluster.Kubectl(ctx, "", "get", "ipaddresspool", "public", "-o",
				"jsonpath={.status.assignedIPv4} {.status.assignedIPv6}")
		}).WithContext(ctx).Should(Equal("1 1"))
		Eventually(notByTheFirst).WithContext(ctx).Should(BeEmpty())
		var api string
		var file int
		Eventually(func(ctx context.Context) (bool, error) {
			a, f, err := writes(ctx, databases)
			still := a == api && f == file
			api, file = a, f
			return still, err
		}).WithContext(ctx).WithPolling(2 * time.Second).Should(BeTrue())

		Expect(api).NotTo(BeEmpty())
		before := statuses(ctx)
		Expect(cluster.StopController(ctx)).To(Succeed())
		Expect(cluster.StartController(ctx, controller)).To(Succeed())
		if cluster.Network().Zones() {
			for _, n := range cluster.Nodes {
				Expect(cluster.StopGuard(ctx, n.Name)).To(Succeed())
			}
			Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
		}
		// A controller that is ready has made its first decision. What it does later is a scenario's affair
		// (go-controller/test/scenario).
		a, f, err := writes(ctx, databases)
		Expect(err).NotTo(HaveOccurred())
		Expect(append(strings.Split(a, "\n"), fmt.Sprint(f))).To(
			HaveExactElements(append(strings.Split(api, "\n"), fmt.Sprint(file))),
			func() string { return "before:\n" + before + "after:\n" + statuses(ctx) })

		By("checking that the Service is still reachable")
		kubectl(ctx, "", "annotate", "service", "web", "touched=yes")
		Expect(awaitAnnounced(ctx, "web")).To(Equal(addrs))
		kubectl(ctx, "", "scale", "deployment/web", "--replicas=5")
		Eventually(func(ctx context.Context) (string, error) { return cluster.NB(ctx, "lb-list") }).WithContext(ctx).
			ShouldNot(BeEmpty())
	})
})

// notByTheFirst returns the shards of the L2Domain that their first gateway has not claimed. If another one has claimed
// a shard for five seconds, the controller makes it the first one.
func notByTheFirst(ctx context.Context) ([]string, error) {
	out, err := cluster.Kubectl(ctx, "", "get", "l2domain", "provider", "-o",
		"jsonpath={range .status.shards[*]}{.index} {.gateways[0]} {.active}{'\\n'}{end}")
	if err == nil && out == "" {
		err = errors.New("the status of L2Domain provider has no shard")
	}
	var shards []string
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) != 3 || words[1] != words[2] {
			shards = append(shards, line)
		}
	}
	return shards, err
}

// statuses returns the statuses that the controller writes, one per line, with the times of the last writes.
func statuses(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "", "get", "l2domains,ipaddresspools,services,serviceplans", "--show-managed-fields", "-o",
		"jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.managedFields[*].time} {.status}{'\\n'}{end}")
}

// writes returns the API server's counts of writes to the kinds that the controller writes. It also returns the number
// of transactions in the files of northbound databases, to which ovsdb-server(1) appends each transaction that changes
// something. Transactions that only change NB_Global don't count: OVN-Kubernetes writes the time there twice a minute.
func writes(ctx context.Context, databases []string) (api string, transactions int, err error) {
	if api, err = cluster.Writes(ctx); err != nil {
		return "", 0, err
	}
	var all strings.Builder
	for _, database := range databases {
		text, err := os.ReadFile(database)
		if err != nil {
			return "", 0, err
		}
		all.Write(text)
	}
	for line := range strings.Lines(all.String()) { // ovsdb(5): a header line, then the record
		var record map[string]json.RawMessage
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &record) != nil {
			continue
		}
		for table := range record {
			if !strings.HasPrefix(table, "_") && table != "NB_Global" {
				transactions++
				break
			}
		}
	}
	return api, transactions, nil
}

var _ = Describe("The conditions of a Service", func() {
	It("report the first broken link: pool, domain, node", func(ctx SpecContext) {
		kubectl(ctx, "", "apply", "-f", examples+"web.yaml")
		DeferCleanup(removeExamples)
		Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).
			Should(And(HavePrefix("False "), ContainSubstring("pool")))
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("False "))

		kubectl(ctx, "", "apply", "-f", examples+"pool.yaml")
		Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).
			Should(And(HavePrefix("True "), ContainSubstring(here("10.50.0.100"))))
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
			Should(And(HavePrefix("False "), ContainSubstring(`no L2Domain has pool "public"`)))

		kubectl(ctx, "", "apply", "-f", examples+"l2domain.yaml")
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
			Should(And(HavePrefix("True "), ContainSubstring(here("10.50.0.100")), ContainSubstring("gateway n")))

		kubectl(ctx, "", "patch", "l2domain", "provider", "--type=merge", "-p",
			`{"spec":{"nodeSelectors":[{"matchLabels":{"no":"such"}}]}}`)
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
			Should(And(HavePrefix("False "), ContainSubstring("no node is selected")))
		Eventually(ourRows).WithContext(ctx).Should(BeEmpty(), "a Service without a gateway has no rows")
	})

	It("report the field and value of an invalid request, which releases no address", func(ctx SpecContext) {
		applyExamples(ctx)
		before := awaitAnnounced(ctx, "web")
		kubectl(ctx, "", "annotate", "--overwrite", "service", "web", v1alpha1.AnnotationLoadBalancerIPs+"=10.50.0.300")
		Eventually(condition("web", v1alpha1.ConditionAllocated)).WithContext(ctx).Should(
			And(ContainSubstring("InvalidRequest"), ContainSubstring(v1alpha1.AnnotationLoadBalancerIPs),
				ContainSubstring(here("10.50.0.300"))))
		Expect(awaitAnnounced(ctx, "web")).To(Equal(before))
		kubectl(ctx, "", "annotate", "--overwrite", "service", "web",
			v1alpha1.AnnotationLoadBalancerIPs+"=10.50.0.150,fd00:50::150")
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
			Should(And(HavePrefix("True "), ContainSubstring(here("10.50.0.150")), ContainSubstring(here("fd00:50::150"))))
	})
})
