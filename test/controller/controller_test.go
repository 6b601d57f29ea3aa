// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// baseObjects is a dual-stack pool and the L2 domain that advertises it.
const baseObjects = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: ["10.50.0.100-10.50.0.149", "fd00:50::100-fd00:50::1ff"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: lan}
spec:
  physicalNetwork: physnet
  ipAddressPools: [lan]
  subnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.1}, {cidr: "fd00:50::/64", gateway: "fd00:50::1"}]
`

// pool returns a pool with the IPv4 addresses 10.60.0.first to 10.60.0.last.
func pool(name string, first, last int) string {
	return fmt.Sprintf(`
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: %s}
spec: {addresses: ["10.60.0.%d-10.60.0.%d"]}
`, name, first, last)
}

// TestController and TestTrouble run in parallel, each on its own cluster: they wait more than they compute.

func TestController(t *testing.T) {
	t.Parallel()
	onCluster(t, map[string]func(*testing.T, *cluster){
		"AddressComesWithOneWriteAndIsAnnounced": addressComesWithOneWriteAndIsAnnounced,
		"RestartWritesNothing":                   restartWritesNothing,
		"FreedAddressGoesToTheOneThatWaits":      freedAddressGoesToTheOneThatWaits,
		"BothFamilies":                           bothFamilies,
		"DeletionRemovesEveryRow":                deletionRemovesEveryRow,
		"BadRequestIsNamed":                      badRequestIsNamed,
		"ClientsAreRestricted":                   clientsAreRestricted,
		"AddressesDoNotWaitForLostDatabases":     addressesDoNotWaitForLostDatabases,
		"NoLongerOurs":                           noLongerOurs,
		"ConditionsOfOthersStay":                 conditionsOfOthersStay,
		"ObjectsTellTheirState":                  objectsReportTheirState,
		"NorthboundRestarts":                     northboundRestarts,
		"OthersWriteAtTheSameTime":               othersWriteAtTheSameTime,
		"MetricsAreDocumented":                   metricsAreDocumented,
		"MetricsNeedARight":                      metricsNeedARight,
		"AddressesAsAskedFor":                    addressesAsAskedFor,
		"OnlyWhatIsOurs":                         onlyWhatIsOurs,
		"ExhaustionIsToldAndEnds":                exhaustionIsReportedAndEnds,
		"OpenShiftAssigns":                       openShiftAssigns,
		"OperatorSwitches":                       operatorSwitches,
		"TypeOfTheNetwork":                       typeOfTheNetwork,
		"StartedOff":                             startedOff,
		"NodesAreRebooted":                       nodesAreRebooted,
		"AddressesRest":                          addressesRest,
		"RowsAreRepaired":                        rowsAreRepaired,
		"ObjectsForBGPTellTheirState":            bgpObjectsReportTheirState,
		"ToldByBGP":                              advertisedByBGP,
		"NodeReportsOnBGP":                       nodeReportsOnBGP,
		"ZonesApplyWhatIsPublished":              zonesApplyWhatIsPublished,
		"ClusterIsMovedToInterconnectAndBack":    clusterIsMovedToInterconnectAndBack,
		"PluginExplains":                         pluginExplains,
		"PluginPlans":                            pluginPlans,
		"PluginMoves":                            pluginMoves,
	})
}

// TestTrouble covers bursts, concurrent writers and process failures.
func TestTrouble(t *testing.T) {
	t.Parallel()
	onCluster(t, map[string]func(*testing.T, *cluster){
		"CommandsTakeTurns":             commandsTakeTurns,
		"VersionsTakeTurns":             versionsTakeTurns,
		"ClusteredDatabasesFail":        clusteredDatabasesFail,
		"KilledAsItWrites":              killedAsItWrites,
		"LeadersComeAndGoInABurst":      leadersComeAndGoInABurst,
		"LeaderSleepsThroughItsTerm":    leaderSleepsThroughItsTerm,
		"APIServerDiesInABurst":         apiServerDiesInABurst,
		"LeaderIsCutOffFromDatabase":    leaderIsCutOffFromDatabase,
		"WithoutLayer2NoDatabase":       withoutLayer2NoDatabase,
		"StuckLeaderIsRestarted":        stuckLeaderIsRestarted,
		"APIServerIsAwayForLong":        apiServerIsAwayForLongerThanALease,
		"OthersWriteInABurst":           othersWriteInABurst,
		"PoolsOverlapInARace":           poolsOverlapInARace,
		"PoolsOverlapRightAfterInstall": poolsOverlapRightAfterInstall,
		"TwoControllersWithoutElection": twoControllersWithoutElection,
	})
}

// onCluster runs tests one after the other on one cluster, in random order.
func onCluster(t *testing.T, tests map[string]func(*testing.T, *cluster)) {
	t.Helper()
	c := newCluster(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { c.clear(t) })
			test(t, c)
		})
	}
}

func addressComesWithOneWriteAndIsAnnounced(t *testing.T, c *cluster) {
	o := databases(t)
	p := c.controller(t, o)
	c.apply(t, baseObjects)
	// A controller that observes a Service before the pool writes the status again.
	c.kubectl(t, "wait", "--for=condition=Accepted", "ippool/lan", "l2domain/lan")
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	if got := c.addresses(t, "web"); !strings.HasPrefix(got[0], "10.50.0.1") {
		t.Errorf("address %s is not of the pool", got[0])
	}
	allocated := c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonAllocated)
	if allocated.Status != metav1.ConditionTrue || !strings.Contains(allocated.Message, "from pool lan") {
		t.Errorf("Allocated: %+v", allocated)
	}
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoActiveGateway)
	if n := p.writes(t, "Service"); n > 2 {
		t.Errorf("%d status writes, want one for the address and one for the state of OVN", n)
	}
	o.claim(t, "chassis-2")
	announced := c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced)
	if announced.Status != metav1.ConditionTrue || !strings.Contains(announced.Message, "on gateway n2") {
		t.Errorf("Announced: %+v", announced)
	}
	c.event(t, "web", v1alpha1.EventIPAllocated)
	c.event(t, "web", v1alpha1.EventAnnounced)
	if err := p.Healthy(); err != nil {
		t.Errorf("Healthy: %v", err)
	}

	c.active(t, "n2")
	o.claim(t, "chassis-3")
	eventually(t, "another gateway is reported", func() bool {
		return strings.Contains(c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced).Message,
			"on gateway n3")
	})
	c.event(t, "lan", v1alpha1.EventGatewayChanged, "moved from gateway n2 to n3")
}

func freedAddressGoesToTheOneThatWaits(t *testing.T, c *cluster) {
	c.controller(t, nil)
	c.apply(t, pool("small", 1, 2))
	c.service(t, "first")
	c.addresses(t, "first")
	c.service(t, "second")
	c.addresses(t, "second")
	c.service(t, "third")
	failed := c.condition(t, "third", v1alpha1.ConditionAllocated, v1alpha1.ReasonPoolExhausted)
	if failed.Status != metav1.ConditionFalse || !strings.Contains(failed.Message, "small") {
		t.Errorf("Allocated: %+v", failed)
	}
	if message := c.event(t, "third", v1alpha1.EventAllocationFailed); message != failed.Message {
		t.Errorf("event message %q, condition message %q", message, failed.Message)
	}
	freed := c.addresses(t, "first")
	c.delete(t, "first")
	if got := c.addresses(t, "third"); !slices.Equal(got, freed) {
		t.Errorf("third has %v, want the freed %v", got, freed)
	}
	if got := c.condition(t, "third", v1alpha1.ConditionAllocated,
		v1alpha1.ReasonAllocated); got.Status != metav1.ConditionTrue {
		t.Errorf("Allocated: %+v", got)
	}
}

func bothFamilies(t *testing.T, c *cluster) {
	o := databases(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10", "fd00:10:244:1::10")
	c.service(t, "web", func(s *corev1.Service) {
		policy := corev1.IPFamilyPolicyRequireDualStack
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &policy, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		s.Annotations = map[string]string{v1alpha1.AnnotationLoadBalancerIPs: "10.50.0.120,fd00:50::120"}
	})
	if got, want := c.addresses(t, "web"), []string{"fd00:50::120", "10.50.0.120"}; !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	eventually(t, "both are in OVN", func() bool {
		return slices.Equal(o.backends(t, "10.50.0.120:80"), []string{"10.244.1.10 8080"}) &&
			slices.Equal(o.backends(t, "[fd00:50::120]:80"), []string{"fd00:10:244:1::10 8080"})
	})
}

func deletionRemovesEveryRow(t *testing.T, c *cluster) {
	o := databases(t)
	before := o.rows(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	c.addresses(t, "web")
	eventually(t, "load balancers", func() bool { return len(o.loadBalancers(t)) > 0 })
	c.delete(t, "web")
	eventually(t, "no load balancers", func() bool { return len(o.loadBalancers(t)) == 0 })
	c.kubectl(t, "delete", "l2domains", "--all")
	eventually(t, "nothing of ours in OVN", func() bool { return o.rows(t) == before })
}

func badRequestIsNamed(t *testing.T, c *cluster) {
	c.controller(t, nil)
	c.apply(t, baseObjects)
	c.service(t, "web", func(s *corev1.Service) {
		s.Annotations = map[string]string{v1alpha1.AnnotationLoadBalancerIPs: "10.50.0.300"}
	})
	var got metav1.Condition
	eventually(t, "a condition", func() bool {
		conditions := c.get(t, "web").Status.Conditions
		for _, condition := range conditions {
			if condition.Type == v1alpha1.ConditionAllocated {
				got = condition
			}
		}
		return got.Type != ""
	})
	for _, want := range []string{v1alpha1.AnnotationLoadBalancerIPs, "10.50.0.300"} {
		if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, want) {
			t.Errorf("Allocated: %+v, want False naming %s", got, want)
		}
	}
	c.kubectl(t, "annotate", "service", "web", "-n", ns, "--overwrite", v1alpha1.AnnotationLoadBalancerIPs+"=10.50.0.130")
	if got := c.addresses(t, "web"); got[0] != "10.50.0.130" {
		t.Errorf("mended: address %v, want 10.50.0.130", got)
	}
}

func clientsAreRestricted(t *testing.T, c *cluster) {
	o := databases(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	kept := c.addresses(t, "web")
	eventually(t, "load balancers", func() bool { return len(o.loadBalancers(t)) > 0 })
	c.kubectl(t, "patch", "service", "web", "-n", ns, "--type=merge",
		`-p={"spec":{"loadBalancerSourceRanges":["192.0.2.0/24"]}}`)
	match := fmt.Sprintf("ip4.dst == %s && tcp.dst == {80}", kept[0])
	eventually(t, "ACLs", func() bool {
		acls := o.nbctl(t, "acl-list", "slb-lan")
		return strings.Contains(acls, "("+match+") drop") && strings.Contains(acls,
			"("+match+" && ip4.src == {192.0.2.0/24}) allow-stateless")
	})
	c.kubectl(t, "delete", "service", "web", "-n", ns)
	eventually(t, "no ACLs", func() bool { return o.nbctl(t, "--bare", "--columns=_uuid", "list", "ACL") == "" })
}

func addressesDoNotWaitForLostDatabases(t *testing.T, c *cluster) {
	o := databases(t)
	kill(t, o, "nb")
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	c.addresses(t, "web")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonDatabaseUnreachable)
	o.serve(t, "nb")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoActiveGateway)
}

func noLongerOurs(t *testing.T, c *cluster) {
	c.controller(t, nil)
	c.apply(t, pool("small", 1, 1))
	c.service(t, "web")
	had := c.addresses(t, "web")
	c.kubectl(t, "patch", "service", "web", "-n", ns, "--type=merge", `-p={"spec":{"type":"ClusterIP"}}`)
	eventually(t, "our traces are gone", func() bool {
		s := c.get(t, "web")
		return len(s.Status.Conditions) == 0 && len(s.Status.LoadBalancer.Ingress) == 0
	})
	c.service(t, "other")
	if got := c.addresses(t, "other"); !slices.Equal(got, had) {
		t.Errorf("other has %v, want %v", got, had)
	}
}

func conditionsOfOthersStay(t *testing.T, c *cluster) {
	c.controller(t, nil)
	c.service(t, "web")
	waits := c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonNoPool)
	s := c.get(t, "web")
	foreign := metav1.Condition{Type: "example.org/Checked", Status: metav1.ConditionTrue, Reason: "Fine",
		LastTransitionTime: metav1.Now()}
	s.Status.Conditions = append(s.Status.Conditions, foreign)
	if _, err := c.client.CoreV1().Services(ns).UpdateStatus(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A different reason with the same status is not a transition.
	c.apply(t, strings.Replace(pool("small", 1, 1), "spec: {", "spec: {disabled: true, ", 1))
	c.kubectl(t, "annotate", "service", "web", "-n", ns, v1alpha1.AnnotationAddressPool+"=small")
	still := c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonPoolDisabled)
	if still.LastTransitionTime != waits.LastTransitionTime {
		t.Errorf("lastTransitionTime moved from %s to %s although the status stayed %s", waits.LastTransitionTime,
			still.LastTransitionTime, still.Status)
	}
	c.apply(t, pool("small", 1, 1))
	c.kubectl(t, "patch", "ipaddresspool", "small", "--type=merge", `-p={"spec":{"disabled":false}}`)
	c.addresses(t, "web")
	c.condition(t, "web", "example.org/Checked", "Fine")
}

func objectsReportTheirState(t *testing.T, c *cluster) {
	o := databases(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.apply(t, `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 64512, peerASN: 64513, peerAddress: 10.50.0.1}
`)
	c.apply(t, `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: astray}
spec: {physicalNetwork: other, ipAddressPools: [gone], subnets: [{cidr: 10.70.0.0/16}]}
`)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	c.addresses(t, "web")
	field := func(object, path string) string {
		return c.kubectl(t, "get", object, "-o", "jsonpath="+path)
	}
	for _, want := range []struct{ object, path, value string }{
		{"bgppeer/tor", `{.status.conditions[?(@.type=="Accepted")].reason}`, v1alpha1.ReasonAccepted},
		{"bgppeer/tor", `{.status.conditions[?(@.type=="Ready")].reason}`, v1alpha1.ReasonNoSession},
		{"l2domain/lan", `{.status.shards[*].anchors[*]}`, "10.50.0.100"},
		{"l2domain/astray", `{.status.conditions[?(@.type=="Accepted")].reason}`, v1alpha1.ReasonPartlyUsable},
		{"ippool/lan", `{.status.conditions[?(@.type=="Accepted")].reason}`, v1alpha1.ReasonAccepted},
		{"ippool/lan", `{.status.conditions[?(@.type=="Ready")].status}`, "True"},
		{"ippool/lan", `{.status.assignedIPv4}/{.status.availableIPv4}`, "1/49"},
		{"l2domain/lan", `{.status.conditions[?(@.type=="Ready")].status}`, "True"},
		{"l2domain/lan", `{.status.eligibleNodes}`, "3"},
		{"l2domain/lan", `{.status.shards[*].addresses}`, "1"},
	} {
		eventually(t, fmt.Sprintf("%s %s is %s", want.object, want.path, want.value), func() bool {
			return field(want.object, want.path) == want.value
		})
	}
	if message := field("l2domain/astray",
		`{.status.conditions[?(@.type=="Accepted")].message}`); !strings.Contains(message, `"gone"`) {
		t.Errorf("the condition of the domain doesn't name the pool: %s", message)
	}
}

// Another client changes every Service repeatedly while it gets its address. Any write of the controller may find a
// newer object. No write may be lost, and no address may be assigned twice.
func othersWriteAtTheSameTime(t *testing.T, c *cluster) {
	p := c.controller(t, nil)
	c.apply(t, baseObjects)
	const n = 40
	var busy sync.WaitGroup
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		busy.Go(func() {
			c.service(t, name)
			for j := range 15 {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"round":"%d"}}}`, j)
				if _, err := c.client.CoreV1().Services(ns).Patch(t.Context(), name, types.MergePatchType, patch,
					metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	busy.Wait()
	holders := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		address := c.addresses(t, name)[0]
		if other := holders[address]; other != "" {
			t.Errorf("%s and %s both have %s", name, other, address)
		}
		holders[address] = name
	}
	t.Logf("%d status writes for %d Services", p.writes(t, "Service"), n)
}
