// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

var (
	cluster    *lab.Lab
	client     kubernetes.Interface
	controller string // path of the program under test
	plugin     string // path of its plugin of kubectl
	examples   string // directory of docs/examples for the segment of this cluster

	nextOutsidePort uint16 = 8000 // see outsidePorts
)

const (
	root      = "../.."
	manifests = root + "/dist/manifests"
	// interconnectRBAC has the permissions that the agents need in addition with interconnect.
	interconnectRBAC = manifests + "/components/interconnect/rbac.yaml"
)

func TestE2E(t *testing.T) {
	contract.Test(t)
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(await.Limit)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "ovnkube-slb end to end")
	for _, f := range failures {
		t.Error(f)
	}
}

// failures are the messages of the failed specs. They are repeated at the end, far below the state of the network.
var failures []string

var _ = ReportAfterEach(func(r SpecReport) {
	if r.Failed() {
		failures = append(failures, fmt.Sprintf("%s:\n%s", r.FullText(), r.FailureMessage()))
	}
})

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	var err error
	controller, err = program.Path(ctx, "go-controller/cmd/ovnkube-slb", dir)
	Expect(err).NotTo(HaveOccurred())
	plugin, err = program.Path(ctx, "go-controller/cmd/kubectl-slb", dir)
	Expect(err).NotTo(HaveOccurred())
	command, err := program.Path(ctx, "test/lab/cmd/lab", dir)
	Expect(err).NotTo(HaveOccurred())

	cluster, err = lab.Up(ctx, lab.Config{Name: fmt.Sprintf("e2e%d", os.Getpid()%1_000_000), Binary: command,
		Network: network(), Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.Down(ctx)).To(Succeed()) })
	client, err = cluster.Client()
	Expect(err).NotTo(HaveOccurred())
	examples, err = examplesHere(dir)
	Expect(err).NotTo(HaveOccurred())
	install(ctx)
})

// install installs the version under test, with guards if the cluster needs them.
func install(ctx context.Context) {
	GinkgoHelper()
	Expect(cluster.Install(ctx, manifests+"/base", controller)).To(Succeed())
	if cluster.Network().Zones() {
		kubectl(ctx, "", "apply", "-f", interconnectRBAC)
	}
	if onLAN() || cluster.Network().Zones() {
		Expect(cluster.StartGuards(ctx, controller)).To(Succeed())
	}
}

// lastSpec is the previous spec. If it leaves something broken, the failure names it instead of the next spec.
var lastSpec string

var _ = BeforeEach(func(ctx SpecContext) {
	// Open vSwitch occasionally aborts in the connection tracker of its userspace datapath: 3.1 in conn_update_state
	// (an assertion), 3.6.2 in conn_to_ct_dpif_entry (the lock of a deleted connection; if its memory is in use again, it
	// is glibc that aborts), 4.0 in cmap_next_position, by which conntrack_flush goes through the connections of a zone
	// that ovn-controller flushes (a segmentation fault, twice in some 1,000 specs; the backtrace has no symbols). Later
	// specs need the node.
	for _, n := range cluster.Nodes {
		if ended := cluster.Ended(n.Name); ended != "" {
			AddReportEntry("a node ended unexpectedly and is restarted", ended)
			Expect(cluster.Restore(ctx, n.Name)).To(Succeed())
			Expect(ended).To(Or(ContainSubstring("lib/conntrack.c"), ContainSubstring("pthread_mutex_lock.c"),
				ContainSubstring("SIGSEGV detected, backtrace")))
		}
	}
	controllerRuns()
	if onLAN() {
		// OVN-Kubernetes may keep the flows of a Service that was deleted, which are stale for the next one with its
		// address. Users restart ovnkube-node then (docs/failures.md).
		left, err := cluster.RemoveOrphanedFlows(ctx)
		if len(left) > 0 {
			AddReportEntry("OVN-Kubernetes kept flows of deleted Services after the spec "+lastSpec, strings.Join(left, ", "))
		}
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(cluster.GatewayRoutersAnswer).WithContext(ctx).Should(Succeed(), "a node is broken, after the spec %q",
		lastSpec)
	lastSpec = CurrentSpecReport().FullText()
})

// controllerRuns checks that the controller has not ended otherwise than by a spec that stopped it. The lab restarts it
// when it loses its lease, as a kubelet does, not when it panics.
func controllerRuns() {
	GinkgoHelper()
	p, err := cluster.Controller()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	if !p.Alive() {
		log, err := os.ReadFile(p.Log())
		Expect(err).NotTo(HaveOccurred())
		Fail(fmt.Sprintf("the controller ended, in the spec %q:\n%s", lastSpec, log[max(0, len(log)-2000):]))
	}
}

// A failed test reports the log of the controller and the state of the network as they were before any cleanup.
var _ = JustAfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	if p, err := cluster.Controller(); err == nil {
		log, _ := os.ReadFile(p.Log()) // A log that can't be read adds nothing.
		AddReportEntry("controller's log", string(log[max(0, len(log)-8000):]))
	}
	nb, _ := cluster.EachNB(context.WithoutCancel(ctx), "show")
	AddReportEntry("ovn-nbctl show", nb)
	AddReportEntry("network", cluster.Diagnosis(context.WithoutCancel(ctx)))
})
