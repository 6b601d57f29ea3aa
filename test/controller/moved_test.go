// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// shardOf returns the shard of L2Domain lan that is in use, without what depends on the mode.
func (c *cluster) shardOf(t *testing.T) string {
	t.Helper()
	return c.kubectl(t, "get", "l2domain", "lan", "-o",
		`jsonpath={range .status.shards[*]}{.index} {.addresses} {.anchors}{"\n"}{end}`)
}

// awaitMode waits until L2Domain lan has a mode in its status.
func (c *cluster) awaitMode(t *testing.T, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the mode of L2Domain lan is %q", want), func() bool {
		return c.kubectl(t, "get", "l2domain", "lan", "-o", "jsonpath={.status.mode}") == want
	})
}

// movesTo annotates a node as OVN-Kubernetes does when it configures it by another database.
func (c *cluster) movesTo(t *testing.T, node, zone string) {
	t.Helper()
	c.kubectl(t, "annotate", "--overwrite", "node", node, "k8s.ovn.org/zone-name="+zone)
	t.Cleanup(func() { c.kubectl(t, "annotate", "node", node, "k8s.ovn.org/zone-name-") })
}

// The nodes of a cluster move from one database to zones of their own, one after another, and back. Addresses, shards
// and anchors stay. The L2Domain is served in one mode or refused, with the reason, and never in both.
func clusterIsMovedToInterconnectAndBack(t *testing.T, c *cluster) {
	o := databases(t)
	shards := func() string {
		return o.nbctl(t, "--bare", "--columns=name", "find", "Logical_Router", "external_ids:k8s.ovn.org/owner-type=Shard")
	}
	for _, node := range []string{"n1", "n2", "n3"} {
		c.movesTo(t, node, "global")
	}
	central := c.controller(t, o)
	c.apply(t, baseObjects)
	c.awaitCondition(t, "l2domain/lan", "Ready", "True Ready")
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	address := c.addresses(t, "web")
	eventually(t, "a shard", func() bool { return strings.Contains(c.shardOf(t), "1 [") })
	shard := c.shardOf(t)
	c.awaitMode(t, "Central")
	unchanged := func(when string) {
		t.Helper()
		if got := c.addresses(t, "web"); fmt.Sprint(got) != fmt.Sprint(address) {
			t.Errorf("%s: addresses %v, were %v", when, got, address)
		}
		eventually(t, when+": the shard and its anchor are those of before", func() bool { return c.shardOf(t) == shard })
	}
	refused := func(texts ...string) {
		t.Helper()
		c.awaitCondition(t, "l2domain/lan", "Ready", "False Unsupported")
		for _, text := range texts {
			eventually(t, "the L2Domain and the Service name: "+text, func() bool {
				of := c.get(t, "web").Status.Conditions
				announced := ""
				for _, condition := range of {
					if condition.Type == v1alpha1.ConditionAnnounced && condition.Status == metav1.ConditionFalse {
						announced = condition.Message
					}
				}
				return strings.Contains(announced, text) &&
					strings.Contains(c.awaitCondition(t, "l2domain/lan", "Ready", "False Unsupported"), text)
			})
		}
		if got := c.addresses(t, "web"); fmt.Sprint(got) != fmt.Sprint(address) {
			t.Errorf("refused: addresses %v, were %v", got, address)
		}
	}
	const bridges = `"bridges":{"physnet":"br-p"}`
	index := strings.Fields(shard)[0]
	claims := fmt.Sprintf(`"claims":{"lan/%s":"%s"}`, index, time.Now().UTC().Format(time.RFC3339))
	excluded := func(want string) {
		t.Helper()
		eventually(t, "excluded nodes: "+want, func() bool {
			return c.kubectl(t, "get", "l2domain", "lan", "-o",
				`jsonpath={range .status.excludedNodes[*]}{.name} {.reason};{end}`) == want
		})
	}

	// The first node has moved: the others serve, and it is no gateway.
	c.movesTo(t, "n1", "n1")
	c.zoneReports(t, "n1", "{"+bridges+"}")
	excluded("n1 OtherZone;")
	c.awaitCondition(t, "l2domain/lan", "Ready", "True TooFewGateways")
	unchanged("one node has moved")
	if got := o.nbctl(t, "--bare", "--columns=chassis_name", "list", "HA_Chassis"); strings.Contains(got, "chassis-1") {
		t.Errorf("the node that has moved is a gateway: %s", got)
	}

	// The controller is replaced too early. It can't know whether its predecessor's rows are still there, which they are.
	central.stop()
	zones := c.controller(t, nil)
	refused("no northbound database is configured (--nb-address)", `2 of 3 nodes are in zone "global"`)
	c.movesTo(t, "n2", "n2")
	c.zoneReports(t, "n2", "{"+bridges+"}")
	refused("a controller with --nb-address has not removed its rows", "n3")
	c.awaitMode(t, "Central")
	if shards() == "" {
		t.Fatal("the rows of the first controller have gone; the test needs them")
	}
	zones.stop()

	// A controller with the database removes them, which the status shows. Then agents serve.
	central = c.controller(t, o)
	refused("leave it empty and run ovnkube-slb node --enable-l2")
	eventually(t, "no shard in the database", func() bool { return shards() == "" })
	c.awaitMode(t, "")
	central.stop()
	zones = c.controller(t, nil)
	c.awaitMode(t, "Interconnect")
	excluded("n3 OtherZone;")
	unchanged("two nodes have moved")
	published, _ := c.plan(t, "web")
	gateway := c.kubectl(t, "get", "l2domain", "lan", "-o", "jsonpath={.status.shards[0].gateways[0]}")
	c.zoneReports(t, gateway, "{"+bridges+","+claims+`,"applied":`+published.ResourceVersion+"}")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced)
	c.movesTo(t, "n3", "n3")
	c.zoneReports(t, "n3", "{"+bridges+"}")
	excluded("")
	unchanged("all nodes have moved")

	// Back: most nodes are in one zone again, but the gateway's zone still has the shard.
	for _, node := range []string{"n1", "n2", "n3"} {
		if node != gateway {
			c.movesTo(t, node, "global")
		}
	}
	refused("no northbound database is configured (--nb-address)")
	c.awaitMode(t, "Interconnect")
	zones.stop()
	c.controller(t, o)
	refused("OVN-Kubernetes is being moved from interconnect", gateway)
	if got := shards(); got != "" {
		t.Errorf("while a zone has the shard, the database has %s", got)
	}
	c.zoneReports(t, gateway, "{"+bridges+"}") // its agent has removed the rows
	c.awaitMode(t, "Central")
	unchanged("back")
	eventually(t, "the shard is in the database", func() bool { return shards() != "" })
}
