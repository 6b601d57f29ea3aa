// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
)

// podsReady sets the readiness of the pods of Deployment web.
func podsReady(value string) func(context.Context) {
	return func(ctx context.Context) {
		kubectl(ctx, "", "annotate", "--overwrite", "pods", "-l", "app=web", kubelet.ReadyAnnotation+value)
	}
}

// conflicting adds the addresses 10.50.0.180 and fd00:50::180 to the client, or deletes them. The IPv6 address is
// deprecated, so that the client prefers its own as the source of requests (RFC 6724, rule 3): if the guard reports the
// conflict too late, OVN has the address as well (ADR 8), and replies to it do not reach the client.
func conflicting(verb string) func(context.Context) {
	return func(ctx context.Context) {
		GinkgoHelper()
		for _, a := range []string{"10.50.0.180/32", "fd00:50::180/128"} {
			args := []string{"ip", "addr", verb, here(a), "dev", "eth0"}
			if strings.Contains(a, "::") && verb == "add" {
				args = append(args, "nodad", "preferred_lft", "0")
			}
			_, err := cluster.Exec(ctx, "client", args...)
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// switched restarts the controller with service load balancers enabled or disabled.
func switched(on bool) func(context.Context) {
	return must(func(ctx context.Context) error {
		return errors.Join(cluster.StopController(ctx),
			cluster.StartController(ctx, controller, fmt.Sprintf("--enable-service-load-balancers=%t", on)))
	})
}

// labelled leaves Service web to the service proxy with this name, or to the default one if it is empty.
func labelled(proxy string) func(context.Context) {
	change := "service.kubernetes.io/service-proxy-name-"
	if proxy != "" {
		change = "service.kubernetes.io/service-proxy-name=" + proxy
	}
	return func(ctx context.Context) { kubectl(ctx, "", "label", "--overwrite", "service", "web", change) }
}

func needsLAN() string {
	if !onLAN() {
		return "only segments behind br-ex have flows of OVN-Kubernetes"
	}
	return ""
}

// keepRequests adds stale flows for the addresses of Service web to the gateway while ovnkube, which would remove them,
// does not run. The client forgets the MAC address of the gateway.
func keepRequests(ctx context.Context) error {
	if err := cluster.KillOVNKube(); err != nil {
		return err
	}
	for _, a := range addresses(ctx, "web") {
		if err := cluster.KeepRequests(ctx, gateway, a); err != nil {
			return err
		}
		if _, err := cluster.Exec(ctx, "client", "ip", "neigh", "flush", "to", a.String()); err != nil {
			return err
		}
	}
	return nil
}

func needsOwnBridge() string {
	if onLAN() {
		return "br-ex without its mapping would cut the nodes off"
	}
	return needsNewRows()
}

// needsNewRows is about faults after which our rows are newer than those of OVN-Kubernetes for the address.
func needsNewRows() string {
	if n := cluster.Network(); n.Real() && !n.Zones() {
		return "in central mode ovn-northd 25.09 may misplace the flows of such rows (docs/failures.md, Failure modes)"
	}
	return ""
}

var _ = Describe("kubectl slb explain", Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		if !onLAN() && !cluster.Network().Zones() {
			Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
			DeferCleanup(func() { Expect(cluster.KillGuards()).To(Succeed()) })
		}
		kubectl(ctx, "", "apply", "-f", examples+"l2domain.yaml")
		patching("l2domain", "provider", selecting(gateway))(ctx)
		DeferCleanup(removeExamples)
		kubectl(ctx, "", "apply", "-f", examples)
		awaitAnnounced(ctx, "web")
		awaitBackends(ctx)
		for _, vip := range addresses(ctx, "web") {
			Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(fromPod())
		}
	})

	DescribeTable("names the cause of", func(ctx SpecContext, f fault) { diagnose(ctx, f) },
		Entry("no pool", fault{late: lateService("", ""),
			inject: func(ctx context.Context) { kubectl(ctx, "", "delete", "ippool", "public") }, mend: applying("pool.yaml"),
			link: "pool: NoPool: ", cause: "there is no IPAddressPool", client: fromPod()}),
		Entry("a pool without free addresses", fault{late: lateService("", ""),
			inject: patching("ippool", "public", `{"spec":{"addresses":["10.50.0.100","fd00:50::100"]}}`),
			mend:   applying("pool.yaml"),
			link:   "pool public: PoolExhausted: ", cause: `pool "public"`, client: fromPod()}),
		Entry("a quota", fault{late: lateService("", ""),
			inject: patching("ippool", "public", `{"spec":{"quotaPerNamespace":2}}`),
			mend:   patching("ippool", "public", `{"spec":{"quotaPerNamespace":null}}`),
			link:   "pool public: QuotaExceeded: ", cause: `namespace "default" has 2 addresses`, client: fromPod()}),
		Entry("a fenced namespace", fault{late: lateService("", ""),
			inject: patching("ippool", "public", `{"spec":{"serviceAllocation":{"namespaces":["bank"]}}}`),
			mend:   patching("ippool", "public", `{"spec":{"serviceAllocation":null}}`),
			link:   "pool: NotAdmitted: ", cause: `pool "public" does not serve namespace "default"`, client: fromPod()}),
		Entry("a class of another controller", fault{late: lateService("", "loadBalancerClass: example.com/other"),
			inject: func(context.Context) {},
			mend: func(ctx context.Context) {
				kubectl(ctx, lateService("", ""), "replace", "--force", "-f", "-")
			},
			link: "service default/late: OtherClass: ", cause: "example.com/other", client: fromPod()}),
		Entry("a label for another service proxy", fault{missing: needsNewRows,
			inject: labelled("mesh"), mend: labelled(""),
			link: "service default/web: OtherServiceProxy: ", cause: "service.kubernetes.io/service-proxy-name",
			client: noAnswer()}),
		Entry("service load balancers that are switched off", fault{missing: needsNewRows, late: lateService("", ""),
			inject: switched(false), mend: switched(true),
			link: "pool: DisabledByMode: ", cause: "--enable-service-load-balancers"}),
		Entry("a pool without an L2Domain", fault{missing: needsNewRows,
			late: lateService(v1alpha1.AnnotationAddressPool+": lonely", ""),
			inject: func(ctx context.Context) {
				kubectl(ctx, lonelyPool, "apply", "-f", "-")
				DeferCleanup(func(ctx SpecContext) {
					applying("l2domain.yaml")(ctx)
					kubectl(ctx, "", "delete", "ippool", "lonely")
				})
			},
			mend: patching("l2domain", "provider", `{"spec":{"ipAddressPools":["public","lonely"]}}`),
			link: "domain: NoDomain: ", cause: `no L2Domain has pool "lonely"`, client: fromPod()}),
		Entry("an address that another host has", fault{missing: needsNewRows,
			late:   lateService(v1alpha1.AnnotationLoadBalancerIPs+`: "10.50.0.180,fd00:50::180"`, ""),
			inject: conflicting("add"), mend: conflicting("del"),
			link: ": AddressConflict: ", cause: "10.50.0.180: used outside of the cluster by MAC ", client: fromPod()}),
		Entry("no eligible gateway", fault{missing: needsNewRows,
			inject: patching("l2domain", "provider", selecting("none")),
			mend:   patching("l2domain", "provider", selecting(gateway)),
			link:   "gateway provider: NoGateway: ", cause: "no node is selected", client: noAnswer()}),
		Entry("a missing bridge mapping", fault{missing: needsOwnBridge,
			inject: must(func(ctx context.Context) error { return cluster.Unmap(ctx, gateway, "provider") }),
			mend:   must(func(ctx context.Context) error { return cluster.Remap(ctx, gateway) }),
			link:   "gateway provider: NotAttached: ",
			cause:  `ovn-bridge-mappings of node "n1" are`, client: noAnswer()}),
		Entry("a gateway that is excluded, and the only one", fault{
			inject: must(func(ctx context.Context) error { return cluster.Drain(ctx, gateway) }),
			mend:   must(func(ctx context.Context) error { return cluster.Undrain(ctx, gateway) }),
			answer: weak, link: "gateway n1: Draining: ", cause: "node.kubernetes.io/exclude-from-external-load-balancers",
			client: fromPod()}),
		Entry("an uplink that is down", fault{
			inject: must(func(ctx context.Context) error { return cluster.UplinkDown(ctx, gateway) }),
			mend:   must(func(ctx context.Context) error { return cluster.LinkUp(ctx, gateway) }),
			link:   "gateway n1: Faulty: ", cause: "no carrier on ", client: noAnswer()}),
		Entry("an uplink that is off its bridge", fault{missing: needsOwnBridge,
			inject: must(func(ctx context.Context) error { return cluster.Unplug(ctx, gateway) }),
			mend:   must(func(ctx context.Context) error { return cluster.Plug(ctx, gateway) }),
			link:   "gateway n1: Faulty: ", cause: "has no interface of the node as a port", client: noAnswer()}),
		Entry("a stale flow on br-ex", fault{missing: needsLAN,
			inject: must(keepRequests), mend: must(func(ctx context.Context) error { return cluster.RestartOVNKube(ctx) }),
			link: "gateway n1: StaleFlow: ", cause: "10.50.0.100", client: noAnswer()}),
		Entry("ovn-controller that is stopped", fault{
			inject: must(func(context.Context) error { return cluster.KillDaemon(gateway, lab.OVNController) }),
			mend:   must(func(ctx context.Context) error { return cluster.StartDaemon(ctx, gateway, lab.OVNController) }),
			link:   "gateway n1: Faulty: ", cause: "ovn-controller is not running"}),
		Entry("a northbound database that is down", databaseDown()),
		Entry("ovn-northd that is stopped", northdStopped()),
		Entry("no endpoints", fault{
			inject: patching("service", "web", `{"spec":{"selector":{"app":"none"}}}`),
			mend:   patching("service", "web", `{"spec":{"selector":{"app":"web"}}}`),
			link:   "endpoints: NoEndpoints: ", cause: "app=none", client: noAnswer()}),
		Entry("endpoints that are not ready", fault{inject: podsReady("=false"), mend: podsReady("-"),
			link: "endpoints: EndpointsNotReady: ", cause: "6 endpoints, and none is ready", client: noAnswer()}),
		Entry("source ranges", fault{from: true,
			inject: patching("service", "web", `{"spec":{"loadBalancerSourceRanges":["192.0.2.0/24"]}}`),
			mend:   patching("service", "web", `{"spec":{"loadBalancerSourceRanges":null}}`),
			link:   ": ClientNotAdmitted: ", cause: "192.0.2.0/24", client: noAnswer()}),
	)
})

// databaseDown is the loss of the northbound database that programs the gateway. OVN keeps what it has, so the answer
// is unknown. With interconnect that shows only once a change waits for the database.
func databaseDown() fault {
	f := fault{answer: notKnown, link: "dataplane OVN: DatabaseUnreachable: ", client: fromPod()}
	if os.Getenv("E2E_MODE") != lab.Interconnect {
		f.cause = "not connected to OVN's databases"
		f.inject = must(func(context.Context) error { return cluster.KillCentral(lab.NorthboundDB) })
		f.mend = must(func(ctx context.Context) error { return cluster.StartCentral(ctx, lab.NorthboundDB) })
		return f
	}
	f.cause = "active gateway, has not applied the latest change: " // of one address or of both
	return f.inZone(lab.NorthboundDB)
}

// northdStopped is the loss of ovn-northd. With interconnect the agent observes it, and the Service shows it once a
// change waits. Otherwise it shows at a new Service: no gateway claims its shard or, if its address is in an old one,
// its rows are not translated.
func northdStopped() fault {
	if os.Getenv("E2E_MODE") != lab.Interconnect {
		f := fault{late: lateService("", ""), client: fromPod(),
			link: "gateway provider: NoActiveGateway: ", cause: "ovn-northd may not have translated its rows",
			inject: must(func(context.Context) error { return cluster.KillCentral(lab.Northd) }),
			mend:   must(func(ctx context.Context) error { return cluster.StartCentral(ctx, lab.Northd) })}
		if os.Getenv("E2E_SEGMENT") == lab.OnLAN { // The L2Domain has one shard.
			f.answer, f.link, f.cause = notKnown, "dataplane OVN: NorthdStopped: ", "ovn-northd has not translated the rows"
		}
		return f
	}
	f := fault{answer: notKnown, link: "dataplane OVN: NorthdStopped: ", cause: "ovn-northd is not running",
		client: fromPod()}
	return f.inZone(lab.Northd)
}

// inZone returns the fault that a daemon of the gateway's zone is killed while the Service changes.
func (f fault) inZone(daemon string) fault {
	f.inject = func(ctx context.Context) {
		GinkgoHelper()
		Expect(cluster.KillDaemon(gateway, daemon)).To(Succeed())
		patching("service", "web", `{"spec":{"sessionAffinity":"ClientIP"}}`)(ctx)
	}
	f.mend = func(ctx context.Context) {
		GinkgoHelper()
		Expect(cluster.StartDaemon(ctx, gateway, daemon)).To(Succeed())
		patching("service", "web", `{"spec":{"sessionAffinity":"None"}}`)(ctx)
	}
	return f
}

// lonelyPool is a pool of no L2Domain.
const lonelyPool = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: lonely}
spec: {autoAssign: false, addresses: [10.50.0.210, "fd00:50::210"]}
`
