// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestOverviewGolden(t *testing.T) {
	runScenarios(t, "testdata/overview/*.txtar", func(s *scenario) string {
		return wrong(Summarize(s.Objects, s.question.Now))
	})
}

// wrong formats the peers of an overview, and what it reports as wrong.
func wrong(v *Overview) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s announced\n", v.Announced, world.Count(v.Services, "Service"))
	for _, p := range v.Peers {
		fmt.Fprintf(&b, "%s: %d of %s established: %s\n", p.Name, p.Established, world.Count(p.Sessions, "session"),
			strings.TrimSpace(fmt.Sprint(p.State, " ", p.Reason, " ", p.Message)))
	}
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "%s %s: %s: %s\n", f.State, f.Object, f.Reason, f.Message)
		if f.Command != "" {
			fmt.Fprintf(&b, "  %s\n", f.Command)
		}
	}
	for _, note := range v.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}

// The overview has a finding about each Service about which explain warns, in each scenario of explain. What is wrong
// with gateways, nodes and sessions has findings of its own.
func TestStatusListsServicesThatExplainWarnsAbout(t *testing.T) {
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := run(base, archive)
		if err != nil {
			t.Fatal(err)
		}
		s.question.From, s.question.Probes = netip.Addr{}, nil
		found := Summarize(s.Objects, s.question.Now).Findings
		for _, l := range Explain(s.Objects, s.question).Links {
			about := l.Name == LinkService || l.Name == LinkPool || l.Name == LinkAddress || l.Name == LinkClients
			if about && l.State == Warning && !slices.ContainsFunc(found, func(f Finding) bool {
				return f.Object == "Service "+s.question.Service.String()
			}) {
				t.Errorf("%s: explain warns of %+v, the overview does not: %+v", file, l, found)
			}
		}
	}
}

// No Lease shows OpenShift SDN while no agent runs. The mode that the controller wrote shows it.
func TestPodsOfMissingAgents(t *testing.T) {
	for mode, want := range map[string]string{
		"OpenShiftSDN": "app.kubernetes.io/name=ovnkube-slb-sdn --field-selector spec.nodeName=n1",
		"Interconnect": "app.kubernetes.io/name=ovnkube-slb-node --field-selector spec.nodeName=n1",
	} {
		d := &v1alpha1.L2Domain{}
		d.Name, d.Status.Mode = "lan", mode
		d.Status.ExcludedNodes = []v1alpha1.ExcludedNode{{Name: "n1", Reason: v1alpha1.ExcludedNoAgent,
			Message: `no agent runs on node "n1"`}}
		v := Summarize(&objects.Objects{Domains: []*v1alpha1.L2Domain{d}}, time.Now())
		if len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Command, want) {
			t.Errorf("%s: %+v, want one whose command contains %q", mode, v.Findings, want)
		}
		if is := v.Domains[0]; is.State != Unknown || is.Reason != ReasonNotProcessed {
			t.Errorf("%s: domain without conditions: %s %s", mode, is.State, is.Reason)
		}
		accepted := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}
		ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}
		d.Status.Conditions = []metav1.Condition{accepted, ready}
		if is := Summarize(&objects.Objects{Domains: []*v1alpha1.L2Domain{d}}, time.Now()).Domains[0]; is.State != Warning ||
			is.Reason != v1alpha1.ExcludedNoAgent {
			t.Errorf("%s: domain with an excluded node: %s %s", mode, is.State, is.Reason)
		}
	}
}

// A peer without some of its sessions works, with a weakness, as explain says of the Services.
func TestSomeSessionsDownIsAWarning(t *testing.T) {
	for reason, want := range map[string]State{v1alpha1.ReasonSessionsDown: Warning, v1alpha1.ReasonNoSession: Broken} {
		p := &v1alpha1.BGPPeer{}
		p.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted},
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason},
		}
		v := Summarize(&objects.Objects{Peers: []*v1alpha1.BGPPeer{p}}, time.Now())
		if len(v.Findings) != 1 || v.Findings[0].State != want || v.Peers[0].State != want {
			t.Errorf("%s: %+v, want %s", reason, v.Findings, want)
		}
	}
}

// Without the kinds of claims, the command does not ask for claims.
func TestPoolWithoutClaimKinds(t *testing.T) {
	pool := &v1alpha1.IPAddressPool{}
	pool.Name, pool.Spec.ExternalPool = "ext", &v1alpha1.ExternalPool{APIGroup: "g", Kind: "K", Name: "n"}
	pool.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue},
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoClaims}}
	v := Summarize(&objects.Objects{Pools: []*v1alpha1.IPAddressPool{pool}}, time.Now())
	if len(v.Findings) != 1 || v.Findings[0].Command != claimKinds {
		t.Errorf("%+v", v.Findings)
	}
}

// A Service that keeps an address that its pool would not allocate is announced, and worth attention.
func TestRetainedAddressIsAWarning(t *testing.T) {
	s := &corev1.Service{}
	s.Namespace, s.Name, s.Spec.Type = "shop", "web", corev1.ServiceTypeLoadBalancer
	s.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAddressRetained},
		{Type: v1alpha1.ConditionAnnounced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced},
	}
	v := Summarize(&objects.Objects{Services: []*corev1.Service{s}}, time.Now())
	if v.Announced != 1 || len(v.Findings) != 1 || v.Findings[0].State != Warning ||
		v.Findings[0].Reason != v1alpha1.ReasonAddressRetained {
		t.Errorf("%+v", v)
	}
}

// The status of an L2Domain follows the conditions of Services: it shows no gateway of a shard that is announced.
func TestAnnouncedShardHasAGateway(t *testing.T) {
	d := &v1alpha1.L2Domain{}
	d.Name, d.Spec.IPAddressPools, d.Spec.PhysicalNetwork = "lan", []string{"public"}, "provider"
	d.Spec.Subnets = []v1alpha1.Subnet{{CIDR: "10.50.0.0/24"}}
	pool := &v1alpha1.IPAddressPool{}
	pool.Name, pool.Spec.Addresses = "public", []v1alpha1.AddressRange{"10.50.0.100-10.50.0.109"}
	s := &corev1.Service{}
	s.Namespace, s.Name, s.Spec.Type = "shop", "web", corev1.ServiceTypeLoadBalancer
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.50.0.100"}}
	o := &objects.Objects{Domains: []*v1alpha1.L2Domain{d}, Pools: []*v1alpha1.IPAddressPool{pool},
		Services: []*corev1.Service{s}}
	layout := clusterPath(o, Question{Now: time.Now()}).layout
	id, ok := layout.ConfiguredShardOf("public", netip.MustParseAddr("10.50.0.100"))
	if !ok {
		t.Fatal("the address has no shard")
	}
	d.Status.Shards = []v1alpha1.ShardStatus{{Index: int32(id.Index), Addresses: 1}}
	for _, c := range []struct {
		announced metav1.ConditionStatus
		want      int
	}{{metav1.ConditionFalse, 1}, {metav1.ConditionTrue, 0}} {
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAnnounced, Status: c.announced}}
		found := slices.DeleteFunc(Summarize(o, time.Now()).Findings, func(f Finding) bool {
			return f.Reason != v1alpha1.ReasonNoActiveGateway
		})
		if len(found) != c.want || c.want == 1 && !strings.Contains(found[0].Message, "which has 1 address") {
			t.Errorf("condition Announced %s: %+v, want %d findings", c.announced, found, c.want)
		}
		for _, l := range Explain(o, Question{Service: world.Key{Namespace: "shop", Name: "web"}, Now: time.Now()}).Links {
			if l.Name == LinkGateway && (l.State == OK) != (c.want == 0) {
				t.Errorf("condition Announced %s: gateway is %s: %s", c.announced, l.State, l.Message)
			}
		}
	}
}
