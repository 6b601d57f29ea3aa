// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/panels"
)

const (
	alertRules = root + "/dist/monitoring/alerts.yaml"
	dashboard  = root + "/dist/monitoring/dashboard.json"
)

// Pool "narrow" is advertised by BGP. Its Services have no endpoints.
const alertObjects = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: narrow}
spec: {autoAssign: false, addresses: ["203.0.113.64-203.0.113.83"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPAdvertisement
metadata: {name: narrow}
spec: {ipAddressPools: [narrow]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 64512, peerASN: 64513, peerAddress: 10.50.0.1, dualStackAddressFamily: true, holdTime: 9s, connectTime: 1s}
`

// services returns the manifests of Services without endpoints that request a pool.
func services(pool string, from, to int) string {
	var out strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&out, `---
apiVersion: v1
kind: Service
metadata: {name: %[1]s-%[2]d, annotations: {slb.k8s.ovn.org/address-pool: %[1]s}}
spec: {type: LoadBalancer, ipFamilies: [IPv4], ports: [{name: http, port: 80}]}
`, pool, i)
	}
	return out.String()
}

// rulesHere writes the rules of dist/monitoring as a file of Prometheus, with periods that fit a test, and returns its
// path. The alert that has to outlast single failures keeps its ten minutes: no spec causes its fault.
func rulesHere(dir string) (string, error) {
	text, err := os.ReadFile(alertRules)
	if err != nil {
		return "", err
	}
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := sigsyaml.Unmarshal(text, &object); err != nil {
		return "", err
	}
	rules := regexp.MustCompile(`"for":"\dm"`).ReplaceAllString(string(object.Spec), `"for":"3s"`)
	path := filepath.Join(dir, "rules.json") // JSON is YAML
	return path, os.WriteFile(path, []byte(rules), 0o600)
}

// fires checks that a fault fires the alerts, separated by blanks, and no other from then until the fault is gone and
// the alerts with it.
func fires(alerts string, fault, repair func(ctx context.Context)) func(ctx SpecContext) {
	return func(ctx SpecContext) {
		seen := map[string]bool{}
		firing := func(ctx context.Context) ([]string, error) {
			now, err := cluster.FiringAlerts(ctx)
			maps.Copy(seen, now)
			return slices.Sorted(maps.Keys(now)), err
		}
		Eventually(firing).WithContext(ctx).Should(BeEmpty())
		clear(seen)
		fault(ctx)
		DeferCleanup(func(ctx SpecContext) {
			repair(ctx)
			Eventually(firing).WithContext(ctx).Should(BeEmpty())
			Expect(slices.Sorted(maps.Keys(seen))).To(Equal(strings.Fields(alerts)))
		})
		Eventually(firing).WithContext(ctx).Should(Equal(strings.Fields(alerts)))
	}
}

// startPrometheus starts Prometheus with the rules of dist/monitoring, and stops it after the specs.
func startPrometheus(ctx context.Context) {
	GinkgoHelper()
	rules, err := rulesHere(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	end, err := cluster.StartPrometheus(ctx, rules)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(end()).To(Succeed()) })
}

// pictureVariable names a file into which the dashboard is drawn (make dashboard).
const pictureVariable = "E2E_DASHBOARD"

// Which alert a fault fires is tested with promtool (test/docs). Here the metrics are those of the real programs.
var _ = Describe("Alerts and dashboard", Ordered, func() {
	var start time.Time
	BeforeAll(func(ctx SpecContext) {
		if cluster.Network().Real() || cluster.Network().Zones() {
			Skip("the faults are those of the model in central mode")
		}
		stop, err := cluster.SpeakBGP(ctx, manifests+"/components/bgp/rbac.yaml", controller, "--enable-l2-guard",
			"--metrics-bind-address=:"+lab.NodeMetricsPort)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(stop(ctx)).To(Succeed())
			kubectl(ctx, "", "delete", "bgpnodestatuses", "--all")
		})
		start = time.Now()
		startPrometheus(ctx)
		kubectl(ctx, alertObjects, "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, alertObjects, "delete", "--wait", "-f", "-") })
		startWeb(ctx)
		kubectl(ctx, services("narrow", 0, 1), "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, services("narrow", 0, 21), "delete", "--ignore-not-found", "-f", "-")
		})
		Eventually(ready("bgppeer", "tor")).WithContext(ctx).Should(HavePrefix("True "))
		Eventually(cluster.QueryPrometheus).WithContext(ctx).WithArguments("up == 1").
			Should(Equal(1+len(cluster.Nodes)), "the controller and the nodes are scraped")
	})

	AfterAll(func(ctx SpecContext) {
		path := os.Getenv(pictureVariable)
		if path == "" {
			return
		}
		board, err := panels.Read(dashboard)
		Expect(err).NotTo(HaveOccurred())
		results := make([][][]panels.Series, len(board.Panels))
		for i, p := range board.Panels {
			for _, query := range p.Queries("15s") {
				series, err := cluster.QueryRange(ctx, query, start)
				Expect(err).NotTo(HaveOccurred(), query)
				results[i] = append(results[i], series)
			}
		}
		picture, err := board.Draw(start, results)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(path, picture, 0o644)).To(Succeed())
	})

	apply := func(manifest string) (fault, repair func(context.Context)) {
		return func(ctx context.Context) { kubectl(ctx, manifest, "apply", "-f", "-") },
			func(ctx context.Context) { kubectl(ctx, manifest, "delete", "--wait", "-f", "-") }
	}
	applied := func(alert, manifest string) func(SpecContext) {
		fault, repair := apply(manifest)
		return fires(alert, fault, repair)
	}

	It("report a full pool", applied("SLBPoolExhausted", services("narrow", 1, 21)))

	// The sessions of the node use the same link.
	It("report a gateway that has lost its uplink", fires("SLBBGPSessionDown SLBGatewayFaulty", func(ctx context.Context) {
		Expect(cluster.UplinkDown(ctx, "n3")).To(Succeed())
	}, func(ctx context.Context) { Expect(cluster.LinkUp(ctx, "n3")).To(Succeed()) }))

	It("have data in each panel", func(ctx SpecContext) {
		board, err := panels.Read(dashboard)
		Expect(err).NotTo(HaveOccurred())
		Expect(board.Panels).NotTo(BeEmpty())
		for _, p := range board.Panels {
			Expect(p.Targets).NotTo(BeEmpty(), p.Title)
			for _, query := range p.Queries("1m") {
				Eventually(cluster.QueryPrometheus).WithContext(ctx).WithArguments(query).Should(BeNumerically(">", 0),
					"panel %q: %s", p.Title, query)
			}
		}
	})

	It("report that the northbound database is away, and then that no controller leads", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.RestoreCentral(ctx)).To(Succeed())
			Expect(cluster.StopController(ctx)).To(Succeed())
			Expect(cluster.StartController(ctx, controller)).To(Succeed())
			Eventually(cluster.FiringAlerts).WithContext(ctx).Should(BeEmpty())
			Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).Should(HavePrefix("True "))
		})
		seen := map[string]bool{}
		Expect(cluster.KillCentral(lab.NorthboundDB)).To(Succeed())
		Eventually(func(ctx context.Context) (map[string]bool, error) {
			now, err := cluster.FiringAlerts(ctx)
			maps.Copy(seen, now)
			return now, err
		}).WithContext(ctx).Should(Equal(map[string]bool{"SLBNoLeader": true}))
		Expect(seen).To(Equal(map[string]bool{"SLBDatabaseUnreachable": true, "SLBNoLeader": true}))
	})
})

var _ = Describe("Alerts with interconnect", func() {
	It("report the agent of a gateway that no longer reports, while its addresses work", func(ctx SpecContext) {
		if cluster.Network().Real() || !cluster.Network().Zones() {
			Skip("only interconnect has agents, and the fault is that of the model")
		}
		startPrometheus(ctx)
		addrs := startWeb(ctx)
		where := podNodes(ctx)
		_, node := activeGateway(ctx)
		Eventually(cluster.QueryPrometheus).WithContext(ctx).WithArguments("ovnkube_slb_silent_agents == 0").
			Should(Equal(1), "the controller is scraped")
		servedWhile(ctx, addrs, where, "none", func() {
			fires("SLBAgentSilent", func(ctx context.Context) {
				Expect(cluster.KillGuard(node)).To(Succeed())
				// The report of an agent without problems is valid for 15 minutes.
				kubectl(ctx, "", "-n", v1alpha1.GuardsNamespace, "patch", "lease", node, "--type=merge", "-p",
					fmt.Sprintf(`{"spec":{"leaseDurationSeconds":1,"renewTime":%q}}`, metav1.NowMicro().Format(metav1.RFC3339Micro)))
			}, func(ctx context.Context) { Expect(cluster.StartGuard(ctx, controller, node)).To(Succeed()) })(ctx)
		})
	})
})
