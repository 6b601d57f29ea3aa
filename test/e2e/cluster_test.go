// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

const owner = "ovnkube-slb"

// ports of docs/examples/web.yaml.
const httpPort, echoPort = 80, 53

// kubectl runs kubectl with a manifest for `-f -`.
func kubectl(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	out, err := cluster.Kubectl(ctx, stdin, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// applyExamples applies the files that users are shown and removes them after the test.
func applyExamples(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "apply", "-f", examples)
	DeferCleanup(func(ctx SpecContext) { removeExamples(ctx) })
}

// removeExamples returns when OVN holds nothing of ours any more.
func removeExamples(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "delete", "--ignore-not-found", "--wait", "-f", examples)
	Eventually(ourRows).WithContext(ctx).Should(BeEmpty())
}

func ourRows(ctx context.Context) (string, error) {
	s, err := cluster.SnapshotNB(ctx, func(_ string, row lab.Row) bool { return row.OwnedBy(owner) })
	return s.String(), err
}

func foreignRows(ctx context.Context) string {
	GinkgoHelper()
	s, err := cluster.SnapshotNB(ctx, func(_ string, row lab.Row) bool { return !row.OwnedBy(owner) })
	Expect(err).NotTo(HaveOccurred())
	return s.String()
}

// service reads a Service of namespace default.
func service(ctx context.Context, name string) (*corev1.Service, error) {
	return client.CoreV1().Services("default").Get(ctx, name, metav1.GetOptions{})
}

// condition is a Service's condition of a type, as "Status Reason: message".
func condition(name, kind string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		s, err := service(ctx, name)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
		if i < 0 {
			return "", nil
		}
		c := s.Status.Conditions[i]
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), nil
	}
}

// awaitAnnounced waits until a Service is answered for and all its pods are ready, and returns its addresses.
func awaitAnnounced(ctx context.Context, name string) []netip.Addr {
	GinkgoHelper()
	Eventually(condition(name, v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("True "))
	s, err := service(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	var addrs []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		Expect(ingress.IPMode).To(HaveValue(Equal(corev1.LoadBalancerIPModeVIP)))
		addrs = append(addrs, netip.MustParseAddr(ingress.IP))
	}
	return addrs
}

// awaitBackends waits until all pods of Deployment web stand in the load balancer rows.
func awaitBackends(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=30s")
	Eventually(func(ctx context.Context) (int, error) {
		out, err := cluster.NB(ctx, "--bare", "--columns=vips", "find", "Load_Balancer", "external_ids:slb.k8s.ovn.org/service=default/web", "protocol=tcp")
		return strings.Count(out, ":8080"), err
	}).WithContext(ctx).Should(Equal(12), "six pods for each of two addresses")
	Expect(cluster.Settle(ctx)).To(Succeed())
}

// startWeb applies the examples and returns the addresses of Service web when it answers with all its pods.
func startWeb(ctx context.Context) []netip.Addr {
	GinkgoHelper()
	applyExamples(ctx)
	addrs := awaitAnnounced(ctx, "web")
	awaitBackends(ctx)
	return addrs
}

// podNodes says where the pods of Deployment web run.
func podNodes(ctx context.Context) map[string]string {
	GinkgoHelper()
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	Expect(err).NotTo(HaveOccurred())
	nodes := map[string]string{}
	for _, p := range pods.Items {
		nodes[p.Name] = p.Spec.NodeName
	}
	return nodes
}

// carriers are the nodes that carry shards now, by gateway port.
func carriers(ctx context.Context) map[string]string {
	GinkgoHelper()
	ports, err := cluster.GatewayPorts(ctx)
	Expect(err).NotTo(HaveOccurred())
	return ports
}
