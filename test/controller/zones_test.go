// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// zoned annotates the nodes as with interconnect, until the test ends.
func (c *cluster) zoned(t *testing.T) {
	t.Helper()
	for i := 1; i <= 3; i++ {
		node := fmt.Sprintf("n%d", i)
		c.kubectl(t, "annotate", "node", node, "k8s.ovn.org/zone-name="+node)
		t.Cleanup(func() { c.kubectl(t, "annotate", "node", node, "k8s.ovn.org/zone-name-") })
	}
}

// zoneReports reports as the agent of a node does.
func (c *cluster) zoneReports(t *testing.T, node, report string) {
	t.Helper()
	c.apply(t, fmt.Sprintf(`
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: %s, namespace: %s, annotations: {%s: '%s'}}
spec: {holderIdentity: %s, leaseDurationSeconds: 900, renewTime: "%s"}
`, node, v1alpha1.GuardsNamespace, v1alpha1.AnnotationZone, report, node,
		time.Now().UTC().Format(metav1.RFC3339Micro)))
}

// plan returns the ServicePlan of a Service, or false if there is none.
func (c *cluster) plan(t *testing.T, name string) (v1alpha1.ServicePlan, bool) {
	t.Helper()
	var p v1alpha1.ServicePlan
	text := c.kubectl(t, "get", "serviceplan", ns+"."+name, "--ignore-not-found", "-o", "json")
	if text == "" {
		return p, false
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p, true
}

// With interconnect the controller publishes plans, and believes what the zones of gateways report.
func zonesApplyWhatIsPublished(t *testing.T, c *cluster) {
	c.zoned(t)
	p := c.controller(t, nil)
	c.apply(t, baseObjects)
	c.awaitCondition(t, "l2domain/lan", "Ready", "False Unsupported")
	const bridges = `"bridges":{"physnet":"br-p"}`
	for _, node := range []string{"n1", "n2", "n3"} {
		c.zoneReports(t, node, "{"+bridges+"}")
	}
	c.awaitCondition(t, "l2domain/lan", "Ready", "True Ready")
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")

	var published v1alpha1.ServicePlan
	eventually(t, "a ServicePlan", func() bool {
		var ok bool
		published, ok = c.plan(t, "web")
		return ok && len(published.Spec.VIPs) == 1
	})
	vip := published.Spec.VIPs[0]
	if got := published.Spec.Listeners; len(got) != 1 || len(got[0].Backends) != 1 ||
		got[0].Backends[0].Address != "10.244.1.10:8080" {
		t.Errorf("listeners %+v", got)
	}
	var gateways string
	eventually(t, "the shard in the status of the L2Domain, with an ordinal", func() bool {
		shard := c.kubectl(t, "get", "l2domain", "lan", "-o",
			`jsonpath={range .status.shards[*]}{.index} {.ordinal} {.gateways[0]}{end}`)
		_, err := fmt.Sscanf(shard, fmt.Sprint(vip.Shard)+" 0 %s", &gateways)
		return err == nil
	})
	if s := c.get(t, "web"); len(s.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("the status has %v, which no zone has programmed", s.Status.LoadBalancer.Ingress)
	}

	claim := fmt.Sprintf(`"claims":{"%s/%d":"%s"}`, vip.L2Domain, vip.Shard, time.Now().UTC().Format(time.RFC3339))
	c.zoneReports(t, gateways, "{"+bridges+","+claim+`,"applied":`+published.ResourceVersion+"}")
	announced := c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced)
	if announced.Status != metav1.ConditionTrue || !strings.Contains(announced.Message, "on gateway "+gateways) {
		t.Errorf("Announced: %+v", announced)
	}
	if got := c.addresses(t, "web"); len(got) != 1 || got[0] != vip.Address {
		t.Errorf("addresses %v, want %s", got, vip.Address)
	}

	// A restart writes nothing but removes what no Service has, and what another client changes is written again.
	c.apply(t, `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: ServicePlan
metadata: {name: stray}
spec: {namespace: shop, name: web, vips: []}
`)
	p.stop()
	again := c.controller(t, nil)
	eventually(t, "the new controller is ready", func() bool { return again.Healthy() == nil })
	c.endpoints(t, "other", "10.244.1.11")
	c.service(t, "other")
	eventually(t, "a plan of the new controller", func() bool { _, ok := c.plan(t, "other"); return ok })
	eventually(t, "the unknown plan is deleted", func() bool {
		return c.kubectl(t, "get", "serviceplan", "stray", "--ignore-not-found") == ""
	})
	if now, _ := c.plan(t, "web"); now.ResourceVersion != published.ResourceVersion {
		t.Errorf("the restart wrote the plan: version %s, was %s", now.ResourceVersion, published.ResourceVersion)
	}
	c.kubectl(t, "patch", "serviceplan", published.Name, "--type=merge", `-p={"spec":{"listeners":[]}}`)
	eventually(t, "the plan is written again", func() bool {
		now, ok := c.plan(t, "web")
		return ok && len(now.Spec.Listeners) == 1 && now.ResourceVersion != published.ResourceVersion
	})

	// A zone that fails reports it, and the plan is deleted with its Service.
	now, _ := c.plan(t, "web")
	c.zoneReports(t, gateways, "{"+bridges+","+claim+`,"applied":`+now.ResourceVersion+`,"failed":{"`+ns+`/web":"no room"}}`)
	failed := c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonDataplaneError)
	if !strings.Contains(failed.Message, "no room") {
		t.Errorf("Announced: %+v", failed)
	}
	c.delete(t, "web")
	eventually(t, "no plan", func() bool { _, ok := c.plan(t, "web"); return !ok })
}
